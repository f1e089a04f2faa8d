#include "hubagent/annotations.hpp"
#include "hubagent/arrival.hpp"
#include "hubagent/direct_hubs.hpp"
#include "hubagent/pause.hpp"
#include "hubagent/selection.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/resources.hpp"

/// How a migration ends on the source: the clusters are deleted here (clean), or returned to this hub (roll_back).
namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

/// A detached cluster cannot remove its add-ons itself, and they would block the deletion of its namespace.
Awaitable<Result<>> delete_observability(const Hub& hub, std::string ns) {
  auto addons = co_await list(hub, ocm::observability_addons, ns);
  if (!addons) co_return addons.error();
  auto drop_finalizers = [](json::object& object) { return drop_finalizers_ending(object, ""); };
  for (const auto& addon : *addons) {
    auto rest = co_await delete_object(hub, ocm::observability_addons, addon);
    if (!rest) co_return rest.error();
    if (!*rest) continue;
    auto dropped = co_await edit_if_exists(hub, ocm::observability_addons, **rest, drop_finalizers);
    if (!dropped) co_return dropped.error();
  }
  co_return Result<>{};
}

/// What was copied of the cluster and is still in its namespace: "Secret c1/c1-admin-kubeconfig"; empty: nothing.
Awaitable<Result<std::string>> find_leftover(const Hub& hub, const CarriedResources& kinds, std::string cluster) {
  for (const auto& kind : kinds) {
    if (!kind.resource.namespaced) continue;
    auto objects = co_await list(hub, kind.resource, cluster);
    if (!objects) co_return objects.error();
    for (const auto& object : *objects)
      if (is_selected(kind, cluster, object)) co_return described(kind.resource, object.key());
  }
  co_return std::string{};
}

/// The hub deletes the namespace after the cluster. Credentials must not stay behind in one that it keeps.
Awaitable<Result<>> wait_until_emptied(Hub& hub, const CarriedResources& kinds, std::string cluster) {
  const Key key = cluster_scoped(cluster);
  auto space = co_await get_if_exists(hub, kube::resources::namespaces, key);
  if (!space) co_return space.error();
  if (!*space) co_return Result<>{};
  std::string leftover = "objects of the cluster";
  // While it is being deleted, our permissions in it may be gone before the rest.
  if (!(*space)->is_being_deleted()) {
    auto found = co_await find_leftover(hub, kinds, cluster);
    if (found && found->empty()) co_return Result<>{};
    if (!found && !found.error().is(ErrorKind::forbidden)) co_return found.error();
    if (found) leftover = *found;
  }
  auto permit = co_await hub.small_watches().acquire();
  auto is_gone = [](const Object* object) { return object == nullptr; };
  const auto deadline = hub.env().clock.now() + hub.options().busy_timeout;
  const bool gone =
      co_await kube::wait_for_object(hub.api(), kube::resources::namespaces, key, is_gone, deadline, hub.env());
  if (gone) co_return Result<>{};
  co_return Error{FailureReason::error, "cluster " + cluster + " is deleted from hub " + hub.name() +
                                            ", but the hub keeps its namespace, which has " + leftover +
                                            ": delete what holds the namespace, then the namespace"};
}

Awaitable<Result<>> clean_source_cluster(Hub& hub, std::vector<PausingKind> kinds, const CarriedResources& carried,
                                         MigrationRef migration, std::string cluster, Slot slot) {
  auto found = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found) {
    slot.release();
    co_return co_await wait_until_emptied(hub, carried, cluster);
  }
  if (!is_claimed_by(migration, **found)) co_return not_claimed(hub, cluster, **found);

  auto observed = co_await delete_observability(hub, cluster);
  if (!observed) co_return observed.error();
  auto prevented = co_await prevent_deprovisioning(hub, std::move(kinds), migration, cluster);
  if (!prevented) co_return prevented.error();
  auto freed = co_await delete_deployments(hub, migration, cluster);
  if (!freed) co_return freed.error();
  auto rest = co_await delete_object(hub, ocm::managed_clusters, **found);
  if (!rest) co_return rest.error();
  slot.release();
  if (*rest) co_await wait_until_deleted(hub, **rest);
  co_return co_await wait_until_emptied(hub, carried, cluster);
}

/// A lease from before the cut-over hides that the cluster is away, and so its return.
Awaitable<Result<>> delete_lease(const Hub& hub, std::string cluster) {
  auto lease = co_await get_if_exists(hub, kube::resources::leases, ocm::lease_key(cluster));
  if (!lease) co_return lease.error();
  if (!*lease) co_return Result<>{};
  auto deleted = co_await delete_object(hub, kube::resources::leases, **lease);
  if (!deleted) co_return deleted.error();
  co_return Result<>{};
}

/// Removes the claim and what came with it, and accepts the cluster again where it had been detached. One write.
bool drop_claim(json::object& object, const MigrationRef& migration, bool accept) {
  if (annotation_text(object, migrating_annotation) != migration.uid) return false;
  drop_annotation(object, migrating_annotation);
  if (annotation_text(object, disable_auto_import_annotation) == migration.uid)
    drop_annotation(object, disable_auto_import_annotation);
  const std::string before{annotation_text(object, annotations::klusterlet_config_before)};
  if (annotation_text(object, klusterlet_config_annotation) == migration.klusterlet_config(before)) {
    if (before.empty())
      drop_annotation(object, klusterlet_config_annotation);
    else
      set_annotation(object, klusterlet_config_annotation, before);
  }
  drop_annotation(object, annotations::klusterlet_config_before);
  if (annotation_text(object, accepted_on_annotation) == migration.uid) drop_annotation(object, accepted_on_annotation);
  if (accept) kube::object_in(object, "spec")["hubAcceptsClient"] = true;
  return true;
}

bool is_accepted(const Object& cluster) {
  const auto* accepts = cluster.find({"spec", "hubAcceptsClient"});
  return accepts != nullptr && *accepts == true;
}

Awaitable<Result<>> roll_back_source_cluster(Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration,
                                             Stage stage, std::string cluster, Slot slot, Heartbeats& heartbeats) {
  auto resumed = co_await resume_all(hub, std::move(kinds), migration, cluster);
  if (!resumed) co_return resumed.error();
  auto found = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  // Without a ManagedCluster there is nothing to undo; but a detached cluster then has no hub to return to.
  const bool was_detached = stage == Stage::registering;
  if (!*found && was_detached) co_return no_such_cluster(hub, cluster);
  if (!*found) co_return Result<>{};

  Object current = **found;
  if (is_claimed_by(migration, current)) {
    if (was_detached && !is_accepted(current)) {
      auto deleted = co_await delete_lease(hub, cluster);
      if (!deleted) co_return deleted.error();
    }
    auto mutate = [&](json::object& object) { return drop_claim(object, migration, was_detached); };
    auto dropped = co_await edit(hub, ocm::managed_clusters, current, mutate);
    if (!dropped) co_return dropped.error();
    current = *dropped;
  }
  slot.release();
  if (!was_detached) co_return Result<>{};
  // Another migration, or a person, has detached it since: its return is not ours to wait for.
  if (!is_accepted(current)) co_return Result<>{};
  co_await heartbeats.wait_for_renewal(cluster);
  auto is_available = [](const ocm::ManagedCluster* seen) { return seen != nullptr && seen->is_true(available); };
  co_await hub.clusters().wait_for(cluster_scoped(cluster), is_available, async::never);
  co_return Result<>{};
}

}  // namespace

Awaitable<Result<Outcome>> DirectSourceHub::clean(MigrationRef migration, ClusterNames clusters) {
  auto& hub = *hub_;
  auto synced = co_await wait_for_cluster_cache(hub);
  if (!synced) co_return synced.error();
  auto kinds = co_await served_pausing_kinds(hub);
  if (!kinds) co_return kinds.error();
  auto carried = co_await served_carried_kinds(hub);
  if (!carried) co_return carried.error();
  auto process = [&](std::string cluster, Slot slot) {
    return clean_source_cluster(hub, *kinds, *carried, migration, std::move(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(hub, std::move(clusters), process);
}

Awaitable<Result<Outcome>> DirectSourceHub::roll_back(MigrationRef migration, Stage stage, ClusterNames clusters) {
  auto& hub = *hub_;
  auto kinds = co_await served_pausing_kinds(hub);
  if (!kinds) co_return kinds.error();
  Result<Outcome> outcome{Outcome{}};
  Heartbeats heartbeats{hub};
  auto process = [&](std::string cluster, Slot slot) {
    return roll_back_source_cluster(hub, *kinds, migration, stage, std::move(cluster), std::move(slot), heartbeats);
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    if (stage == Stage::registering) scope.spawn(heartbeats.run());
    outcome = co_await for_each_cluster(hub, std::move(clusters), process);
    scope.stop();
  };
  co_await async::with_scope(std::move(body));
  co_return outcome;
}

}  // namespace hubferry::hubagent
