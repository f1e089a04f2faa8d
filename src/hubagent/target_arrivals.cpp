#include <set>

#include "hubagent/arrival.hpp"
#include "hubagent/direct_hubs.hpp"
#include "hubagent/heartbeats.hpp"
#include "hubagent/hub_watches.hpp"
#include "hubagent/registration_approval.hpp"
#include "hubagent/self_registration.hpp"
#include "hubferry/async/task_scope.hpp"

namespace hubferry::hubagent {

namespace {

/// One operation that waits for its clusters.
struct Wait {
  Hub& hub;
  MigrationRef migration;
  async::WallTime since;
  TargetHub::OnArrival on_arrival;
  WorkRule rule;
  std::optional<Heartbeats> heartbeats{};
  std::optional<std::set<std::string>> with_works{};  // clusters for which works were copied; absent: not known
  std::optional<Error> error{};

  [[nodiscard]] bool may_have_works(const std::string& cluster) const {
    return !with_works || with_works->contains(cluster);
  }
};

/// Waits until the cache shows the cluster in another version than `seen`, and as joined.
Awaitable<std::shared_ptr<const ocm::ManagedCluster>> wait_for_join(Wait& wait, std::string cluster, std::string seen) {
  auto is_joined = [&](const ocm::ManagedCluster* now) {
    return now != nullptr && now->resource_version() != seen && is_available(*now, wait.migration);
  };
  const Key key = cluster_scoped(cluster);
  co_return co_await wait.hub.clusters().wait_for(key, is_joined, async::never);
}

/// Nothing is left to wait for.
Awaitable<Result<bool>> are_works_complete(Wait& wait, std::string cluster) {
  if (wait.rule == WorkRule::none) co_return true;
  co_return co_await has_applied_works(wait.hub, wait.migration, cluster, wait.rule, wait.may_have_works(cluster));
}

Awaitable<Result<>> wait_for_arrival(Wait& wait, std::string cluster) {
  std::string seen;
  while (true) {
    Waits::Entry waiting{
        *wait.hub.waits(), wait.migration.uid, cluster,
        "agent has not registered on hub " + wait.hub.name() +
            " (no certificate request yet, or it is pending: kubectl get csr there; a restart of its pod "
            "klusterlet-agent tries again)",
        true};
    auto now = co_await wait_for_join(wait, cluster, seen);
    seen = now->resource_version();
    waiting.replace("agent has not renewed its lease on hub " + wait.hub.name() +
                    " (does its pod klusterlet-agent run, and reach that hub?)");
    // Whatever the conditions say: only the agent renews the lease.
    if (!wait.heartbeats->is_alive(cluster, wait.since, wait.hub.env().clock.wall_now())) {
      auto alive = co_await wait_for_sign_of_life(wait.hub, wait.migration, cluster, wait.since);
      if (!alive) co_return alive.error();
    }
    const auto current = wait.hub.clusters().get(cluster_scoped(cluster));
    if (current == nullptr || !is_available(*current, wait.migration)) continue;
    if (wait.on_arrival.joined) wait.on_arrival.joined(cluster);
    auto enabled = co_await enable_import(wait.hub, wait.migration, cluster);
    if (!enabled) co_return enabled.error();
    auto complete = co_await are_works_complete(wait, cluster);
    if (!complete) co_return complete.error();
    if (!*complete) {
      bool at_once = true;
      waiting.replace("agent has not applied its klusterlet's ManifestWork of hub " + wait.hub.name() +
                      " (its condition Applied says why)");
      // Counted from when its current version was first seen.
      auto starts = wait.heartbeats->starts(cluster);
      std::int64_t version = 0;
      auto wanted = [&](const KlusterletWork* work) {
        if (satisfies(wait.rule, work)) return true;
        at_once = false;
        if (work != nullptr && std::exchange(version, work->generation()) != work->generation())
          starts = wait.heartbeats->starts(cluster);
        return false;
      };
      auto applied = co_await wait_for_klusterlet_work(wait.hub, wait.migration, cluster, wanted);
      if (!applied) co_return applied.error();
      // It was applied just now: the agent restarts with it, and must come back. One that has done so before it
      // reported the work would renew its lease only a period later.
      if (!at_once && wait.heartbeats->starts(cluster) == starts) {
        waiting.replace("agent has not renewed its lease on hub " + wait.hub.name() +
                        " since it applied its klusterlet's ManifestWork");
        co_await wait.heartbeats->wait_for_renewal(cluster);
      }
      if (wait.may_have_works(cluster)) {
        waiting.replace("agent has not applied the copied ManifestWorks on hub " + wait.hub.name() +
                        " (their conditions say why)");
        auto adopted = co_await wait_for_copied_works(wait.hub, wait.migration, cluster);
        if (!adopted) co_return adopted.error();
      }
    }
    wait.on_arrival.arrived(cluster);
    co_return Result<>{};
  }
}

void record(Wait& wait, const Result<>& result, async::TaskScope& scope) {
  if (result) return;
  if (!wait.error) wait.error = result.error();
  scope.stop();
}

/// On a slow hub the first answer may be old by the time of the last.
constexpr auto longest_look = std::chrono::seconds{5};

/// How soon a cluster whose objects could not be read is tried again.
constexpr auto reread_period = std::chrono::seconds{15};

/// An error of one cluster concerns that cluster only: it is tried again, and the others are waited for meanwhile.
Awaitable<> run_one(Wait& wait, std::string cluster, async::TaskScope& scope) {
  while (true) {
    auto result = co_await wait_for_arrival(wait, cluster);
    if (result) co_return;
    if (stops_all(result.error())) co_return record(wait, result, scope);
    wait.hub.env().log.warn("cannot read whether a cluster has arrived, retrying",
                            {{"cluster", cluster}, {"error", result.error().describe()}});
    co_await wait.hub.env().clock.sleep_for(reread_period);
  }
}

Awaitable<> run_approval(Wait& wait, std::set<std::string> clusters, async::TaskScope& scope) {
  auto result = co_await approve_registrations(wait.hub, wait.migration, std::move(clusters));
  record(wait, result, scope);
}

Awaitable<> wait_for_all(Wait& wait, const std::set<std::string>& clusters) {
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (const auto& cluster : clusters) scope.spawn(run_one(wait, cluster, scope));
    co_return;
  };
  co_await async::with_scope(std::move(body));
}

}  // namespace

Awaitable<Result<>> DirectTargetHub::await_arrivals(MigrationRef migration, ClusterNames clusters,
                                                    async::WallTime since, OnArrival on_arrival) {
  auto synced = co_await wait_for_cluster_cache(*hub_);
  if (!synced) co_return synced.error();
  auto rule = co_await work_rule(*hub_);
  if (!rule) co_return rule.error();
  const std::set<std::string> once{clusters.begin(), clusters.end()};
  const std::size_t watched = *rule == WorkRule::none ? 0 : once.size();
  const HubWatch<KlusterletWork>::Use use{hub_->watches().klusterlet_works, watched};
  HubWatch<Object>::Use leases{hub_->watches().leases, watched};
  Wait wait{*hub_, migration, since, std::move(on_arrival), *rule};
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    // First: the agents that are detached meanwhile have no hub until their requests are approved.
    scope.spawn(run_approval(wait, once, scope));
    co_await leases.ready();
    wait.heartbeats.emplace(*hub_, hub_->watches().leases.current());
    if (*rule != WorkRule::none) wait.with_works = co_await clusters_with_copied_works(*hub_, migration);
    if (*rule != WorkRule::none) scope.spawn(wait.heartbeats->run());
    co_await wait_for_all(wait, once);
    scope.stop();
  };
  co_await async::with_scope(std::move(body));
  if (wait.error) co_return *wait.error;
  co_return Result<>{};
}

Awaitable<Result<Outcome>> DirectTargetHub::arrived(MigrationRef migration, ClusterNames clusters,
                                                    async::WallTime since) {
  auto rule = co_await work_rule(*hub_);
  if (!rule) co_return rule.error();
  const auto listed = co_await list_for_arrival(*hub_, migration, clusters.size());
  auto process = [&](std::string cluster, Slot slot) -> Awaitable<Result<>> {
    auto checked = co_await check_arrival(*hub_, migration, cluster, since, *rule, listed);
    // Of a copy that was lost and made again nobody waits for the arrival. With its import disabled, the hub would
    // never send the works that it lacks.
    if (!checked && checked.error().reason() == FailureReason::works_not_applied) {
      auto enabled = co_await enable_import(*hub_, migration, cluster);
      if (!enabled) co_return enabled.error();
    }
    slot.release();
    co_return checked;
  };
  co_return co_await for_each_cluster(*hub_, std::move(clusters), process);
}

Awaitable<Result<Outcome>> DirectTargetHub::adopt(MigrationRef migration, ClusterNames clusters, OnFound on_adopted) {
  auto process = [&](std::string cluster, Slot slot) -> Awaitable<Result<>> {
    auto adopted = co_await adopt_registered(*hub_, migration, cluster);
    slot.release();
    if (!adopted) co_return adopted.error();
    if (*adopted) on_adopted(cluster);
    co_return Result<>{};
  };
  co_return co_await for_each_cluster(*hub_, std::move(clusters), process);
}

Awaitable<Result<Outcome>> DirectTargetHub::find_registered(MigrationRef migration, ClusterNames clusters,
                                                            OnFound on_found) {
  auto right = co_await registration_right(*hub_, migration);
  if (!right) co_return right.error();
  auto process = [&](std::string cluster, Slot slot) -> Awaitable<Result<>> {
    auto registered = co_await is_registered(*hub_, migration, *right, cluster);
    slot.release();
    if (!registered) co_return registered.error();
    if (*registered) on_found(cluster);
    co_return Result<>{};
  };
  co_return co_await for_each_cluster(*hub_, std::move(clusters), process);
}

Awaitable<Result<>> DirectTargetHub::await_renewals(ClusterNames clusters, OnFound on_renewal) {
  co_await await_renewals_of(*hub_, std::move(clusters), std::move(on_renewal));
  co_return Result<>{};
}

Awaitable<Result<>> DirectTargetHub::confirm(MigrationRef migration, std::string cluster, async::WallTime since) {
  // Without a slot: the caller holds one of the source, and another migration may go the other way.
  const ListedClusters none;
  const auto& clock = hub_->env().clock;
  const auto began = clock.now();
  auto arrived = co_await check_arrival(*hub_, migration, cluster, since, WorkRule::none, none);
  if (!arrived || clock.now() - began <= longest_look) co_return arrived;
  // It has been read first: somebody may have denied or deleted it since.
  co_return co_await check_available(*hub_, std::move(migration), std::move(cluster), none);
}

}  // namespace hubferry::hubagent
