#include "hubagent/allow_list.hpp"
#include "hubagent/marks.hpp"
#include "hubagent/pause.hpp"
#include "hubagent/source_operations.hpp"
#include "hubagent/target_operations.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::hubagent {

namespace {

using kube::resources::namespaces;

/// What one order needs on its way: the kinds that may have been created, and the namespaces that were.
struct Undoing {
  Hub& hub;
  MigrationRef migration;
  std::vector<Resource> kinds;     // served here, without ManagedCluster
  kube::Cache<Object> own_spaces;  // namespaces with our label
};

kube::CacheOptions ours_only(const MigrationRef& migration) {
  kube::CacheOptions options;
  options.label_selector = ours_selector(migration);
  return options;
}

/// An agent that has come already leaves at once when it is not accepted any more.
Awaitable<Result<Object>> turn_away(const Hub& hub, MigrationRef migration, Object cluster) {
  auto refuse = [&](json::object& object) {
    auto& accepts = kube::object_in(object, "spec")["hubAcceptsClient"];
    if (!is_ours(migration, object) || accepts == false) return false;
    accepts = false;
    return true;
  };
  co_return co_await edit(hub, ocm::managed_clusters, std::move(cluster), refuse);
}

Awaitable<Result<>> remove_ours(const Hub& hub, Resource resource, MigrationRef migration, std::string ns) {
  auto objects = co_await list(hub, resource, ns, ours_selector(migration));
  if (!objects) co_return objects.error();
  const auto* pausing = find_pausing(resource);
  for (const auto& object : *objects) {
    if (pausing != nullptr) {
      auto disarmed = co_await disarm_one(hub, *pausing, migration, object);
      if (!disarmed) co_return disarmed.error();
    }
    auto removed = co_await remove(hub, resource, object);
    if (!removed) co_return removed.error();
  }
  co_return Result<>{};
}

/// Also what would keep hosts and deployments in a namespace that is about to go.
Awaitable<Result<>> remove_contents(const Undoing& undoing, std::string cluster) {
  // Last sent, first removed: what others refer to goes last.
  for (auto kind = undoing.kinds.rbegin(); kind != undoing.kinds.rend(); ++kind) {
    auto removed = co_await remove_ours(undoing.hub, *kind, undoing.migration, cluster);
    if (!removed) co_return removed.error();
  }
  co_return Result<>{};
}

/// The ManagedCluster, if it is ours; with an agent on it turned away.
Awaitable<Result<std::optional<Object>>> find_cluster(const Undoing& undoing, Stage stage, std::string cluster) {
  auto found = co_await read_if_there(undoing.hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found || !is_ours(undoing.migration, **found)) co_return std::optional<Object>{};
  if (stage != Stage::registering) co_return found;
  auto refused = co_await turn_away(undoing.hub, undoing.migration, **found);
  if (refused) co_return std::optional<Object>{*refused};
  if (refused.error().kind == ErrorKind::not_found) co_return std::optional<Object>{};
  co_return refused.error();
}

/// Deletes the ManagedCluster; the answer says what is left of it.
Awaitable<Result<std::optional<Object>>> remove_cluster(const Undoing& undoing, std::optional<Object> cluster) {
  if (!cluster) co_return std::optional<Object>{};
  co_return co_await remove(undoing.hub, ocm::managed_clusters, *cluster);
}

/// Deletes the namespace if it is ours, and tells its uid.
Awaitable<Result<std::string>> remove_namespace(const Undoing& undoing, std::string cluster) {
  auto found = co_await read_if_there(undoing.hub, namespaces, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found || !is_ours(undoing.migration, **found)) co_return std::string{};
  auto removed = co_await remove(undoing.hub, namespaces, **found);
  if (!removed) co_return removed.error();
  co_return *removed ? std::string{(*found)->uid()} : std::string{};
}

Awaitable<Result<>> roll_back_one(Undoing& undoing, Stage stage, std::string cluster, Slot slot) {
  auto& hub = undoing.hub;
  const Key key = cluster_scoped(cluster);
  auto found = co_await find_cluster(undoing, stage, cluster);
  if (!found) co_return found.error();
  // Before the cluster: with it the hub deletes the namespace, and nothing in it must be deprovisioned then.
  auto emptied = co_await remove_contents(undoing, cluster);
  if (!emptied) co_return emptied.error();
  auto rest = co_await remove_cluster(undoing, *found);
  if (!rest) co_return rest.error();
  slot.release();
  if (*rest) {
    const std::string uid{(*rest)->uid()};
    const std::string version{(*rest)->resource_version()};
    auto is_gone = [uid](const ocm::ManagedCluster* seen) { return seen == nullptr || seen->uid() != uid; };
    co_await hub.clusters().wait_until_seen(key, version, async::never);
    co_await hub.clusters().wait_for(key, is_gone, async::never);
  }
  // Last: the hub's own controllers still work in it while the cluster is there.
  slot = co_await hub.slot();
  auto uid = co_await remove_namespace(undoing, cluster);
  slot.release();
  if (!uid) co_return uid.error();
  if (uid->empty()) co_return Result<>{};
  auto is_gone = [&](const Object* seen) { return seen == nullptr || seen->uid() != *uid; };
  co_await undoing.own_spaces.wait_for(key, is_gone, async::never);
  co_return Result<>{};
}

}  // namespace

Awaitable<Result<Outcome>> roll_back_on_target(Hub& hub, MigrationRef migration, Stage stage, ClusterNames clusters) {
  // Before Deploying nothing has been created for single clusters.
  if (stage == Stage::initializing) co_return Outcome{std::move(clusters), {}};
  auto visible = co_await see_clusters(hub);
  if (!visible) co_return visible.error();
  std::vector<Resource> kinds;
  for (const auto& kind : admitted_kinds(hub.carried())) {
    if (!kind.namespaced) continue;
    auto is_served = co_await serves(hub, kind);
    if (!is_served) co_return is_served.error();
    if (*is_served) kinds.push_back(kind);
  }
  Undoing undoing{hub,
                  migration,
                  std::move(kinds),
                  {hub.api(), namespaces, ours_only(migration), kube::object_decoder(), hub.env()}};
  Result<Outcome> outcome{Outcome{}};
  auto treat = [&](std::string cluster, Slot slot) {
    return roll_back_one(undoing, stage, std::move(cluster), std::move(slot));
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(undoing.own_spaces.run());
    // Its first list must not be older than our deletions: who waits would take an unseen namespace for a gone one.
    co_await undoing.own_spaces.wait_synced();
    outcome = co_await for_each_cluster(hub, std::move(clusters), treat);
    scope.stop();
  };
  co_await async::with_scope(std::move(body));
  co_return outcome;
}

}  // namespace hubferry::hubagent
