#include "hubagent/heartbeats.hpp"
#include "hubagent/marks.hpp"
#include "hubagent/pause.hpp"
#include "hubagent/source_operations.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

/// A lease of the time before keeps the hub from seeing the cluster as gone, and the cluster from being seen anew.
Awaitable<Result<>> remove_lease(const Hub& hub, std::string cluster) {
  auto lease = co_await read_if_there(hub, kube::resources::leases, ocm::lease_key(cluster));
  if (!lease) co_return lease.error();
  if (!*lease) co_return Result<>{};
  auto removed = co_await remove(hub, kube::resources::leases, **lease);
  if (!removed) co_return removed.error();
  co_return Result<>{};
}

/// Takes the migration's marks off, and accepts the cluster again where it had been let go. One write.
bool give_back(json::object& object, const MigrationRef& migration, bool accept) {
  if (annotation_text(object, migrating_annotation) != migration.uid) return false;
  drop_annotation(object, migrating_annotation);
  if (annotation_text(object, disable_auto_import_annotation) == migration.uid)
    drop_annotation(object, disable_auto_import_annotation);
  if (annotation_text(object, klusterlet_config_annotation) == migration.klusterlet_config()) {
    const std::string before{annotation_text(object, marks::klusterlet_config_before)};
    if (before.empty())
      drop_annotation(object, klusterlet_config_annotation);
    else
      set_annotation(object, klusterlet_config_annotation, before);
  }
  drop_annotation(object, marks::klusterlet_config_before);
  if (accept) kube::object_in(object, "spec")["hubAcceptsClient"] = true;
  return true;
}

bool is_accepted(const Object& cluster) {
  const auto* accepts = cluster.find({"spec", "hubAcceptsClient"});
  return accepts != nullptr && *accepts == true;
}

Awaitable<Result<>> roll_back_one(Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration, Stage stage,
                                  std::string cluster, Slot slot, Heartbeats* heartbeats) {
  auto resumed = co_await end_own_pauses(hub, std::move(kinds), migration, cluster);
  if (!resumed) co_return resumed.error();
  auto found = co_await read_if_there(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  // There is nothing left to undo; but a cluster that was let go cannot come back to nothing.
  if (!*found && stage == Stage::registering) co_return no_such_cluster(hub, cluster);
  if (!*found) co_return Result<>{};

  const bool let_go = stage == Stage::registering;
  Object current = **found;
  if (is_in_our_hands(migration, current)) {
    if (let_go && !is_accepted(current)) {
      auto removed = co_await remove_lease(hub, cluster);
      if (!removed) co_return removed.error();
    }
    auto mutate = [&](json::object& object) { return give_back(object, migration, let_go); };
    auto given = co_await edit(hub, ocm::managed_clusters, current, mutate);
    if (!given) co_return given.error();
    current = *given;
  }
  slot.release();
  if (!let_go) co_return Result<>{};
  // Another migration, or a person, has taken it since: its return is theirs to see to.
  if (!is_accepted(current)) co_return Result<>{};
  co_await heartbeats->next(cluster);
  auto is_available = [](const ocm::ManagedCluster* seen) { return seen != nullptr && seen->is_true(available); };
  co_await hub.clusters().wait_for(cluster_scoped(cluster), is_available, async::never);
  co_return Result<>{};
}

}  // namespace

Awaitable<Result<Outcome>> roll_back_on_source(Hub& hub, MigrationRef migration, Stage stage, ClusterNames clusters) {
  auto kinds = co_await served_pausing_kinds(hub);
  if (!kinds) co_return kinds.error();
  Result<Outcome> outcome{Outcome{}};
  Heartbeats heartbeats{hub};
  auto treat = [&](std::string cluster, Slot slot) {
    return roll_back_one(hub, *kinds, migration, stage, std::move(cluster), std::move(slot), &heartbeats);
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    if (stage == Stage::registering) scope.spawn(heartbeats.run());
    outcome = co_await for_each_cluster(hub, std::move(clusters), treat);
    scope.stop();
  };
  co_await async::with_scope(std::move(body));
  co_return outcome;
}

}  // namespace hubferry::hubagent
