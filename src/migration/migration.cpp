#include "migration/migration.hpp"

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"

namespace hubferry::migration {

namespace {

/// Beside the messages, which are strings by step: the steps that timed out.
constexpr const char* timed_out_steps = "timedOut";
constexpr std::size_t longest_problem = 1024;

}  // namespace

std::optional<WallTime> time_in(const json::object& object, std::string_view field) {
  const auto text = kube::string_at(object, {field});
  if (text.empty()) return std::nullopt;
  try {
    return async::parse_time(text);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

std::optional<WallTime> phase_start_in(const json::object& status, std::string_view phase) {
  const auto* clock = kube::find(status, {"stage"});
  if (clock == nullptr || !clock->is_object() || kube::string_at(clock->get_object(), {"phase"}) != phase)
    return std::nullopt;
  return time_in(clock->get_object(), "startTime");
}

std::optional<Credential> credential_in(const json::object& status) {
  Credential credential{std::string{kube::string_at(status, {"credential", "kind"})},
                        {std::string{kube::string_at(status, {"credential", "namespace"})},
                         std::string{kube::string_at(status, {"credential", "name"})}}};
  if (credential.kind.empty()) return std::nullopt;
  return credential;
}

std::optional<hubagent::Stage> rollback_stage_in(const json::object& status) {
  return stage_from(kube::string_at(status, {"rollbackStage"}));
}

std::vector<StepProblem> problems_in(const json::object& status, std::string_view activity) {
  std::vector<StepProblem> problems;
  const auto* recorded = kube::find(status, {activity});
  if (recorded == nullptr || !recorded->is_object()) return problems;
  const auto* late = recorded->get_object().if_contains(timed_out_steps);
  for (const auto& [step, message] : recorded->get_object()) {
    if (!message.is_string() || message.get_string().empty()) continue;
    const bool timed_out =
        late != nullptr && late->is_array() && std::ranges::count(late->get_array(), json::value(step)) > 0;
    problems.push_back({std::string{activity}, std::string{step}, std::string{message.get_string()}, timed_out});
  }
  return problems;
}

hubagent::MigrationRef Migration::ref() const {
  return {std::string{object.ns()}, std::string{object.name()}, std::string{object.uid()}};
}

bool Migration::requests_rollback() const {
  return object.annotation(names::request_annotation) == names::rollback_request;
}

bool Migration::has_pending_deletion() const {
  return is_being_deleted() && kube::has_finalizer(object, names::finalizer);
}

std::string Migration::pinned(std::string_view field) const {
  const auto recorded = kube::string_at(status, {field});
  return std::string{recorded.empty() ? object.string_at({"spec", field}) : recorded};
}

void Migration::pin_hubs() {
  for (const auto* field : {"from", "to"}) status[field] = object.string_at({"spec", field});
}

void Migration::pin_selection() {
  status["selection"] = selection_of(spec());
}

ClusterNames Migration::listed_clusters() const {
  const auto recorded = kube::string_at(status, {"selection"});
  if (recorded.empty()) return {};
  auto selected = spec();
  if (!selected.clusters || recorded != selection_of(selected)) return {};
  return std::move(*selected.clusters);
}

bool Migration::is_spec_changed() const {
  const auto recorded = kube::string_at(status, {"selection"});
  return !recorded.empty() && recorded != selection_of(spec());
}

void Migration::enter(const Phase& phase, WallTime now) {
  status["stage"] = json::object{{"phase", phase}, {"startTime", async::format_micro_time(now)}};
}

std::optional<WallTime> Migration::proof_since() const {
  return std::max(cut_over(), time_in(status, status_fields::late_detachment));
}

void Migration::set_time(std::string_view field, WallTime time) {
  status[field] = async::format_micro_time(time);
}

void Migration::set_credential(const Credential& credential) {
  status["credential"] = json::object{
      {"kind", credential.kind}, {"namespace", credential.identity.ns}, {"name", credential.identity.name}};
}

void Migration::set_rollback_stage(hubagent::Stage stage) {
  status["rollbackStage"] = to_string(stage);
}

void Migration::set_problem(const StepProblem& problem) {
  auto& recorded = kube::object_in(status, problem.activity);
  recorded[problem.step] = phase::shortened(problem.message, longest_problem);
  if (!problem.timed_out) return;
  auto& late = kube::array_in(recorded, timed_out_steps);
  if (std::ranges::count(late, json::value(problem.step)) == 0) late.emplace_back(problem.step);
}

void Migration::clear_problem(std::string_view activity, std::string_view step) {
  auto* recorded = status.if_contains(activity);
  if (recorded == nullptr || !recorded->is_object()) return;
  recorded->get_object().erase(step);
  if (problems(activity).empty()) status.erase(activity);
}

bool Migration::is_cleanup_pending() const {
  const auto* condition = kube::find_condition_in_status(status, condition_of(phase()));
  if (condition == nullptr || is_terminal(phase())) return false;
  const auto reason = kube::string_at(*condition, {"reason"});
  return reason == reasons::cleanup_pending || reason == reasons::rollback_pending;
}

namespace {

/// It has completed though clusters, or objects of it, were left behind.
bool has_left_behind(const Migration& migration) {
  const auto* condition = kube::find_condition_in_status(migration.status, conditions::cleaned);
  return condition != nullptr && kube::string_at(*condition, {"reason"}) == reasons::left_behind;
}

}  // namespace

bool wants_to_resume(const Migration& migration) {
  const auto phase = migration.phase();
  const bool may_roll_back = phase == phases::failed || (phase == phases::completed && has_left_behind(migration));
  if (may_roll_back && migration.requests_rollback() && !migration.is_being_deleted()) return true;
  return is_terminal(phase) && migration.has_pending_deletion();
}

void prepare_to_resume(Migration& migration, const Phase& next, WallTime now) {
  migration.set_state(phases::rollbacking, {});
  migration.set_state(phases::cleaning, {});
  for (const auto* finished : {"rollback", "cleanup", "completionTime"}) migration.status.erase(finished);
  kube::remove_condition(migration.status, conditions::rolled_back);
  kube::remove_condition(migration.status, conditions::cleaned);
  migration.enter(next, now);
}

}  // namespace hubferry::migration
