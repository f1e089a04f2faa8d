#include "hubagent/marks.hpp"
#include "hubagent/source_orders.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

Awaitable<Result<>> release_one(const Hub& hub, MigrationRef migration, std::string cluster, Slot slot) {
  auto let_go = [&](json::object& object) {
    if (!is_in_our_hands(migration, Object{object})) return false;
    auto& accepts = section(object, "spec")["hubAcceptsClient"];
    if (accepts == false) return false;
    accepts = false;
    return true;
  };
  auto released = co_await edit(hub, ocm::managed_clusters, cluster_scoped(cluster), let_go);
  if (!released && released.error().kind == ErrorKind::not_found) co_return no_such_cluster(hub, cluster);
  if (!released) co_return released.error();
  if (!is_in_our_hands(migration, *released)) co_return not_in_our_hands(hub, cluster, *released);
  slot.release();
  co_return Result<>{};
}

}  // namespace

Awaitable<Result<Outcome>> release_clusters(Hub& hub, MigrationRef migration, ClusterNames clusters) {
  auto treat = [&](std::string cluster, Slot slot) {
    return release_one(hub, migration, std::move(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(hub, std::move(clusters), treat);
}

}  // namespace hubferry::hubagent
