#include <set>

#include "hubagent/arrival.hpp"
#include "hubagent/source_operations.hpp"
#include "hubagent/target_operations.hpp"
#include "hubferry/async/task_scope.hpp"

namespace hubferry::hubagent {

namespace {

/// One order's wait for its clusters.
struct Wait {
  Hub& hub;
  MigrationRef migration;
  async::WallTime since;
  TargetHub::OnArrival on_arrival;
  WorkRule rule = WorkRule::none;
  std::optional<Error> error;
};

/// Waits until the cache shows the cluster in another version than `seen`, and looking as if it had arrived.
Awaitable<std::shared_ptr<const ocm::ManagedCluster>> await_look(Wait& wait, std::string cluster, std::string seen) {
  auto looks_arrived = [&](const ocm::ManagedCluster* now) {
    return now != nullptr && now->resource_version() != seen && has_joined(*now, wait.migration);
  };
  const Key key = cluster_scoped(cluster);
  co_return co_await wait.hub.clusters().wait_for(key, looks_arrived, async::never);
}

Awaitable<Result<>> await_one(Wait& wait, std::string cluster) {
  std::string seen;
  while (true) {
    auto now = co_await await_look(wait, cluster, seen);
    seen = now->resource_version();
    auto slot = co_await wait.hub.slot();
    auto alive = co_await shows_life(wait.hub, wait.since, cluster, *now);
    slot.release();
    if (!alive) co_return alive.error();
    // A lease that is too old makes the hub set Available to Unknown, and a beat sets it back: there will be events.
    if (!*alive) continue;
    if (wait.rule != WorkRule::none) {
      auto wanted = [rule = wait.rule](const Object* work) { return satisfies(rule, work); };
      auto applied = co_await await_klusterlet_work(wait.hub, cluster, wanted);
      if (!applied) co_return applied.error();
    }
    wait.on_arrival(cluster);
    co_return Result<>{};
  }
}

Awaitable<> run_one(Wait& wait, std::string cluster, async::TaskScope& scope) {
  auto result = co_await await_one(wait, std::move(cluster));
  if (result) co_return;
  if (!wait.error) wait.error = result.error();
  scope.stop();
}

}  // namespace

Awaitable<Result<>> await_arrivals(Hub& hub, MigrationRef migration, ClusterNames clusters, async::WallTime since,
                                   TargetHub::OnArrival on_arrival) {
  auto visible = co_await see_clusters(hub);
  if (!visible) co_return visible.error();
  auto rule = co_await work_rule(hub);
  if (!rule) co_return rule.error();
  Wait wait{hub, std::move(migration), since, std::move(on_arrival), *rule, std::nullopt};
  const std::set<std::string> once{clusters.begin(), clusters.end()};
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (const auto& cluster : once) scope.spawn(run_one(wait, cluster, scope));
    co_return;
  };
  co_await async::with_scope(std::move(body));
  if (wait.error) co_return *wait.error;
  co_return Result<>{};
}

Awaitable<Result<ClusterNames>> find_arrived(Hub& hub, MigrationRef migration, ClusterNames clusters,
                                             async::WallTime since) {
  auto rule = co_await work_rule(hub);
  if (!rule) co_return rule.error();
  std::set<std::string> here;
  auto treat = [&](std::string cluster, Slot slot) -> Awaitable<Result<>> {
    auto is_here = co_await has_arrived(hub, migration, cluster, since, *rule);
    slot.release();
    if (!is_here) co_return is_here.error();
    if (*is_here) here.insert(cluster);
    co_return Result<>{};
  };
  auto outcome = co_await for_each_cluster(hub, std::move(clusters), treat);
  if (!outcome) co_return outcome.error();
  // One that could not be asked about is not known to be here, nor known to be elsewhere: no answer is better then.
  if (!outcome->failed.empty()) {
    const auto& first = outcome->failed.front();
    co_return Error{ErrorKind::retry_later, 0, first.reason, "cluster " + first.cluster + ": " + first.message,
                    std::nullopt};
  }
  co_return ClusterNames{here.begin(), here.end()};
}

}  // namespace hubferry::hubagent
