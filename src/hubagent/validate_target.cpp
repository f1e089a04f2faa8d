#include "hubagent/marks.hpp"
#include "hubagent/selection.hpp"
#include "hubagent/source_operations.hpp"
#include "hubagent/target_operations.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// Would what travels meet something of that kind? A namespace without any of it is as good as none.
Awaitable<Result<>> check_namespace(const Hub& hub, const CarriedResources& kinds, MigrationRef migration,
                                    std::string cluster) {
  auto space = co_await read_if_there(hub, kube::resources::namespaces, cluster_scoped(cluster));
  if (!space) co_return space.error();
  if (!*space) co_return Result<>{};
  if ((*space)->is_being_deleted())
    co_return failure(reasons::conflict,
                      "namespace " + cluster + " on hub " + hub.name() + " is being deleted: wait until it has gone");
  for (const auto& kind : kinds) {
    if (!kind.resource.namespaced) continue;
    auto objects = co_await list(hub, kind.resource, cluster);
    if (!objects) co_return objects.error();
    for (const auto& object : *objects)
      if (is_selected(kind, cluster, object) && !is_ours(migration, object))
        co_return failure(reasons::conflict, "namespace " + cluster + " on hub " + hub.name() + " holds " +
                                                 described(kind.resource, object.key()) + " already, of " +
                                                 owner_of(object.json()) +
                                                 ": remove it, or keep the cluster where it is");
  }
  co_return Result<>{};
}

Awaitable<Result<>> validate_one(Hub& hub, const CarriedResources& kinds, MigrationRef migration, std::string cluster,
                                 Slot slot) {
  if (const auto known = hub.clusters().get(cluster_scoped(cluster));
      known != nullptr && known->label(migration_label) != migration.uid)
    co_return failure(reasons::conflict, "there is a managed cluster " + cluster + " on hub " + hub.name() +
                                             " already: names must differ between the two hubs");
  auto checked = co_await check_namespace(hub, kinds, std::move(migration), std::move(cluster));
  slot.release();
  co_return checked;
}

}  // namespace

Awaitable<Result<Outcome>> validate_on_target(Hub& hub, MigrationRef migration, ClusterNames clusters) {
  auto seen = co_await see_clusters(hub);
  if (!seen) co_return seen.error();
  auto kinds = co_await served_kinds(hub);
  if (!kinds) co_return kinds.error();
  auto treat = [&](std::string cluster, Slot slot) {
    return validate_one(hub, *kinds, migration, std::move(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(hub, std::move(clusters), treat);
}

}  // namespace hubferry::hubagent
