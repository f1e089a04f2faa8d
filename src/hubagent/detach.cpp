#include "hubagent/arrival.hpp"
#include "hubagent/marks.hpp"
#include "hubagent/source_operations.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// Has the cluster's agent got the way to the target? It comes by this work, where there is one: our Secret is in it,
/// and the agent has applied it as it is now.
bool shows_the_way(const Object* work, const MigrationRef& migration) {
  if (work == nullptr) return true;
  const auto* manifests = work->find({"spec", "workload", "manifests"});
  const auto is_ours = [&](const json::value& manifest) {
    return manifest.is_object() && kube::string_at(manifest.get_object(), {"kind"}) == "Secret" &&
           kube::string_at(manifest.get_object(), {"metadata", "name"}) == migration.bootstrap_secret();
  };
  if (manifests == nullptr || !manifests->is_array() || std::ranges::none_of(manifests->get_array(), is_ours))
    return false;
  const auto* applied = kube::find_condition(*work, "Applied");
  if (applied == nullptr || kube::string_at(*applied, {"status"}) != "True") return false;
  const auto* generation = applied->if_contains("observedGeneration");
  return generation == nullptr || *generation == work->generation();
}

/// A cluster that is let go before its agent knows where to can be told nothing any more.
Awaitable<Result<>> await_the_way(Hub& hub, MigrationRef migration, std::string cluster) {
  auto shown = [migration](const Object* work) { return shows_the_way(work, migration); };
  auto& clock = hub.env().clock;
  std::exception_ptr error;
  try {
    co_return co_await async::with_deadline(clock, clock.now() + hub.options().busy_timeout,
                                            await_klusterlet_work(hub, cluster, shown));
  } catch (...) {
    error = std::current_exception();
  }
  if (!async::is_timeout(error)) std::rethrow_exception(error);
  co_return failure(reasons::other, "cluster " + cluster + " was not let go by hub " + hub.name() +
                                        ": its agent has not applied ManifestWork " + cluster + "-klusterlet with " +
                                        "Secret " + migration.bootstrap_secret() + " yet, the way to the other hub");
}

bool was_let_go(const Object& cluster) {
  const auto* accepts = cluster.find({"spec", "hubAcceptsClient"});
  return accepts != nullptr && *accepts == false;
}

Awaitable<Result<>> release_one(Hub& hub, bool works_served, MigrationRef migration, std::string cluster, Slot slot) {
  auto found = co_await read_if_there(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found) co_return no_such_cluster(hub, cluster);
  if (!is_in_our_hands(migration, **found)) co_return not_in_our_hands(hub, cluster, **found);
  if (was_let_go(**found)) co_return Result<>{};
  if (works_served) {
    slot.release();
    auto shown = co_await await_the_way(hub, migration, cluster);
    if (!shown) co_return shown.error();
    slot = co_await hub.slot();
  }
  auto let_go = [&](json::object& object) {
    if (!is_in_our_hands(migration, Object{object})) return false;
    auto& accepts = kube::object_in(object, "spec")["hubAcceptsClient"];
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

Awaitable<Result<Outcome>> detach_clusters(Hub& hub, MigrationRef migration, ClusterNames clusters) {
  auto served = co_await serves(hub, ocm::manifest_works);
  if (!served) co_return served.error();
  auto treat = [&](std::string cluster, Slot slot) {
    return release_one(hub, *served, migration, std::move(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(hub, std::move(clusters), treat);
}

}  // namespace hubferry::hubagent
