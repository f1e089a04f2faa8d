#include "hubagent/arrival.hpp"

#include <algorithm>

#include "hubagent/annotations.hpp"

#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

/// How far the clocks of manager, hub and cluster may differ, and how old a heartbeat may be while the hub still
/// reports a cluster as Available (five leases of a minute).
constexpr auto tolerance = std::chrono::minutes{5};

/// A watch on one work releases its permit for others after this long.
constexpr auto watch_turn = std::chrono::seconds{30};

Key work_key(const std::string& cluster) {
  return {cluster, cluster + "-klusterlet"};
}

/// With ReadOnly the agent reports the manifests as applied, but only compares them.
bool is_read_only(const Object& work) {
  const auto* configs = work.find({"spec", "manifestConfigs"});
  if (configs == nullptr || !configs->is_array()) return false;
  return std::ranges::any_of(configs->get_array(), [](const json::value& config) {
    return config.is_object() && kube::string_at(config.get_object(), {"updateStrategy", "type"}) == "ReadOnly";
  });
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

/// False if the turn ended before the predicate held.
Awaitable<bool> watch_work_for_a_turn(Hub& hub, std::string cluster, kube::ObjectPredicate predicate) {
  auto permit = co_await hub.small_watches().acquire();
  const auto deadline = hub.env().clock.now() + watch_turn;
  co_return co_await kube::wait_for_object(hub.api(), ocm::manifest_works, work_key(cluster), std::move(predicate),
                                           deadline, hub.env());
}

kube::CacheOptions cluster_leases() {
  kube::CacheOptions options;
  options.field_selector = std::string{"metadata.name="} + ocm::names::cluster_lease;
  return options;
}

std::string renewal_of(const Object& lease) {
  return std::string{lease.string_at({"spec", "renewTime"})};
}

}  // namespace

bool has_joined(const ocm::ManagedCluster& cluster, const MigrationRef& migration) {
  return cluster.label(migration_label) == migration.uid && !cluster.is_being_deleted() &&
         cluster.hub_accepts_client() && cluster.is_true(joined) && cluster.is_true(available);
}

Awaitable<Result<bool>> is_alive_since(const Hub& hub, async::WallTime since, std::string cluster,
                                       const ocm::ManagedCluster& seen) {
  const auto earliest = since - tolerance;
  if (const auto condition = seen.condition(available); condition && condition->last_transition >= earliest)
    co_return true;
  auto lease = co_await get_if_exists(hub, kube::resources::leases, ocm::lease_key(cluster));
  if (!lease) co_return lease.error();
  co_return lease->has_value() && is_after(**lease, earliest);
}

Awaitable<Result<WorkRule>> work_rule(const Hub& hub) {
  auto served = co_await serves(hub, ocm::manifest_works);
  if (!served) co_return served.error();
  if (!*served) co_return WorkRule::none;
  auto acm_role = co_await get_if_exists(hub, kube::resources::cluster_roles, cluster_scoped(acm_bootstrap_role));
  if (!acm_role) co_return acm_role.error();
  co_return *acm_role ? WorkRule::applied : WorkRule::applied_if_exists;
}

bool satisfies(WorkRule rule, const Object* work) {
  if (rule == WorkRule::none) return true;
  if (work == nullptr) return rule == WorkRule::applied_if_exists;
  const auto* applied = kube::find_condition(*work, "Applied");
  if (applied == nullptr || kube::string_at(*applied, {"status"}) != "True" || is_read_only(*work)) return false;
  const auto* generation = applied->if_contains("observedGeneration");
  return generation == nullptr || *generation == work->generation();
}

Awaitable<Result<>> enable_import(const Hub& hub, MigrationRef migration, std::string cluster) {
  auto allow_import = [&](json::object& object) {
    return is_ours(migration, object) && annotation_text(object, disable_auto_import_annotation) == migration.uid &&
           drop_annotation(object, disable_auto_import_annotation);
  };
  auto enabled = co_await edit(hub, ocm::managed_clusters, cluster_scoped(cluster), allow_import);
  if (!enabled) co_return enabled.error();
  co_return Result<>{};
}

Awaitable<Result<>> wait_for_klusterlet_work(Hub& hub, std::string cluster, kube::ObjectPredicate predicate) {
  {
    auto slot = co_await hub.slot();
    auto work = co_await get_if_exists(hub, ocm::manifest_works, work_key(cluster));
    if (!work) co_return work.error();
    if (predicate(*work ? &**work : nullptr)) co_return Result<>{};
  }
  while (!co_await watch_work_for_a_turn(hub, cluster, predicate)) {
  }
  co_return Result<>{};
}

Awaitable<Result<bool>> has_arrived(const Hub& hub, MigrationRef migration, std::string cluster, async::WallTime since,
                                    WorkRule rule) {
  auto found = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found) co_return false;
  auto decoded = ocm::managed_cluster_decoder().from_object(**found);
  if (!decoded) co_return decoded.error();
  const auto seen = std::static_pointer_cast<const ocm::ManagedCluster>(decoded->object);
  if (!has_joined(*seen, migration)) co_return false;
  auto alive = co_await is_alive_since(hub, since, cluster, *seen);
  if (!alive || !*alive || rule == WorkRule::none) co_return alive;
  auto work = co_await get_if_exists(hub, ocm::manifest_works, work_key(cluster));
  if (!work) co_return work.error();
  co_return satisfies(rule, *work ? &**work : nullptr);
}

Heartbeats::Heartbeats(Hub& hub)
    : leases_(hub.api(), kube::resources::leases, cluster_leases(), kube::object_decoder(), hub.env()) {}

Awaitable<> Heartbeats::wait_for_renewal(std::string cluster) {
  const Key key{std::move(cluster), ocm::names::cluster_lease};
  auto exists = [](const Object* lease) { return lease != nullptr; };
  auto first = co_await leases_.wait_for(key, exists, async::never);
  // A renewal changes the time of the same object; a lease that was created anew starts over.
  std::string uid{first->uid()};
  std::string renewal = renewal_of(*first);
  auto is_renewed = [&](const Object* lease) {
    if (lease == nullptr) return false;
    if (lease->uid() == uid) return renewal_of(*lease) != renewal;
    uid = lease->uid();
    renewal = renewal_of(*lease);
    return false;
  };
  co_await leases_.wait_for(key, is_renewed, async::never);
}

}  // namespace hubferry::hubagent
