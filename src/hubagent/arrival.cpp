#include "hubagent/arrival.hpp"

#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

/// How far the clocks of manager, hub and cluster may differ, and how old a heartbeat may be while the hub still holds
/// a cluster Available (five leases of a minute).
constexpr auto tolerance = std::chrono::minutes{5};

/// A watch on one work gives its place up for others after this long.
constexpr auto watch_turn = std::chrono::seconds{30};

Key work_key(const std::string& cluster) {
  return {cluster, cluster + "-klusterlet"};
}

bool is_after(const Object& lease, async::WallTime moment) {
  const auto text = lease.string_at({"spec", "renewTime"});
  if (text.empty()) return false;
  try {
    return async::parse_time(text) >= moment;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

Awaitable<> watch_work(Hub& hub, std::string cluster, WorkPredicate wanted) {
  kube::CacheOptions options;
  options.ns = cluster;
  options.field_selector = "metadata.name=" + work_key(cluster).name;
  kube::Cache<Object> works{hub.api(), ocm::manifest_works, options, kube::object_decoder(), hub.env()};
  const Key key = work_key(cluster);
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(works.run());
    co_await works.wait_for(key, wanted, async::never);
    scope.stop();
  };
  co_await async::with_scope(std::move(body));
}

/// False when the turn ended before anything happened.
Awaitable<bool> watch_work_for_a_turn(Hub& hub, std::string cluster, WorkPredicate wanted) {
  auto permit = co_await hub.small_watches().acquire();
  auto& clock = hub.env().clock;
  std::exception_ptr error;
  try {
    co_await async::with_deadline(clock, clock.now() + watch_turn,
                                  watch_work(hub, std::move(cluster), std::move(wanted)));
  } catch (...) {
    error = std::current_exception();
  }
  if (error && !async::is_timeout(error)) std::rethrow_exception(error);
  co_return error == nullptr;
}

}  // namespace

bool has_joined(const ocm::ManagedCluster& cluster, const MigrationRef& migration) {
  return cluster.label(migration_label) == migration.uid && !cluster.is_being_deleted() &&
         cluster.hub_accepts_client() && cluster.is_true(joined) && cluster.is_true(available);
}

Awaitable<Result<bool>> shows_life(const Hub& hub, async::WallTime since, std::string cluster,
                                   const ocm::ManagedCluster& seen) {
  const auto earliest = since - tolerance;
  if (const auto condition = seen.condition(available); condition && condition->last_transition >= earliest)
    co_return true;
  auto lease = co_await read_if_there(hub, kube::resources::leases, ocm::lease_key(cluster));
  if (!lease) co_return lease.error();
  co_return *lease&& is_after(**lease, earliest);
}

Awaitable<Result<WorkRule>> work_rule(const Hub& hub) {
  auto served = co_await serves(hub, ocm::manifest_works);
  if (!served) co_return served.error();
  if (!*served) co_return WorkRule::none;
  auto of_acm = co_await read_if_there(hub, kube::resources::cluster_roles, cluster_scoped(acm_bootstrap_role));
  if (!of_acm) co_return of_acm.error();
  co_return *of_acm ? WorkRule::applied : WorkRule::applied_if_there;
}

bool satisfies(WorkRule rule, const Object* work) {
  if (rule == WorkRule::none) return true;
  if (work == nullptr) return rule == WorkRule::applied_if_there;
  return kube::is_condition_true(*work, "Applied");
}

Awaitable<Result<>> await_klusterlet_work(Hub& hub, std::string cluster, WorkPredicate wanted) {
  {
    auto slot = co_await hub.slot();
    auto work = co_await read_if_there(hub, ocm::manifest_works, work_key(cluster));
    if (!work) co_return work.error();
    if (wanted(*work ? &**work : nullptr)) co_return Result<>{};
  }
  while (!co_await watch_work_for_a_turn(hub, cluster, wanted)) {
  }
  co_return Result<>{};
}

Awaitable<Result<bool>> has_arrived(const Hub& hub, MigrationRef migration, std::string cluster, async::WallTime since,
                                    WorkRule rule) {
  auto found = co_await read_if_there(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found) co_return false;
  auto decoded = ocm::managed_cluster_decoder().from_object(**found);
  if (!decoded) co_return decoded.error();
  const auto seen = std::static_pointer_cast<const ocm::ManagedCluster>(decoded->object);
  if (!has_joined(*seen, migration)) co_return false;
  auto alive = co_await shows_life(hub, since, cluster, *seen);
  if (!alive || !*alive || rule == WorkRule::none) co_return alive;
  auto work = co_await read_if_there(hub, ocm::manifest_works, work_key(cluster));
  if (!work) co_return work.error();
  co_return satisfies(rule, *work ? &**work : nullptr);
}

}  // namespace hubferry::hubagent
