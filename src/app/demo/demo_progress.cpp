#include "app/demo/demo_progress.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "app/cli/terminal.hpp"
#include "app/status/migration_view.hpp"
#include "hubferry/migration/phases.hpp"

namespace hubferry::app {

namespace {

// Leaves room for the time of the current phase on a screen of 80 columns.
std::size_t bar_width(const Terminal& terminal) {
  return terminal.width == 0 || terminal.width >= 100 ? 20 : 12;
}

std::string with_decimals(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

double seconds(async::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, columns(text)), ' ');
}

std::string bar(std::int64_t done, std::int64_t total, std::size_t width) {
  const auto full = total <= 0 ? 0 : static_cast<std::size_t>(done) * width / static_cast<std::size_t>(total);
  return "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
}

std::int64_t errors_of(const MigrationView& view) {
  return std::max(view.clusters.failed, view.clusters.rolled_back);
}

/// The phases that take time: those with a column.
std::vector<migration::PhaseInfo> timed_phases() {
  std::vector<migration::PhaseInfo> timed;
  for (const auto& phase : migration::phase_table)
    if (!std::string_view{phase.heading}.empty()) timed.push_back(phase);
  return timed;
}

/// The log text after a phase of failure: the cause or, at the end of a rollback, its result.
std::string failure_text(const MigrationView& migration, const std::string& phase_before) {
  if (!migration.is_failing()) return "";
  const auto* cause = migration.cause();
  if (cause != nullptr && phase_before != migration::phases::rollbacking)
    return ": " + cause->reason + ": " + fitted(cause->message, 0);
  const auto* latest = migration.latest_condition();
  return latest == nullptr ? "" : ": " + fitted(latest->message, 0);
}

}  // namespace

std::string demo_time(async::Duration duration) {
  if (duration >= std::chrono::minutes{1}) return short_duration(duration);
  return with_decimals(seconds(duration)) + "s";
}

std::optional<async::Duration> DemoProgress::Seen::time_in(const std::string& phase, async::TimePoint now) const {
  std::optional<async::Duration> sum;
  for (const auto& [name, time] : phases)
    if (name == phase) sum = sum.value_or(async::Duration{0}) + time;
  if (view.phase == phase && !ended) sum = sum.value_or(async::Duration{0}) + (now - phase_since);
  return sum;
}

std::vector<std::string> DemoProgress::observe(const MigrationView& migration, async::TimePoint now) {
  const auto is_it = [&](const Seen& seen) { return seen.view.key == migration.key; };
  auto known = std::find_if(seen_.begin(), seen_.end(), is_it);
  if (known == seen_.end()) {
    const auto is_before = [](const Seen& one, const Seen& other) {
      return natural_less(one.view.key.name, other.view.key.name);
    };
    Seen seen{migration, now, now, std::nullopt, {}};
    known = seen_.insert(std::upper_bound(seen_.begin(), seen_.end(), seen, is_before), seen);
    known->view.phase.clear();
    known->view.clusters.migrated = 0;
  }
  std::vector<std::string> changes;
  const std::string when = padded(demo_time(now - start_), 7) + migration.key.name + ": ";
  const auto& before = known->view;
  if (migration.phase != before.phase && !migration.phase.empty()) {
    std::string text = when + migration.phase;
    if (!before.phase.empty()) {
      known->phases.emplace_back(before.phase, now - known->phase_since);
      text += " (" + before.phase + " took " + demo_time(now - known->phase_since) + ")";
    }
    known->phase_since = now;
    if (migration.has_ended()) known->ended = now;
    changes.push_back(text + failure_text(migration, before.phase));
  }
  if (migration.clusters.migrated != before.clusters.migrated)
    changes.push_back(when + std::to_string(migration.clusters.migrated) + " of " +
                      std::to_string(migration.clusters.total) + " clusters are on " + migration.to);
  if (errors_of(migration) > errors_of(before))
    changes.push_back(when + plural(static_cast<std::size_t>(migration.clusters.failed), "cluster") + " failed, " +
                      std::to_string(migration.clusters.rolled_back) +
                      (migration.clusters.rolled_back == 1 ? " is" : " are") + " back on " + migration.from);
  known->view = migration;
  return changes;
}

std::string DemoProgress::line(const Seen& seen, std::size_t name_width, async::TimePoint now,
                               const Terminal& terminal) const {
  const auto& view = seen.view;
  const std::string phase = view.phase.empty() ? "New" : view.phase;
  std::string text = padded(view.key.name, name_width) + "  " +
                     painted(padded(phase, 12), colour_of_phase(view.phase), terminal.colour) + "  " +
                     bar(view.clusters.migrated, view.clusters.total, bar_width(terminal)) + " " +
                     padded(std::to_string(view.clusters.migrated) + "/" + std::to_string(view.clusters.total), 9);
  const auto registering = seen.time_in(migration::phases::registering, now);
  std::string rate = "-";
  if (registering && view.clusters.migrated > 0 && *registering > async::Duration{0})
    rate = with_decimals(static_cast<double>(view.clusters.migrated) / seconds(*registering)) + "/s";
  text += padded(rate, 8);
  const auto errors = errors_of(view);
  text += painted(padded(std::to_string(errors) + (errors == 1 ? " error" : " errors"), 11),
                  errors == 0 ? Colour::plain : Colour::red, terminal.colour);
  std::string times;
  for (const auto& phase_with_time : timed_phases())
    if (const auto time = seen.time_in(phase_with_time.name, now))
      times += std::string{phase_with_time.name, 3} + " " + demo_time(*time) + "  ";
  const std::size_t used = name_width + bar_width(terminal) + 47;  // the columns so far
  while (terminal.width > 0 && !times.empty() && used + times.size() > terminal.width + 2)
    times.erase(0, times.find("  ") + 2);
  return text + times;
}

std::vector<std::string> DemoProgress::lines(async::TimePoint now, const Terminal& terminal) const {
  std::vector<std::string> all;
  std::size_t name_width = 0;
  for (const auto& seen : seen_) name_width = std::max(name_width, columns(seen.view.key.name));
  for (const auto& seen : seen_) all.push_back(line(seen, name_width, now, terminal));
  all.push_back(painted(
      demo_time(now - start_) + ", " + std::to_string(moved()) + " of " + std::to_string(total()) + " clusters moved",
      Colour::dim, terminal.colour));
  return all;
}

std::vector<std::string> DemoProgress::summary(const Terminal& terminal) const {
  std::vector<std::string> headings{"MIGRATION", "RESULT", "MOVED", "BACK", "TOOK"};
  std::vector<std::string> shown;
  for (const auto& phase : timed_phases()) {
    const auto was_entered = [&](const Seen& seen) { return seen.time_in(phase.name, seen.phase_since).has_value(); };
    if (std::none_of(seen_.begin(), seen_.end(), was_entered)) continue;
    shown.push_back(phase.name);
    headings.push_back(phase.heading);
  }
  constexpr std::size_t narrow_gap = 2;
  TextTable table{headings, narrow_gap};
  for (const auto& seen : seen_) {
    const auto& view = seen.view;
    const auto end = seen.ended.value_or(seen.phase_since);
    std::vector<TextTable::Cell> row{view.key.name,
                                     {view.phase, colour_of_phase(view.phase)},
                                     std::to_string(view.clusters.migrated) + "/" + std::to_string(view.clusters.total),
                                     std::to_string(view.clusters.rolled_back),
                                     demo_time(end - seen.first)};
    for (const auto& name : shown) {
      const auto time = seen.time_in(name, end);
      row.emplace_back(time ? demo_time(*time) : "");
    }
    table.add(std::move(row));
  }
  return table.lines(terminal);
}

std::vector<std::string> DemoProgress::failures(const Terminal& terminal) const {
  constexpr std::size_t most_migrations = 5;
  constexpr std::size_t most_clusters = 3;
  std::vector<std::string> all;
  std::size_t failed = 0;
  for (const auto& seen : seen_) {
    if (!seen.view.is_failing() || ++failed > most_migrations) continue;
    for (auto& line : failure_lines(seen.view, most_clusters, terminal)) all.push_back(std::move(line));
  }
  if (failed > most_migrations)
    all.push_back("… and " + std::to_string(failed - most_migrations) + " more migrations failed");
  return all;
}

bool DemoProgress::all_ended() const {
  return std::all_of(seen_.begin(), seen_.end(), [](const Seen& seen) { return seen.ended.has_value(); });
}

bool DemoProgress::all_succeeded() const {
  return std::all_of(seen_.begin(), seen_.end(), [](const Seen& seen) { return seen.view.has_succeeded(); });
}

std::int64_t DemoProgress::moved() const {
  std::int64_t sum = 0;
  for (const auto& seen : seen_) sum += seen.view.clusters.migrated;
  return sum;
}

std::int64_t DemoProgress::total() const {
  std::int64_t sum = 0;
  for (const auto& seen : seen_) sum += seen.view.clusters.total;
  return sum;
}

async::Duration DemoProgress::took() const {
  auto last = start_;
  for (const auto& seen : seen_) last = std::max(last, seen.ended.value_or(start_));
  return last - start_;
}

}  // namespace hubferry::app
