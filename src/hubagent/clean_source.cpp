#include "hubagent/pause.hpp"
#include "hubagent/source_operations.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// A cluster that is not accepted any more cannot take its add-ons off by itself, and they would hold its namespace.
Awaitable<Result<>> remove_observability(const Hub& hub, std::string ns) {
  auto addons = co_await list(hub, ocm::observability_addons, ns);
  if (!addons) co_return addons.error();
  auto let_go = [](json::object& object) { return drop_finalizers_ending(object, ""); };
  for (const auto& addon : *addons) {
    auto rest = co_await remove(hub, ocm::observability_addons, addon);
    if (!rest) co_return rest.error();
    if (!*rest) continue;
    auto freed = co_await edit_if_there(hub, ocm::observability_addons, **rest, let_go);
    if (!freed) co_return freed.error();
  }
  co_return Result<>{};
}

Awaitable<> await_cluster_gone(Hub& hub, std::string cluster, std::string uid) {
  auto is_gone = [uid](const ocm::ManagedCluster* seen) { return seen == nullptr || seen->uid() != uid; };
  co_await hub.clusters().wait_for(cluster_scoped(std::move(cluster)), is_gone, async::never);
}

Awaitable<Result<>> clean_source_cluster(Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration,
                                         std::string cluster, Slot slot) {
  auto found = co_await read_if_there(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found) co_return Result<>{};
  if (!is_in_our_hands(migration, **found)) co_return not_in_our_hands(hub, cluster, **found);

  auto observed = co_await remove_observability(hub, cluster);
  if (!observed) co_return observed.error();
  auto disarmed = co_await disarm(hub, std::move(kinds), migration, cluster);
  if (!disarmed) co_return disarmed.error();
  auto rest = co_await remove(hub, ocm::managed_clusters, **found);
  if (!rest) co_return rest.error();
  slot.release();
  if (!*rest) co_return Result<>{};
  // The cache may not know of our deletion yet, but then it still shows the object.
  co_await hub.clusters().wait_until_seen(cluster_scoped(cluster), std::string{(*rest)->resource_version()},
                                          async::never);
  co_await await_cluster_gone(hub, cluster, std::string{(*found)->uid()});
  co_return Result<>{};
}

}  // namespace

Awaitable<Result<Outcome>> clean_on_source(Hub& hub, MigrationRef migration, ClusterNames clusters) {
  auto seen = co_await see_clusters(hub);
  if (!seen) co_return seen.error();
  auto kinds = co_await served_pausing_kinds(hub);
  if (!kinds) co_return kinds.error();
  auto treat = [&](std::string cluster, Slot slot) {
    return clean_source_cluster(hub, *kinds, migration, std::move(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(hub, std::move(clusters), treat);
}

}  // namespace hubferry::hubagent
