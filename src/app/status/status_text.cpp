#include "app/status/migration_view.hpp"

#include <algorithm>
#include <sstream>

#include "app/cli/terminal.hpp"
#include "hubferry/migration/phases.hpp"

namespace hubferry::app {

namespace {

// A message that names clusters can be long, and they are listed below: on a screen its beginning is enough.
constexpr std::size_t max_cause_length = 300;

std::string since(const std::optional<async::WallTime>& then, async::WallTime now) {
  return then ? short_duration(now - *then) : "";
}

std::string progress(const MigrationView& migration) {
  return std::to_string(migration.clusters.migrated) + "/" + std::to_string(migration.clusters.total);
}

std::string shown_phase(const MigrationView& migration) {
  if (migration.phase.empty()) return "New";  // not yet reconciled
  return migration.phase + (migration.being_deleted && !migration.has_ended() ? " (deleting)" : "");
}

std::string expected_end(const MigrationView& migration, async::WallTime now) {
  const auto left = migration.time_left(now);
  return left ? "~" + short_duration(*left) : "";
}

/// The cause of its failure: "Timeout: none arrived".
std::string cause_text(const MigrationView& migration) {
  const auto* cause = migration.cause();
  return cause == nullptr ? "" : cause->reason + ": " + cause->message;
}

/// The cause of its failure, or the latest message.
std::string message(const MigrationView& migration) {
  const auto cause = cause_text(migration);
  return cause.empty() ? migration.message() : cause;
}

std::string reason(const MigrationView& migration) {
  const auto* condition = migration.cause() != nullptr ? migration.cause() : migration.latest_condition();
  return condition == nullptr ? "" : condition->reason;
}

/// The message for a table with a reason column.
std::string message_without_reason(const MigrationView& migration) {
  const auto* cause = migration.cause();
  return cause != nullptr ? cause->message : migration.message();
}

/// From the start to the end, or to now.
std::string time_taken(const MigrationView& migration, async::WallTime now) {
  return migration.started ? short_duration(migration.completed.value_or(now) - *migration.started) : "";
}

std::string count_text(std::int64_t count, const char* what) {
  return count == 0 ? "" : ", " + std::to_string(count) + " " + what;
}

/// Those that were rolled back have failed before: ", 5 failed (3 rolled back)" are five.
std::string failure_counts(const MigrationView::Clusters& clusters) {
  if (clusters.failed < clusters.rolled_back)
    return count_text(clusters.failed, "failed") + count_text(clusters.rolled_back, "rolled back");
  auto text = count_text(clusters.failed, "failed");
  if (clusters.rolled_back > 0) text += " (" + std::to_string(clusters.rolled_back) + " rolled back)";
  return text;
}

std::string cluster_counts(const MigrationView::Clusters& clusters) {
  return std::to_string(clusters.migrated) + " of " + std::to_string(clusters.total) + " migrated" +
         count_text(clusters.migrating, "migrating") + count_text(clusters.pending, "pending") +
         failure_counts(clusters);
}

/// The time of day.
std::string clock_text(async::WallTime time) {
  return async::format_time(time).substr(11, 8);
}

void add_title(std::vector<std::string>& lines, const std::string& title, const Terminal& terminal) {
  lines.emplace_back();
  lines.push_back(painted(title, Colour::bold, terminal.colour));
}

void append(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

void add_timeline(std::vector<std::string>& lines, const MigrationView& migration, async::WallTime now,
                  const Terminal& terminal) {
  TextTable table{{"PHASE", "STARTED", "TOOK", ""}};
  for (const auto& span : migration.timeline()) {
    const bool current = span.phase == migration.phase;
    std::string took = short_duration(span.end.value_or(now) - *span.start);
    if (current && migration.has_ended()) took = "";
    std::string remark = " ";
    if (span.failed) remark = "failed";
    if (current && !migration.has_ended()) remark = "running";
    table.add(
        {{span.phase, current ? colour_of_phase(span.phase) : Colour::plain}, clock_text(*span.start), took, remark});
  }
  if (table.empty()) return;
  add_title(lines, "Timeline (UTC)", terminal);
  append(lines, table.lines(terminal, "  "));
}

Colour colour_of_mark(char mark) {
  if (mark == 'x') return Colour::green;
  if (mark == '!') return Colour::red;
  return mark == '>' ? Colour::blue : Colour::dim;
}

void add_steps(std::vector<std::string>& lines, const std::string& checklist, const Terminal& terminal) {
  if (checklist.empty()) return;
  add_title(lines, "Steps (x done, > running, ! failed)", terminal);
  std::istringstream steps{checklist};
  for (std::string step; std::getline(steps, step);) {
    const auto mark = step.find('[');
    const std::string text = fitted("  " + step, terminal.width);
    const bool is_marked = mark != std::string::npos && mark + 5 <= text.size();
    if (!is_marked) {
      lines.push_back(text);
      continue;
    }
    lines.push_back(text.substr(0, mark + 2) +
                    painted(text.substr(mark + 2, 3), colour_of_mark(step[mark + 1]), terminal.colour) +
                    text.substr(mark + 5));
  }
}

void add_conditions(std::vector<std::string>& lines, const MigrationView& migration, async::WallTime now,
                    const Terminal& terminal) {
  if (migration.conditions.empty()) return;
  TextTable table{{"CONDITION", "STATUS", "REASON", "AGE", "MESSAGE"}};
  for (const auto& condition : migration.conditions)
    table.add({condition.type, condition.status, condition.reason, since(condition.changed, now), condition.message});
  add_title(lines, "Conditions", terminal);
  append(lines, table.lines(terminal, "  "));
}

/// The number of failed clusters beyond the `most` that are listed.
std::size_t unlisted(const MigrationView& migration, std::size_t most) {
  const auto failed = std::max(migration.failures.size(), static_cast<std::size_t>(migration.clusters.failed));
  return failed - std::min(migration.failures.size(), most);
}

void add_failures(std::vector<std::string>& lines, const MigrationView& migration, std::size_t most,
                  const Terminal& terminal) {
  if (migration.failures.empty()) return;
  TextTable table{{"CLUSTER", "STAGE", "REASON", "MESSAGE"}};
  for (const auto& failure : migration.failures) {
    if (most-- == 0) break;
    table.add({{failure.cluster, Colour::red}, failure.stage, failure.reason, failure.message});
  }
  add_title(lines, "Failed clusters", terminal);
  append(lines, table.lines(terminal, "  "));
}

}  // namespace

Colour colour_of_phase(std::string_view phase) {
  const auto* known = migration::find_phase(phase);
  if (known == nullptr) return phase.empty() ? Colour::dim : Colour::blue;
  switch (known->kind) {
    case migration::PhaseKind::waiting:
      return Colour::dim;
    case migration::PhaseKind::forward:
      return Colour::blue;
    case migration::PhaseKind::rollback:
      return Colour::yellow;
    case migration::PhaseKind::success:
      return Colour::green;
    case migration::PhaseKind::failure:
      return Colour::red;
  }
  return Colour::plain;
}

std::vector<std::string> migration_table(std::vector<MigrationView> migrations, const TableOptions& options,
                                         async::WallTime now, const Terminal& terminal) {
  std::sort(migrations.begin(), migrations.end(), [](const auto& a, const auto& b) {
    return a.key.ns != b.key.ns ? natural_less(a.key.ns, b.key.ns) : natural_less(a.key.name, b.key.name);
  });
  const bool do_differ = !migrations.empty() && migrations.front().key.ns != migrations.back().key.ns;
  const bool has_namespaces = options.namespaces == NamespaceColumn::always ||
                              (options.namespaces == NamespaceColumn::where_they_differ && do_differ);
  std::vector<std::string> headings;
  if (has_namespaces) headings.emplace_back("NAMESPACE");
  for (const auto* heading : {"NAME", "PHASE", "FROM", "TO", "CLUSTERS"}) headings.emplace_back(heading);
  if (options.wide)
    for (const auto* heading : {"FAILED", "ROLLED-BACK", "TOOK"}) headings.emplace_back(heading);
  for (const auto* heading : {"AGE", "ETA"}) headings.emplace_back(heading);
  if (options.wide) headings.emplace_back("REASON");
  headings.emplace_back("MESSAGE");

  TextTable table{headings};
  for (const auto& migration : migrations) {
    std::vector<TextTable::Cell> row;
    if (has_namespaces) row.emplace_back(migration.key.ns);
    row.emplace_back(migration.key.name);
    row.emplace_back(shown_phase(migration), colour_of_phase(migration.phase));
    row.emplace_back(migration.from);
    row.emplace_back(migration.to);
    row.emplace_back(progress(migration));
    if (options.wide) {
      row.emplace_back(std::to_string(migration.clusters.failed));
      row.emplace_back(std::to_string(migration.clusters.rolled_back));
      row.emplace_back(time_taken(migration, now));
    }
    row.emplace_back(since(migration.created, now));
    row.emplace_back(expected_end(migration, now));
    if (options.wide) row.emplace_back(reason(migration));
    row.emplace_back(options.wide ? message_without_reason(migration) : message(migration));
    table.add(std::move(row));
  }
  return table.lines(terminal);
}

std::vector<std::string> migration_details(const MigrationView& migration, const std::string& checklist,
                                           async::WallTime now, const Terminal& terminal, std::size_t most_clusters) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& name, const std::string& text, Colour colour = Colour::plain) {
    const std::string label = name + ":" + std::string(11 - std::min<std::size_t>(name.size(), 10), ' ');
    const auto cut = terminal.width > label.size() + 1 ? terminal.width - label.size() : terminal.width;
    lines.push_back(label + painted(fitted(text, cut), colour, terminal.colour));
  };
  add("Migration", kube::to_string(migration.key), Colour::bold);
  add("Hubs", migration.from + " -> " + migration.to);
  if (!migration.placement.empty()) add("Placement", migration.placement);
  std::string phase = shown_phase(migration);
  if (!migration.has_ended() && migration.phase_started) phase += " for " + since(migration.phase_started, now);
  if (const auto taken = time_taken(migration, now); migration.has_ended() && !taken.empty())
    phase += ", took " + taken;
  add("Phase", phase, colour_of_phase(migration.phase));
  add("Clusters", cluster_counts(migration.clusters));
  if (const auto end = expected_end(migration, now); !end.empty()) add("ETA", end);
  if (migration.created)
    add("Created", async::format_time(*migration.created) + " (" + since(migration.created, now) + " ago)");
  // What a migration waits for may be several things, which one line would hide.
  const auto add_wrapped = [&](const std::string& name, const std::string& text, Colour colour) {
    const std::size_t longest = terminal.width > 0 ? max_cause_length : 0;
    const std::string label = name + ":" + std::string(11 - name.size(), ' ');
    for (const auto& line : wrapped(fitted(text, longest), terminal.width, label, std::string(label.size(), ' ')))
      lines.push_back(painted(line, colour, terminal.colour));
  };
  add_wrapped("Failure", cause_text(migration), Colour::red);
  const auto latest = migration.message();
  if (!latest.empty() && (migration.cause() == nullptr || migration.cause() != migration.latest_condition()))
    add_wrapped("Message", latest, Colour::plain);
  for (const auto& problem : migration.problems)
    add_wrapped("Problem", problem.activity + ", " + problem.step + ": " + problem.message, Colour::yellow);
  add_timeline(lines, migration, now, terminal);
  add_failures(lines, migration, most_clusters, terminal);
  if (const auto more = unlisted(migration, most_clusters); !migration.failures.empty() && more > 0)
    lines.push_back("  … and " + std::to_string(more) + " more (all: hubferry status " + migration.key.name +
                    " -o wide)");
  add_steps(lines, checklist, terminal);
  add_conditions(lines, migration, now, terminal);
  return lines;
}

std::vector<std::string> failure_lines(const MigrationView& migration, std::size_t most_clusters,
                                       const Terminal& terminal) {
  std::vector<std::string> lines;
  if (!migration.is_failing()) return lines;
  const auto cause = cause_text(migration);
  lines.push_back(fitted(migration.key.name + " failed" + (cause.empty() ? "" : ": " + cause), terminal.width));
  const auto named = std::min(most_clusters, migration.failures.size());
  for (std::size_t index = 0; index < named; ++index) {
    const auto& failure = migration.failures[index];
    const auto text = fitted(failure.cluster + ": " + failure.reason + ": " + failure.message, 0);
    for (auto& line : wrapped(text, terminal.width, "  ", "    ")) lines.push_back(std::move(line));
  }
  if (const auto more = unlisted(migration, most_clusters); !migration.failures.empty() && more > 0)
    lines.push_back("  … and " + std::to_string(more) + " more");
  return lines;
}

std::string migration_line(const MigrationView& migration) {
  std::string line = kube::to_string(migration.key) + " " + shown_phase(migration) + " " + progress(migration);
  line += failure_counts(migration.clusters);
  if (const auto text = message(migration); !text.empty()) line += ": " + fitted(text, 0);
  return line;
}

}  // namespace hubferry::app
