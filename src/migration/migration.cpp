#include "migration/migration.hpp"

#include <algorithm>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"

namespace hubferry::migration {

namespace {

constexpr std::size_t longest_problem = 1024;

std::optional<WallTime> read_time(std::string_view text) {
  if (text.empty()) return std::nullopt;
  try {
    return async::parse_time(text);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

}  // namespace

hubagent::MigrationRef Migration::ref() const {
  return {std::string{object.ns()}, std::string{object.name()}, std::string{object.uid()}};
}

bool Migration::asks_for_rollback() const {
  return object.annotation(names::request_annotation) == names::rollback_request;
}

bool Migration::is_held_back() const {
  return is_being_deleted() && kube::has_finalizer(object, names::finalizer);
}

std::string Migration::pinned(std::string_view field) const {
  const auto noted = kube::string_at(status, {field});
  return std::string{noted.empty() ? object.string_at({"spec", field}) : noted};
}

void Migration::pin_hubs() {
  for (const auto* field : {"from", "to"}) status[field] = object.string_at({"spec", field});
}

std::optional<ClusterNames> Migration::listed_clusters() const {
  const auto* listed = object.find({"spec", "includedManagedClusters"});
  if (listed == nullptr || !listed->is_array()) return std::nullopt;
  ClusterNames names;
  for (const auto& entry : listed->get_array())
    if (entry.is_string() && !entry.get_string().empty()) names.emplace_back(entry.get_string());
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<std::string> Migration::placement() const {
  const auto name = object.string_at({"spec", "includedManagedClustersPlacementRef"});
  return name.empty() ? std::nullopt : std::optional<std::string>{name};
}

void Migration::enter(const Phase& phase, WallTime now) {
  status["stage"] = json::object{{"phase", phase}, {"startTime", async::format_micro_time(now)}};
}

std::optional<WallTime> Migration::entered(const Phase& phase) const {
  if (kube::string_at(status, {"stage", "phase"}) != phase) return std::nullopt;
  return read_time(kube::string_at(status, {"stage", "startTime"}));
}

std::optional<WallTime> Migration::time(std::string_view field) const {
  return read_time(kube::string_at(status, {field}));
}

void Migration::set_time(std::string_view field, WallTime time) {
  status[field] = async::format_micro_time(time);
}

std::optional<Credential> Migration::credential() const {
  Credential credential{std::string{kube::string_at(status, {"credential", "kind"})},
                        {std::string{kube::string_at(status, {"credential", "namespace"})},
                         std::string{kube::string_at(status, {"credential", "name"})}}};
  if (credential.kind.empty()) return std::nullopt;
  return credential;
}

void Migration::set_credential(const Credential& credential) {
  status["credential"] = json::object{
      {"kind", credential.kind}, {"namespace", credential.identity.ns}, {"name", credential.identity.name}};
}

std::optional<hubagent::Stage> Migration::rollback_stage() const {
  return stage_from(kube::string_at(status, {"rollbackStage"}));
}

void Migration::set_rollback_stage(hubagent::Stage stage) {
  status["rollbackStage"] = to_string(stage);
}

void Migration::note_problem(std::string_view activity, std::string_view step, std::string_view sentence) {
  kube::object_in(status, activity)[step] = phase::shortened(sentence, longest_problem);
}

json::object Migration::problems(std::string_view activity) const {
  const auto* noted = kube::find(status, {activity});
  return noted != nullptr && noted->is_object() ? noted->get_object() : json::object{};
}

bool wants_to_resume(const Migration& migration) {
  const auto phase = migration.phase();
  if (phase == phases::failed && migration.asks_for_rollback() && !migration.is_being_deleted()) return true;
  return is_terminal(phase) && migration.is_held_back();
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
