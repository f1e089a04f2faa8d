#include "hubagent/annotations.hpp"
#include "hubagent/arrival.hpp"
#include "hubagent/direct_hubs.hpp"
#include "hubagent/pause.hpp"
#include "hubagent/selection.hpp"
#include "hubagent/self_registration.hpp"
#include "hubagent/source_return.hpp"
#include "hubagent/works.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

/// How a migration ends on the target: the clusters stay (clean), or their copies are deleted (roll_back).
namespace hubferry::hubagent {

namespace {

using kube::resources::namespaces;

/// Our label stays: no other migration looks for this uid, and it shows where the object came from.
Awaitable<Result<>> clean_target_cluster(Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration,
                                         std::string cluster, Slot slot) {
  auto resumed = co_await resume_all(hub, std::move(kinds), migration, cluster);
  if (!resumed) co_return resumed.error();
  auto restored = co_await remove_restore_labels(hub, cluster);
  if (!restored) co_return restored.error();
  auto cleaned = co_await enable_import(hub, migration, cluster);
  slot.release();
  if (cleaned) co_return Result<>{};
  if (cleaned.error().is(ErrorKind::not_found)) co_return no_such_cluster(hub, cluster);
  co_return cleaned.error();
}

/// What one rollback needs: the kinds that may have been created, and the namespaces that were.
struct TargetRollback {
  Hub& hub;
  MigrationRef migration;
  std::vector<Resource> kinds;         // served here, without ManagedCluster
  RegistrationRight right;             // of Stage::deploying
  kube::Cache<Object> own_namespaces;  // namespaces with our label
};

kube::CacheOptions ours_only(const MigrationRef& migration) {
  kube::CacheOptions options;
  options.label_selector = ours_selector(migration);
  return options;
}

/// An agent that has arrived already leaves at once when it is no longer accepted.
Awaitable<Result<Object>> deny(const Hub& hub, MigrationRef migration, Object cluster,
                               std::function<bool(const Object& current)> may_deny = {}) {
  auto set_denied = [&](json::object& object) {
    if (may_deny && !may_deny(Object{object})) return false;
    auto& accepts = kube::object_in(object, "spec")["hubAcceptsClient"];
    if (!is_ours(migration, object) || accepts == false) return false;
    accepts = false;
    keep_denied(object, migration);
    return true;
  };
  co_return co_await edit(hub, ocm::managed_clusters, std::move(cluster), set_denied);
}

/// True for objects that somebody else may have put into the cluster's namespace since it was deployed, and that must
/// not go with it: machines, users' works, and what users mark as theirs. (Hub controllers create objects there as
/// well.)
bool is_foreign(const TargetRollback& rollback, const Resource& resource, const std::string& cluster,
                const Object& object) {
  if (is_ours(rollback.migration, object)) return false;
  if (resource == ocm::cluster_deployments || resource == ocm::bare_metal_hosts) return true;
  if (resource == ocm::manifest_works) return !is_generated_work(cluster, object);
  if (resource != kube::resources::secrets && resource != kube::resources::config_maps) return false;
  return std::ranges::any_of(rollback.hub.carried(), [&](CarriedKind kind) {
    kind.names.clear();
    return kind.resource == resource && is_selected(kind, cluster, object);
  });
}

/// Returns the first foreign object that it leaves: "BareMetalHost c1/host"; empty: there is none.
Awaitable<Result<std::string>> delete_own_copies(const TargetRollback& rollback, Resource resource, std::string ns) {
  const auto& hub = rollback.hub;
  const auto& migration = rollback.migration;
  auto objects = co_await list(hub, resource, ns);
  if (!objects) co_return objects.error();
  const auto* pausing = find_pausing(resource);
  MayTouch is_own = [&](const json::object& current) { return is_ours(migration, current); };
  std::string foreign;
  for (const auto& object : *objects) {
    if (foreign.empty() && is_foreign(rollback, resource, ns, object)) foreign = described(resource, object.key());
    if (!is_ours(migration, object)) continue;
    if (resource == ocm::manifest_works) {
      auto deleted = co_await delete_copied_work(hub, migration, object);
      if (!deleted) co_return deleted.error();
      continue;
    }
    if (pausing != nullptr) {
      auto deleted = co_await delete_harmless(hub, *pausing, migration, object, is_own);
      if (!deleted) co_return deleted.error();
      continue;
    }
    auto deleted = co_await delete_object(hub, resource, object);
    if (!deleted) co_return deleted.error();
  }
  co_return foreign;
}

/// Also what would block the deletion of the namespace: hosts and deployments. Returns what is left of others.
Awaitable<Result<std::string>> delete_contents(const TargetRollback& rollback, std::string cluster) {
  std::string foreign;
  // In reverse order of their creation: referenced objects last.
  for (auto kind = rollback.kinds.rbegin(); kind != rollback.kinds.rend(); ++kind) {
    auto deleted = co_await delete_own_copies(rollback, *kind, cluster);
    if (!deleted) co_return deleted.error();
    if (foreign.empty()) foreign = std::move(*deleted);
  }
  co_return foreign;
}

/// The namespace goes with the cluster, by the hub's controllers if not by us, and with it what is in it.
Awaitable<Result<>> check_contents(const TargetRollback& rollback, std::string cluster, bool has_copy,
                                   std::string foreign) {
  if (foreign.empty()) co_return Result<>{};
  auto space = co_await get_if_exists(rollback.hub, namespaces, cluster_scoped(cluster));
  if (!space) co_return space.error();
  const bool is_own = *space && is_ours(rollback.migration, **space);
  if (!*space || (!has_copy && !is_own)) co_return Result<>{};
  co_return Error{FailureReason::cluster_conflict,
                  foreign + " on hub " + rollback.hub.name() +
                      " does not belong to this migration, and would be deleted with the copy of cluster " + cluster +
                      ": move or delete it first"};
}

/// The ManagedCluster, if it is ours; from Stage::registering on with its agent denied.
Awaitable<Result<std::optional<Object>>> find_own_cluster(const TargetRollback& rollback, Stage stage,
                                                          std::string cluster) {
  auto found = co_await get_if_exists(rollback.hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found || !is_ours(rollback.migration, **found)) co_return std::optional<Object>{};
  if (stage != Stage::registering) co_return found;
  auto denied = co_await deny(rollback.hub, rollback.migration, **found);
  if (denied) co_return std::optional<Object>{*denied};
  if (denied.error().is(ErrorKind::not_found)) co_return std::optional<Object>{};
  co_return denied.error();
}

/// An agent has reported to this hub.
bool has_agent(const Object& cluster) {
  const auto decoded = ocm::managed_cluster_decoder().from_object(cluster);
  return decoded && std::static_pointer_cast<const ocm::ManagedCluster>(decoded->object)->is_true(ocm::names::joined);
}

/// The last look before a cluster is denied that was not here: its agent may have arrived since.
Awaitable<Result<>> deny_unless_alive(const Hub& hub, MigrationRef migration, Object cluster, async::WallTime since) {
  const std::string name{cluster.name()};
  const Error alive{FailureReason::unknown,
                    "cluster " + name + " has arrived on hub " + hub.name() + " meanwhile, and is not denied there"};
  auto is_joined = [&](const Object& seen) {
    const auto decoded = ocm::managed_cluster_decoder().from_object(seen);
    return decoded && has_joined(*std::static_pointer_cast<const ocm::ManagedCluster>(decoded->object), migration);
  };
  const bool had_joined = is_joined(cluster);
  if (had_joined) {
    auto lease = co_await get_if_exists(hub, kube::resources::leases, ocm::lease_key(name));
    if (!lease) co_return lease.error();
    const auto sign = hub.seen_leases().judge(name, *lease ? &**lease : nullptr, since, hub.env().clock);
    if (sign.kind == SignOfLife::Kind::alive) co_return alive;
    if (sign.kind == SignOfLife::Kind::unknown)
      co_return Error{FailureReason::unknown,
                      "cluster " + name + " on hub " + hub.name() + " " + sign.why + ", and is not denied there"};
  }
  auto may_deny = [&](const Object& current) { return had_joined || !is_joined(current); };
  auto denied = co_await deny(hub, migration, std::move(cluster), may_deny);
  if (!denied && denied.error().is(ErrorKind::not_found)) co_return Result<>{};
  if (!denied) co_return denied.error();
  if (is_ours(migration, *denied) && is_accepted(*denied)) co_return alive;
  co_return Result<>{};
}

/// The last look before a copy is deleted whose cluster was never detached: an agent that lost the source may have
/// registered with it since.
Awaitable<Result<>> check_unregistered(const TargetRollback& rollback, std::string cluster) {
  auto registered = co_await is_registered(rollback.hub, rollback.migration, rollback.right, cluster);
  if (!registered) co_return registered.error();
  if (!*registered) co_return Result<>{};
  co_return Error{FailureReason::unknown, "the agent of cluster " + cluster + " has registered on hub " +
                                              rollback.hub.name() + ": its copy stays there until it is back"};
}

/// Deletes the ManagedCluster; returns what is left of it. One that somebody has accepted again, or whose agent has
/// joined since the last look, stays: the next round looks again.
Awaitable<Result<std::optional<Object>>> delete_cluster(const TargetRollback& rollback, std::optional<Object> cluster) {
  if (!cluster) co_return std::optional<Object>{};
  const bool accepted = is_accepted(*cluster);
  const bool joined = has_agent(*cluster);
  StillDeletable unchanged = [&](const Object& current) {
    return is_ours(rollback.migration, current) && (accepted || !is_accepted(current)) &&
           (joined || !has_agent(current));
  };
  co_return co_await delete_object(rollback.hub, ocm::managed_clusters, *cluster, unchanged);
}

/// Deletes the namespace if it is ours; returns what finalizers still hold.
Awaitable<Result<std::optional<Object>>> delete_namespace(const TargetRollback& rollback, std::string cluster) {
  auto found = co_await get_if_exists(rollback.hub, namespaces, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found || !is_ours(rollback.migration, **found)) co_return std::optional<Object>{};
  co_return co_await delete_object(rollback.hub, namespaces, **found);
}

Awaitable<> wait_for_namespace(TargetRollback& rollback, Key key, std::function<bool(const Object*)> predicate) {
  co_await rollback.own_namespaces.wait_for(std::move(key), std::move(predicate), async::never);
}

Awaitable<Result<>> roll_back_target_cluster(TargetRollback& rollback, Stage stage, std::string cluster, Slot slot) {
  auto& hub = rollback.hub;
  const Key key = cluster_scoped(cluster);
  slot = co_await hub.settle(rollback.migration, cluster, std::move(slot));
  auto found = co_await find_own_cluster(rollback, stage, cluster);
  if (!found) co_return found.error();
  if (stage == Stage::deploying && *found) {
    auto unregistered = co_await check_unregistered(rollback, cluster);
    if (!unregistered) co_return unregistered.error();
  }
  // Before the cluster: the hub deletes the namespace with it, and nothing in it must be deprovisioned then.
  auto emptied = co_await delete_contents(rollback, cluster);
  if (!emptied && emptied.error().is(ErrorKind::forbidden)) {
    // The permissions in a cluster's namespace go with it, and so does what is in it.
    auto space = co_await get_if_exists(hub, namespaces, key);
    if (space && (!*space || (*space)->is_being_deleted())) emptied = std::string{};
  }
  if (!emptied) co_return emptied.error();
  auto checked = co_await check_contents(rollback, cluster, found->has_value(), *emptied);
  if (!checked) co_return checked.error();
  if (stage == Stage::deploying && *found) {
    auto unregistered = co_await check_unregistered(rollback, cluster);
    if (!unregistered) co_return unregistered.error();
  }
  auto rest = co_await delete_cluster(rollback, *found);
  if (!rest) co_return rest.error();
  slot.release();
  if (*rest) {
    auto gone = co_await wait_until_deleted(hub, rollback.migration, **rest);
    if (!gone) co_return gone.error();
  }
  // Last: the hub's own controllers use the namespace while the cluster exists.
  slot = co_await hub.slot();
  auto left = co_await delete_namespace(rollback, cluster);
  slot.release();
  if (!left) co_return left.error();
  if (!*left) co_return Result<>{};
  const Waits::Entry waiting{*hub.waits(), rollback.migration.uid, cluster,
                             "namespace on hub " + hub.name() + " is being deleted"};
  const std::string uid{(*left)->uid()};
  auto is_gone = [&](const Object* seen) { return seen == nullptr || seen->uid() != uid; };
  const auto deadline = hub.env().clock.now() + hub.options().deletion_timeout;
  const bool gone =
      co_await async::before_deadline(hub.env().clock, deadline, wait_for_namespace(rollback, key, std::move(is_gone)));
  if (gone) co_return Result<>{};
  auto now = co_await get_if_exists(hub, namespaces, key);
  co_return still_there(hub, namespaces, now && *now ? **now : **left);
}

}  // namespace

Awaitable<Result<Outcome>> DirectTargetHub::clean(MigrationRef migration, ClusterNames clusters) {
  auto kinds = co_await served_pausing_kinds(*hub_);
  if (!kinds) co_return kinds.error();
  auto process = [&](std::string cluster, Slot slot) {
    return clean_target_cluster(*hub_, *kinds, migration, std::move(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster_in_time(*hub_, std::move(clusters), process);
}

Awaitable<Result<Outcome>> DirectTargetHub::deny(MigrationRef migration, ClusterNames clusters,
                                                 std::optional<async::WallTime> unless_alive_since) {
  auto process = [&](std::string cluster, Slot slot) -> Awaitable<Result<>> {
    slot = co_await hub_->settle(migration, cluster, std::move(slot));
    auto found = co_await get_if_exists(*hub_, ocm::managed_clusters, cluster_scoped(cluster));
    if (!found) co_return found.error();
    if (!*found || !is_ours(migration, **found)) co_return Result<>{};
    if (unless_alive_since) co_return co_await deny_unless_alive(*hub_, migration, **found, *unless_alive_since);
    auto denied = co_await hubagent::deny(*hub_, migration, **found);
    if (!denied && !denied.error().is(ErrorKind::not_found)) co_return denied.error();
    co_return Result<>{};
  };
  auto outcome = co_await for_each_cluster(*hub_, std::move(clusters), process);
  if (!outcome) co_return outcome;
  // The source's controllers act on the machines again once the cluster is back there. Only now: whatever this needs,
  // the clusters are denied.
  auto kinds = co_await served_pausing_kinds(*hub_);
  if (!kinds) co_return kinds.error();
  auto pause = [&](std::string cluster, Slot slot) -> Awaitable<Result<>> {
    const Slot held = std::move(slot);
    co_return co_await pause_copies(*hub_, *kinds, migration, cluster);
  };
  auto paused = co_await for_each_cluster(*hub_, std::move(outcome->done), pause);
  if (!paused) co_return paused;
  paused->failed.insert(paused->failed.end(), outcome->failed.begin(), outcome->failed.end());
  co_return paused;
}

Awaitable<Result<Outcome>> DirectTargetHub::roll_back(MigrationRef migration, Stage stage, ClusterNames clusters) {
  // Before Deploying nothing has been created for single clusters.
  if (stage == Stage::initializing) co_return Outcome{std::move(clusters), {}};
  auto& hub = *hub_;
  auto synced = co_await wait_for_cluster_cache(hub);
  if (!synced) co_return synced.error();
  std::vector<Resource> kinds;
  for (const auto& kind : allowed_kinds(hub.carried())) {
    if (!kind.namespaced) continue;
    auto is_served = co_await serves(hub, kind);
    if (!is_served) co_return is_served.error();
    if (*is_served) kinds.push_back(kind);
  }
  RegistrationRight right;
  if (stage == Stage::deploying) {
    auto found = co_await registration_right(hub, migration);
    if (!found) co_return found.error();
    right = std::move(*found);
  }
  TargetRollback rollback{hub,
                          migration,
                          std::move(kinds),
                          std::move(right),
                          {hub.api(), namespaces, ours_only(migration), kube::object_decoder(), hub.env()}};
  Result<Outcome> outcome{Outcome{}};
  auto process = [&](std::string cluster, Slot slot) {
    return roll_back_target_cluster(rollback, stage, std::move(cluster), std::move(slot));
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(rollback.own_namespaces.run());
    // The first list must precede our deletions: a waiter would take a namespace not yet listed for a deleted one.
    co_await rollback.own_namespaces.wait_synced();
    outcome = co_await for_each_cluster_in_time(hub, std::move(clusters), process);
    scope.stop();
  };
  co_await async::with_scope(std::move(body));
  co_return outcome;
}

}  // namespace hubferry::hubagent
