#include "hubagent/source_return.hpp"

#include <algorithm>

#include "hubagent/annotations.hpp"
#include "hubagent/direct_hubs.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

/// A lease as the annotation `returning` has it: "<uid> <renewTime>".
std::string lease_text(const Object& lease) {
  return std::string{lease.uid()} + " " + std::string{lease.string_at({"spec", "renewTime"})};
}

std::string_view lease_uid(std::string_view text) {
  return text.substr(0, text.find(' '));
}

Error deleted_there(const Hub& hub, const std::string& cluster) {
  return {FailureReason::cluster_not_available,
          "cluster " + cluster + " is being deleted on hub " + hub.name() + ": it cannot return to it"};
}

Error not_accepted(const Hub& hub, const std::string& cluster) {
  return {FailureReason::cluster_not_available,
          "hub " + hub.name() + " does not accept cluster " + cluster + " (spec.hubAcceptsClient)"};
}

bool has_deletion_time(const json::object& object) {
  return !kube::string_at(object, {"metadata", "deletionTimestamp"}).empty();
}

/// The ManagedCluster, if it can return to this hub.
Awaitable<Result<Object>> find_returning(const Hub& hub, std::string cluster) {
  auto found = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found) co_return no_such_cluster(hub, cluster);
  if ((*found)->is_being_deleted()) co_return deleted_there(hub, cluster);
  co_return **found;
}

/// Records the lease against which a renewal will show. Only once the cluster is accepted: a renewal before that
/// proves nothing.
Awaitable<Result<>> record_lease(const Hub& hub, MigrationRef migration, Object cluster, std::string text) {
  auto record = [&](json::object& object) {
    if (!is_claimed_by(migration, Object{object}) || has_deletion_time(object)) return false;
    return set_annotation(object, annotations::returning, text);
  };
  co_return co_await edit_if_exists(hub, ocm::managed_clusters, std::move(cluster), record);
}

}  // namespace

bool is_accepted(const Object& cluster) {
  const auto* accepts = cluster.find({"spec", "hubAcceptsClient"});
  return accepts != nullptr && *accepts == true;
}

bool is_returning(const Object& cluster) {
  return annotation_in(cluster.json(), annotations::returning) != nullptr;
}

Awaitable<Result<>> accept_again(const Hub& hub, MigrationRef migration, std::string cluster) {
  auto found = co_await find_returning(hub, cluster);
  if (!found) co_return found.error();
  if (!is_claimed_by(migration, *found)) {
    // Another migration that has detached it since is responsible for it.
    if (is_accepted(*found) || !found->annotation(migrating_annotation).empty()) co_return Result<>{};
    co_return not_accepted(hub, cluster);
  }
  auto accept = [&](json::object& object) {
    const Object current{object};
    if (!is_claimed_by(migration, current) || has_deletion_time(object)) return false;
    if (is_accepted(current) && is_returning(current)) return false;
    kube::object_in(object, "spec")["hubAcceptsClient"] = true;
    set_annotation(object, annotations::returning, "");
    return true;
  };
  auto accepted = co_await edit(hub, ocm::managed_clusters, *found, accept);
  if (!accepted && accepted.error().is(ErrorKind::not_found)) co_return no_such_cluster(hub, cluster);
  if (!accepted) co_return accepted.error();
  if (accepted->is_being_deleted()) co_return deleted_there(hub, cluster);
  if (!is_accepted(*accepted)) co_return not_accepted(hub, cluster);
  co_return Result<>{};
}

Awaitable<Result<>> wait_for_return(Hub& hub, MigrationRef migration, std::string cluster, Slot slot,
                                    Heartbeats& heartbeats) {
  Waits::Entry waiting{*hub.waits(), migration.uid, cluster,
                       "agent has not renewed its lease on hub " + hub.name() + " since that accepts it again"};
  bool watched = false;
  while (true) {
    auto found = co_await find_returning(hub, cluster);
    if (!found) co_return found.error();
    if (!is_claimed_by(migration, *found)) {
      // Another migration that has claimed it since is responsible for it.
      if (!found->annotation(migrating_annotation).empty()) co_return Result<>{};
      // The claim was dropped, as it had returned or had not left; a sign of life after that is the only proof that it
      // is here now.
      slot.release();
      co_await heartbeats.wait_for_renewal(cluster);
      break;
    }
    if (!is_accepted(*found)) co_return not_accepted(hub, cluster);
    auto lease = co_await get_if_exists(hub, kube::resources::leases, ocm::lease_key(cluster));
    if (!lease) co_return lease.error();
    if (!*lease) {
      slot.release();
      co_await heartbeats.wait_for_lease(cluster);
      slot = co_await hub.slot();
      continue;
    }
    const std::string recorded{found->annotation(annotations::returning)};
    // A hub creates a lease that is missing, with the time of its creation: that one starts over.
    if (lease_uid(recorded) != (*lease)->uid()) {
      auto kept = co_await record_lease(hub, migration, *found, lease_text(**lease));
      if (!kept) co_return kept.error();
      continue;
    }
    // A renewal that was not watched may be of an earlier round, and the agent may have left again since.
    const auto sign = hub.seen_leases().judge(cluster, &**lease, async::WallTime::min(), hub.env().clock);
    const bool recent = sign.kind == SignOfLife::Kind::alive;
    if (recorded != lease_text(**lease) && (watched || recent)) break;
    if (recorded != lease_text(**lease)) {
      auto kept = co_await record_lease(hub, migration, *found, lease_text(**lease));
      if (!kept) co_return kept.error();
    }
    watched = true;
    slot.release();
    co_await heartbeats.wait_for_renewal(cluster, **lease);
    slot = co_await hub.slot();
  }
  slot.release();
  waiting.replace("agent is back on hub " + hub.name() + ", which does not report it as Available yet");
  auto is_available = [](const ocm::ManagedCluster* seen) { return seen != nullptr && seen->is_true(available); };
  co_await hub.clusters().wait_for(cluster_scoped(cluster), is_available, async::never);
  co_return Result<>{};
}

Awaitable<Result<Outcome>> DirectSourceHub::returnable(MigrationRef migration, ClusterNames clusters) {
  auto process = [&](std::string cluster, Slot slot) -> Awaitable<Result<>> {
    auto found = co_await find_returning(*hub_, cluster);
    slot.release();
    if (!found) co_return found.error();
    if (!is_claimed_by(migration, *found)) co_return not_claimed(*hub_, cluster, *found);
    if (found->annotation(annotations::deletion_begun) == migration.uid)
      co_return Error{FailureReason::deletion_begun, "hub " + hub_->name() + " has begun to delete cluster " + cluster +
                                                         ": its ClusterDeployment may be gone there"};
    co_return Result<>{};
  };
  co_return co_await for_each_cluster(*hub_, std::move(clusters), process);
}

Awaitable<Result<ClusterNames>> DirectSourceHub::accepted(ClusterNames clusters) {
  ClusterNames here;
  auto process = [&](std::string cluster, Slot slot) -> Awaitable<Result<>> {
    auto found = co_await get_if_exists(*hub_, ocm::managed_clusters, cluster_scoped(cluster));
    slot.release();
    if (!found) co_return found.error();
    if (*found && is_accepted(**found)) here.push_back(std::move(cluster));
    co_return Result<>{};
  };
  auto looked = co_await for_each_cluster(*hub_, std::move(clusters), process);
  if (!looked) co_return looked.error();
  if (!looked->failed.empty()) co_return Error{looked->failed.front().reason, looked->failed.front().message};
  std::ranges::sort(here);
  co_return here;
}

Awaitable<Result<Outcome>> DirectSourceHub::accept(MigrationRef migration, ClusterNames clusters) {
  auto process = [&](std::string cluster, Slot slot) -> Awaitable<Result<>> {
    slot = co_await hub_->settle(migration, cluster, std::move(slot));
    auto accepted = co_await accept_again(*hub_, migration, std::move(cluster));
    slot.release();
    co_return accepted;
  };
  co_return co_await for_each_cluster(*hub_, std::move(clusters), process);
}

Awaitable<Result<Outcome>> DirectSourceHub::await_returns(MigrationRef migration, ClusterNames clusters,
                                                          OnReturn on_return) {
  auto& hub = *hub_;
  Heartbeats heartbeats{hub};
  Result<Outcome> outcome{Outcome{}};
  auto process = [&](std::string cluster, Slot slot) -> Awaitable<Result<>> {
    auto returned = co_await wait_for_return(hub, migration, cluster, std::move(slot), heartbeats);
    if (returned) on_return(cluster);
    co_return returned;
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(heartbeats.run());
    outcome = co_await for_each_cluster(hub, std::move(clusters), process);
    scope.stop();
  };
  co_await async::with_scope(std::move(body));
  co_return outcome;
}

Awaitable<Result<>> DirectSourceHub::await_renewals(ClusterNames clusters, OnRenewal on_renewal) {
  co_await await_renewals_of(*hub_, std::move(clusters), std::move(on_renewal));
  co_return Result<>{};
}

}  // namespace hubferry::hubagent
