#include "app/status/migration_checklist.hpp"

#include <algorithm>
#include <sstream>

#include "hubferry/migration/controller.hpp"
#include "hubferry/phase/render.hpp"

namespace hubferry::app {

namespace {

/// The status is written when a step has ended. The running step is the first unfinished one; of parallel steps, all of
/// them.
void mark_running(const phase::HandlerNode& handler, phase::State& state) {
  for (const auto& component : handler.components) {
    auto& known = state.components[component.name()];
    if (known.completed()) continue;
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
