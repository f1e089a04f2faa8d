#include "hubagent/arrival.hpp"

#include <algorithm>

#include "hubagent/annotations.hpp"
#include "hubagent/clusters.hpp"
#include "hubagent/works.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

/// A hub keeps a cluster Available for this many lease periods after the last renewal.
constexpr int periods_alive = 5;
constexpr auto default_period = std::chrono::seconds{60};

/// A watch on one object releases its permit for others after this long: short beside what an operation has, so that
/// objects on which nothing happens do not keep others from being looked at.
constexpr auto watch_turn = std::chrono::seconds{5};

/// With ReadOnly the agent reports the manifests as applied, but only compares them.
bool is_read_only(const Object& work) {
  const auto* configs = work.find({"spec", "manifestConfigs"});
  if (configs == nullptr || !configs->is_array()) return false;
  return std::ranges::any_of(configs->get_array(), [](const json::value& config) {
    return config.is_object() && kube::string_at(config.get_object(), {"updateStrategy", "type"}) == "ReadOnly";
  });
}

std::optional<async::WallTime> renewed_at(const Object& lease) {
  const auto text = lease.string_at({"spec", "renewTime"});
  if (text.empty()) return std::nullopt;
  try {
    return async::parse_time(text);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

async::Duration period_of(const Object& lease) {
  const auto* seconds = lease.find({"spec", "leaseDurationSeconds"});
  if (seconds == nullptr || !seconds->is_int64() || seconds->get_int64() <= 0) return default_period;
  return std::chrono::seconds{std::min<std::int64_t>(seconds->get_int64(), 24L * 3600)};
}

/// False if the turn ended before the predicate held.
Awaitable<bool> watch_for_a_turn(Hub& hub, std::string migration, Resource resource, Key key,
                                 kube::ObjectPredicate predicate) {
  auto permit = co_await hub.small_watches().acquire(std::move(migration));
  const auto deadline = hub.env().clock.now() + watch_turn;
  co_return co_await kube::wait_for_object(hub.api(), std::move(resource), std::move(key), std::move(predicate),
                                           deadline, hub.env());
}

/// Reads the object, then watches it in turns until `predicate` holds.
Awaitable<Result<>> wait_for(Hub& hub, std::string migration, Resource resource, Key key,
                             kube::ObjectPredicate predicate) {
  while (true) {
    {
      // Also after each turn: on a slow hub the first list of a watch may take as long.
      auto slot = co_await hub.slot();
      auto found = co_await get_if_exists(hub, resource, key);
      if (!found) co_return found.error();
      if (predicate(*found ? &**found : nullptr)) co_return Result<>{};
    }
    if (co_await watch_for_a_turn(hub, migration, resource, key, predicate)) co_return Result<>{};
  }
}

Error not_arrived(const Hub& hub, const std::string& cluster, const std::string& why) {
  return {FailureReason::cluster_not_available, "cluster " + cluster + " on hub " + hub.name() + " " + why};
}

kube::CacheOptions cluster_leases() {
  kube::CacheOptions options;
  options.field_selector = std::string{"metadata.name="} + ocm::names::cluster_lease;
  return options;
}

std::string renewal_of(const Object& lease) {
  return std::string{lease.string_at({"spec", "renewTime"})};
}

/// What keeps the ManagedCluster from counting as joined.
std::string why_not_joined(const ocm::ManagedCluster& cluster) {
  if (cluster.is_being_deleted()) return "is being deleted";
  if (!cluster.hub_accepts_client()) return "is not accepted (spec.hubAcceptsClient)";
  if (!cluster.is_true(joined)) return "has not joined";
  return "is not Available";
}

}  // namespace

bool has_joined(const ocm::ManagedCluster& cluster, const MigrationRef& migration) {
  return cluster.label(migration_label) == migration.uid && !cluster.is_being_deleted() &&
         cluster.hub_accepts_client() && cluster.is_true(joined) && cluster.is_true(available);
}

std::optional<std::string> why_not_alive(const Object* lease, async::WallTime since, async::WallTime now) {
  const auto renewed = lease == nullptr ? std::nullopt : renewed_at(*lease);
  if (!renewed) return "has no lease that its agent renews";
  const auto last = "; it was last renewed at " + async::format_time(*renewed);
  if (*renewed <= since) return "has a lease that its agent has not renewed since the cut-over" + last;
  if (*renewed + periods_alive * period_of(*lease) < now) return "has a lease that its agent renews no more" + last;
  return std::nullopt;
}

Awaitable<Result<WorkRule>> work_rule(const Hub& hub) {
  auto served = co_await serves(hub, ocm::manifest_works);
  if (!served) co_return served.error();
  if (!*served) co_return WorkRule::none;
  auto acm_role = co_await get_if_exists(hub, kube::resources::cluster_roles, cluster_scoped(acm_bootstrap_role));
  if (!acm_role) co_return acm_role.error();
  co_return *acm_role ? WorkRule::applied : WorkRule::applied_if_exists;
}

bool delivers(const Object& work) {
  return !is_read_only(work);
}

bool satisfies(WorkRule rule, const Object* work) {
  if (rule == WorkRule::none) return true;
  if (work == nullptr) return rule == WorkRule::applied_if_exists;
  return is_applied(*work) && delivers(*work);
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

Awaitable<Result<>> wait_for_klusterlet_work(Hub& hub, MigrationRef migration, std::string cluster,
                                             kube::ObjectPredicate predicate) {
  return wait_for(hub, migration.uid, ocm::manifest_works, klusterlet_work_key(cluster), std::move(predicate));
}

Awaitable<Result<>> wait_for_copied_works(Hub& hub, MigrationRef migration, std::string cluster) {
  auto is_applied_or_gone = [&](const Object* work) { return work == nullptr || !awaits_agent(migration, *work); };
  std::vector<Key> pending;
  {
    auto slot = co_await hub.slot();
    auto works = co_await list(hub, ocm::manifest_works, cluster, ours_selector(migration));
    if (!works) co_return works.error();
    for (const auto& work : *works)
      if (!is_applied_or_gone(&work)) pending.push_back(work.key());
  }
  for (const auto& key : pending)
    while (!co_await watch_for_a_turn(hub, migration.uid, ocm::manifest_works, key, is_applied_or_gone)) {
    }
  co_return Result<>{};
}

Awaitable<Result<>> wait_for_sign_of_life(Hub& hub, MigrationRef migration, std::string cluster,
                                          async::WallTime since) {
  auto is_alive = [&hub, since](const Object* lease) {
    return !why_not_alive(lease, since, hub.env().clock.wall_now());
  };
  return wait_for(hub, migration.uid, kube::resources::leases, ocm::lease_key(cluster), is_alive);
}

Awaitable<Result<>> check_arrival(const Hub& hub, MigrationRef migration, std::string cluster, async::WallTime since,
                                  WorkRule rule) {
  auto found = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found) co_return no_such_cluster(hub, cluster);
  if (!is_ours(migration, **found))
    co_return Error{FailureReason::cluster_not_found,
                    "managed cluster " + cluster + " on hub " + hub.name() + " is not the one of this migration"};
  auto decoded = ocm::managed_cluster_decoder().from_object(**found);
  if (!decoded) co_return decoded.error();
  const auto seen = std::static_pointer_cast<const ocm::ManagedCluster>(decoded->object);
  if (!has_joined(*seen, migration)) co_return not_arrived(hub, cluster, why_not_joined(*seen));
  auto lease = co_await get_if_exists(hub, kube::resources::leases, ocm::lease_key(cluster));
  if (!lease) co_return lease.error();
  if (const auto why = why_not_alive(*lease ? &**lease : nullptr, since, hub.env().clock.wall_now()))
    co_return not_arrived(hub, cluster, *why);
  // One request for all of them; without a rule only the copied ones matter.
  const auto selector = rule == WorkRule::none ? ours_selector(migration) : std::string{};
  auto works = co_await list(hub, ocm::manifest_works, cluster, selector);
  if (!works) co_return works.error();
  const auto klusterlet = std::ranges::find(*works, klusterlet_work_key(cluster), &Object::key);
  if (!satisfies(rule, klusterlet == works->end() ? nullptr : &*klusterlet))
    co_return not_arrived(hub, cluster, "has not applied its klusterlet's ManifestWork");
  for (const auto& work : *works)
    if (awaits_agent(migration, work))
      co_return not_arrived(hub, cluster,
                            "has not applied " + described(ocm::manifest_works, work.key()) +
                                ", which keeps workloads of the source on it");
  co_return Result<>{};
}

Heartbeats::Heartbeats(Hub& hub)
    : leases_(hub.api(), kube::resources::leases, cluster_leases(), kube::object_decoder(), hub.env()) {}

Awaitable<> Heartbeats::wait_for_lease(std::string cluster) {
  auto exists = [](const Object* lease) { return lease != nullptr; };
  co_await leases_.wait_for(ocm::lease_key(cluster), exists, async::never);
}

Awaitable<> Heartbeats::wait_for_renewal(std::string cluster) {
  const Key key = ocm::lease_key(cluster);
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

Awaitable<> Heartbeats::wait_for_renewal(std::string cluster, Object known) {
  // The cache may still show an older state than the one that the caller knows, but then one that it knows of.
  co_await leases_.wait_until_seen(ocm::lease_key(cluster), std::string{known.resource_version()}, async::never);
  auto has_changed = [&](const Object* lease) {
    return lease != nullptr && (lease->uid() != known.uid() || renewal_of(*lease) != renewal_of(known));
  };
  co_await leases_.wait_for(ocm::lease_key(cluster), has_changed, async::never);
}

}  // namespace hubferry::hubagent
