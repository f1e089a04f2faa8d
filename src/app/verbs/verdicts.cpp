#include "app/verbs/verdicts.hpp"

#include <algorithm>
#include <stdexcept>

#include "hubferry/migration/cluster_record.hpp"
#include "hubferry/migration/phases.hpp"

namespace hubferry::app {

namespace {

using Kind = Verdict::Kind;
using migration::PhaseKind;

std::string state_of(const MigrationView& migration) {
  return migration.phase.empty() ? "new" : migration.phase;
}

Verdict refused(std::string reason) {
  return {Kind::refused, std::move(reason), false};
}

bool is_rolled_back(const MigrationView& migration) {
  return std::ranges::any_of(migration.conditions, [](const auto& condition) {
    return condition.type == migration::conditions::rolled_back && condition.status == "True";
  });
}

/// Its cleanup has left something behind.
bool ended_with_leftovers(const MigrationView& migration) {
  return std::ranges::any_of(migration.conditions, [](const auto& condition) {
    return condition.type == migration::conditions::cleaned && condition.reason == migration::reasons::left_behind;
  });
}

}  // namespace

Verdict judge_cancel(const MigrationView& migration) {
  if (migration.being_deleted) return {Kind::unnecessary, "it is being cancelled already"};
  if (migration.has_ended())
    return refused("it has ended (" + migration.phase + "): there is nothing to cancel; `kubectl -n " +
                   migration.key.ns + " delete mcm " + migration.key.name +
                   "` deletes its record and changes no cluster");
  const auto* phase = migration::find_phase(migration.phase);
  if (phase == nullptr && !migration.phase.empty())
    return refused("it is in phase " + migration.phase + ", which this version of hubferry does not know");
  if (phase == nullptr || (phase->kind != PhaseKind::rollback && !phase->rollback_depth && !phase->survives_deletion))
    return {Kind::possible, "nothing was changed yet; it is deleted", false};
  if (phase->kind == PhaseKind::rollback) return refused("it is being rolled back already (" + migration.phase + ")");
  if (phase->survives_deletion)
    return refused("its clusters have arrived on " + migration.to + " (" + migration.phase +
                   "): they stay there. To move them back, migrate them from " + migration.to + " to " +
                   migration.from + "; if " + migration.to + " has lost them, use rollback");
  return {Kind::possible, "its clusters are rolled back to " + migration.from +
                              ", except for those that have arrived; then it is deleted"};
}

Verdict judge_rollback_request(const MigrationView& migration, bool is_requested) {
  if (migration.being_deleted) return refused("it is being deleted, which rolls it back as far as necessary");
  const bool cleans = migration.phase == migration::phases::cleaning;
  if (cleans || (migration.has_ended() && ended_with_leftovers(migration))) {
    if (is_requested) return {Kind::unnecessary, "its rollback has been requested already"};
    return {Kind::possible, "clusters that " + migration.to + " has lost return to " + migration.from +
                                ", if that still has them; those that are on " + migration.to + " stay there"};
  }
  if (!migration.has_ended())
    return refused("it has not ended (" + state_of(migration) + "): cancel it to have its clusters rolled back");
  if (migration.has_succeeded())
    return refused("it has completed: to move its clusters back, migrate them from " + migration.to + " to " +
                   migration.from);
  if (is_requested) return {Kind::unnecessary, "its rollback has been requested already"};
  if (!migration.rollback_stage) return refused("it failed before anything was changed: there is nothing to roll back");
  if (is_rolled_back(migration)) return refused("its rollback is complete: nothing was left behind");
  return {Kind::possible, "its rollback is retried"};
}

Verdict judge_retry(const MigrationView& migration) {
  if (migration.being_deleted) return refused("it is being deleted");
  if (!migration.has_ended()) return refused("it has not ended (" + state_of(migration) + ")");
  if (migration.has_succeeded()) return refused("it has completed: no cluster failed");
  return {Kind::possible, ""};
}

migration::MigrationSpec retry_spec(const kube::Object& migration, const std::optional<kube::Object>& ledger) {
  auto spec = migration::read_spec(migration.json());
  const auto view = view_of(migration);
  spec.from = view.from;
  spec.to = view.to;
  if (!ledger) {
    // Without a ledger nothing was changed, unless somebody deleted it.
    if (!view.rollback_stage && view.clusters.migrated == 0) return spec;
    throw std::runtime_error("the ledger of migration " + kube::to_string(view.key) +
                             ", the ConfigMap of that name, is missing: it is unknown which clusters failed");
  }
  hubagent::ClusterNames remaining;
  for (const auto& cluster : migration::read_clusters(*ledger))
    if (!cluster.arrived) remaining.push_back(cluster.name);
  if (remaining.empty())
    throw std::runtime_error("all clusters of migration " + kube::to_string(view.key) +
                             " have arrived, according to its ledger: there is nothing to retry");
  std::ranges::sort(remaining);
  spec.placement.reset();
  spec.clusters = std::move(remaining);
  return spec;
}

}  // namespace hubferry::app
