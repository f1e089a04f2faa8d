#include "app/status/migration_view.hpp"

#include <algorithm>
#include <sstream>

#include "app/cli/terminal.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/migration/phases.hpp"
#include "hubferry/phase/render.hpp"

namespace hubferry::app {

using migration::PhaseKind;

namespace {

void sort_failures(MigrationView& view) {
  std::sort(view.failures.begin(), view.failures.end(),
            [](const auto& one, const auto& other) { return natural_less(one.cluster, other.cluster); });
}

/// True for a step whose successor has begun: its own result is written later.
bool has_passed(const phase::HandlerNode& serial, std::size_t index, const phase::State& state) {
  for (std::size_t later = index + 1; later < serial.components.size(); ++later)
    if (!state.component(serial.components[later].name()).never_ran()) return true;
  return false;
}

/// Results are written when a step has ended at which the migration could continue. The running step is the last one
/// that has begun, or else the first unfinished one; of parallel steps, all of them.
void mark_running(const phase::HandlerNode& handler, phase::State& state) {
  for (std::size_t index = 0; index < handler.components.size(); ++index) {
    const auto& component = handler.components[index];
    auto& known = state.components[component.name()];
    if (known.completed()) continue;
    if (handler.kind == phase::HandlerKind::serial && !known.failed && has_passed(handler, index, state)) {
      known.done = true;
      continue;
    }
    if (known.never_ran()) known.start_time = async::WallTime{};
    mark_running(component, known);
    if (handler.kind == phase::HandlerKind::serial) break;
  }
}

phase::States states_with_running_step(const MigrationView& migration, const phase::DefinitionBase& definition) {
  auto states = migration.states;
  const auto* handler = definition.handler_for(migration.phase);
  if (handler == nullptr || migration.has_ended()) return states;
  auto& present = states[migration.phase];
  // A summary counts thousands of steps without listing them.
  if (present.summary == nullptr && !present.completed()) mark_running(*handler, present);
  return states;
}

/// A phase that was not entered is still to come, unless it belongs to a failure, was skipped, or the migration ended.
bool is_to_come(const std::string& line, const MigrationView& migration) {
  const auto is_line_of = [&](migration::PhaseKind kind) {
    return std::ranges::any_of(migration::phase_table, [&](const migration::PhaseInfo& phase) {
      return phase.kind == kind && line.starts_with(std::string{"[ ] "} + phase.name);
    });
  };
  if (is_line_of(migration::PhaseKind::rollback) || migration.has_ended()) return false;
  return migration.phase.empty() || !is_line_of(migration::PhaseKind::waiting);
}

}  // namespace

std::vector<MigrationView::Span> MigrationView::timeline() const {
  std::vector<Span> spans;
  for (const auto& info : migration::phase_table) {
    const std::string name = info.name;
    const auto known = states.find(name);
    const phase::State state = known == states.end() ? phase::State{} : known->second;
    Span span{name, state.start_time, state.end_time, state.failed};
    if (info.kind == PhaseKind::waiting && (known != states.end() || name == phase)) {
      span.start = created;
      if (!span.end) span.end = started;
    }
    if (name == phase && !span.start) span.start = phase_started;
    if (name == phase && has_ended()) {
      span.start = completed;
      span.end = completed;
      span.failed = !has_succeeded();
    }
    // The current phase has not ended, even if its handler has.
    if (name == phase && !has_ended()) span.end.reset();
    if (!span.start || (name != phase && known == states.end())) continue;
    const auto is_later = [](const Span& one, const Span& other) { return one.start < other.start; };
    spans.insert(std::upper_bound(spans.begin(), spans.end(), span, is_later), span);
  }
  return spans;
}

std::optional<async::Duration> MigrationView::time_left(async::WallTime now) const {
  const auto settled = clusters.migrated + clusters.failed + clusters.rolled_back;
  if (phase != migration::phases::registering || !phase_started || clusters.migrated == 0 || settled >= clusters.total)
    return std::nullopt;
  const auto elapsed = std::max(now - *phase_started, async::Duration{0});
  return elapsed * (clusters.total - settled) / clusters.migrated;
}

std::string MigrationView::message() const {
  if (const auto* latest = latest_condition(); latest != nullptr) return latest->message;
  // Only the manager writes conditions. Without one, a user would wait here without a word.
  return phase.empty() ? "waiting for a manager: none has reconciled it yet" : "";
}

MigrationView view_of(const kube::Object& migration) {
  MigrationView view;
  static_cast<migration::MigrationStatus&>(view) = migration::read_status(migration);
  const auto spec = migration::read_spec(migration.json());
  view.key = migration.key();
  view.from = view.source_hub.empty() ? spec.from : view.source_hub;
  view.to = view.target_hub.empty() ? spec.to : view.target_hub;
  view.placement = spec.placement.value_or(std::string{});
  view.being_deleted = migration.is_being_deleted();
  view.created = migration::read_creation_time(migration);
  if (view.clusters.total == 0 && spec.clusters) view.clusters.total = static_cast<std::int64_t>(spec.clusters->size());
  sort_failures(view);
  return view;
}

void add_failures(MigrationView& view, const kube::Object& config_map) {
  for (auto& failure : migration::read_failures(config_map)) {
    const bool is_known = std::any_of(view.failures.begin(), view.failures.end(),
                                      [&](const auto& known) { return known.cluster == failure.cluster; });
    if (!is_known) view.failures.push_back(std::move(failure));
  }
  sort_failures(view);
}

std::string migration_checklist(const MigrationView& migration, bool brief) {
  const auto& definition = migration::phase_definition();
  const auto states = states_with_running_step(migration, definition);
  std::istringstream lines{phase::render_checklist(definition, {migration.phase, states})};
  std::string text;
  bool unfolded = false;
  for (std::string line; std::getline(lines, line);) {
    const bool is_phase = line.starts_with('[');
    const char mark = is_phase ? line[1] : ' ';
    const bool is_omitted = is_phase && mark == ' ' && !is_to_come(line, migration);
    if (is_phase) unfolded = !is_omitted && mark != ' ' && !(brief && mark == 'x');
    if (is_phase ? !is_omitted : unfolded) text += line + "\n";
  }
  return text;
}

}  // namespace hubferry::app
