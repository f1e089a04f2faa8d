#include "app/status/migration_json.hpp"

#include <sstream>

#include "app/status/migration_view.hpp"
#include "hubferry/migration/phases.hpp"

namespace hubferry::app {

namespace json = kube::json;

namespace {

json::value time_value(const std::optional<async::WallTime>& time) {
  if (!time) return nullptr;
  return std::chrono::duration_cast<std::chrono::milliseconds>(time->time_since_epoch()).count();
}

const char* name_of_kind(std::string_view phase) {
  const auto* known = migration::find_phase(phase);
  if (known == nullptr) return phase.empty() ? "waiting" : "forward";
  switch (known->kind) {
    case migration::PhaseKind::waiting:
      return "waiting";
    case migration::PhaseKind::forward:
      return "forward";
    case migration::PhaseKind::rollback:
      return "rollback";
    case migration::PhaseKind::success:
      return "success";
    case migration::PhaseKind::failure:
      return "failure";
  }
  return "forward";
}

json::array timeline_json(const MigrationView& view) {
  json::array spans;
  for (const auto& span : view.timeline())
    spans.push_back(json::object{{"phase", span.phase},
                                 {"kind", name_of_kind(span.phase)},
                                 {"start", time_value(span.start)},
                                 {"end", time_value(span.end)},
                                 {"failed", span.failed}});
  return spans;
}

/// The lines of the checklist: "  [x] name: description".
json::array steps_json(const MigrationView& view) {
  json::array steps;
  std::istringstream lines{migration_checklist(view)};
  for (std::string line; std::getline(lines, line);) {
    const auto mark = line.find('[');
    if (mark == std::string::npos || mark + 4 > line.size()) continue;
    const char symbol = line[mark + 1];
    const char* state = symbol == 'x' ? "done" : symbol == '>' ? "running" : symbol == '!' ? "failed" : "pending";
    steps.push_back(json::object{{"depth", mark / 2}, {"state", state}, {"text", line.substr(mark + 4)}});
  }
  return steps;
}

json::array conditions_json(const MigrationView& view) {
  json::array conditions;
  for (const auto& condition : view.conditions)
    conditions.push_back(json::object{{"type", condition.type},
                                      {"status", condition.status},
                                      {"reason", condition.reason},
                                      {"message", condition.message},
                                      {"changed", time_value(condition.changed)}});
  return conditions;
}

json::array failures_json(const MigrationView& view) {
  json::array failures;
  for (const auto& failure : view.failures)
    failures.push_back(json::object{{"cluster", failure.cluster},
                                    {"stage", failure.stage},
                                    {"reason", failure.reason},
                                    {"message", failure.message}});
  return failures;
}

json::object counts_json(const MigrationView::Clusters& clusters) {
  return {{"total", clusters.total},       {"pending", clusters.pending}, {"migrating", clusters.migrating},
          {"migrated", clusters.migrated}, {"failed", clusters.failed},   {"rolledBack", clusters.rolled_back}};
}

}  // namespace

json::object migration_json(const kube::Object& migration, async::WallTime now) {
  const auto view = view_of(migration);
  const auto left = view.time_left(now);
  const auto* cause = view.cause();
  json::array problems;
  for (const auto& problem : view.problems)
    problems.push_back(json::value(problem.activity + ", " + problem.step + ": " + problem.message));
  return {{"key", kube::to_string(view.key)},
          {"ns", view.key.ns},
          {"name", view.key.name},
          {"from", view.from},
          {"to", view.to},
          {"placement", view.placement},
          {"phase", view.phase.empty() ? std::string{"New"} : view.phase},
          {"kind", name_of_kind(view.phase)},
          {"ended", view.has_ended()},
          {"deleting", view.being_deleted && !view.has_ended()},
          {"created", time_value(view.created)},
          {"started", time_value(view.started)},
          {"completed", time_value(view.completed)},
          {"phaseStarted", time_value(view.phase_started)},
          {"timeLeft", left ? json::value(std::chrono::duration_cast<std::chrono::milliseconds>(*left).count())
                            : json::value(nullptr)},
          {"clusters", counts_json(view.clusters)},
          {"cause", cause == nullptr ? "" : cause->reason + ": " + cause->message},
          {"message", view.message()},
          {"timeline", timeline_json(view)},
          {"steps", steps_json(view)},
          {"conditions", conditions_json(view)},
          {"problems", std::move(problems)},
          {"failures", failures_json(view)}};
}

}  // namespace hubferry::app
