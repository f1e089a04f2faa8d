#include "hubagent/arrival.hpp"

#include <algorithm>

#include "hubagent/annotations.hpp"
#include "hubagent/clusters.hpp"
#include "hubagent/hub_watches.hpp"
#include "hubagent/shared_looks.hpp"
#include "hubagent/works.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

/// A watch on one object releases its permit for others after this long: short beside what an operation has, so that
/// objects on which nothing happens do not keep others from being looked at.
constexpr auto watch_turn = std::chrono::seconds{5};

/// From this number of clusters on, they are listed; fewer are read one by one.
constexpr std::size_t worth_listing_clusters = 10;
/// A list may return that many for each one that is wanted. Without a limit each batch of a large migration would list
/// all of its clusters.
constexpr std::size_t most_listed_for_one = 8;

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

Error works_missing(const Hub& hub, const std::string& cluster, const std::string& why) {
  return {FailureReason::works_not_applied, "cluster " + cluster + " on hub " + hub.name() + " " + why};
}

/// True if the lease was renewed sooner than its period demands.
bool was_renewed_early(const Object& before, const Object& now) {
  const auto last = renewed_at(before);
  const auto next = renewed_at(now);
  return before.uid() == now.uid() && last && next && *last < *next && *next < *last + period_of(now);
}

std::string renewal_of(const Object& lease) {
  return std::string{lease.string_at({"spec", "renewTime"})};
}

/// "/metadata/labels/hubferry.io~1migration"
std::string pointer_to(std::string_view map, std::string key) {
  for (auto at = key.find('/'); at != std::string::npos; at = key.find('/', at)) key.replace(at, 1, "~1");
  return "/metadata/" + std::string{map} + "/" + key;
}

/// What keeps the ManagedCluster from counting as joined.
std::string why_not_joined(const ocm::ManagedCluster& cluster) {
  if (cluster.is_being_deleted()) return "is being deleted";
  if (!cluster.hub_accepts_client()) return "is not accepted (spec.hubAcceptsClient)";
  return "has not joined";
}

}  // namespace

bool has_joined(const ocm::ManagedCluster& cluster, const MigrationRef& migration) {
  return cluster.label(migration_label) == migration.uid && !cluster.is_being_deleted() &&
         cluster.hub_accepts_client() && cluster.is_true(joined);
}

bool is_available(const ocm::ManagedCluster& cluster, const MigrationRef& migration) {
  return has_joined(cluster, migration) && cluster.is_true(available);
}

Awaitable<Result<WorkRule>> work_rule(const Hub& hub) {
  auto served = co_await serves(hub, ocm::manifest_works);
  if (!served) co_return served.error();
  if (!*served) co_return WorkRule::none;
  auto acm_role = co_await get_if_exists(hub, kube::resources::cluster_roles, cluster_scoped(acm_bootstrap_role));
  if (!acm_role) co_return acm_role.error();
  co_return *acm_role ? WorkRule::applied : WorkRule::applied_if_exists;
}

bool satisfies(WorkRule rule, const KlusterletWork* work) {
  if (rule == WorkRule::none) return true;
  if (work == nullptr) return rule == WorkRule::applied_if_exists;
  return work->is_applied() && work->delivers();
}

Awaitable<Result<>> enable_import(Hub& hub, MigrationRef migration, std::string cluster) {
  auto allow_import = [&](json::object& object) {
    return is_ours(migration, object) && annotation_text(object, disable_auto_import_annotation) == migration.uid &&
           drop_annotation(object, disable_auto_import_annotation);
  };
  // One request that is conditional on what it removes, whatever else the hub's controllers and the agent write at the
  // same time. If it does not apply, the cluster is read.
  if (const auto known = hub.clusters().get(cluster_scoped(cluster));
      known != nullptr && known->label(migration_label) == migration.uid) {
    if (known->annotation(disable_auto_import_annotation) != migration.uid) co_return Result<>{};
    const auto annotation = pointer_to("annotations", disable_auto_import_annotation);
    json::array patch{
        json::object{{"op", "test"}, {"path", pointer_to("labels", migration_label)}, {"value", migration.uid}},
        json::object{{"op", "test"}, {"path", annotation}, {"value", migration.uid}},
        json::object{{"op", "remove"}, {"path", annotation}}};
    auto patched = co_await hub.api().json_patch(ocm::managed_clusters, cluster_scoped(cluster), std::move(patch));
    if (patched) co_return Result<>{};
  }
  auto enabled = co_await edit(hub, ocm::managed_clusters, cluster_scoped(cluster), allow_import);
  if (!enabled) co_return enabled.error();
  co_return Result<>{};
}

Awaitable<Result<>> wait_for_klusterlet_work(Hub& hub, MigrationRef migration, std::string cluster,
                                             WorkPredicate predicate) {
  const Key key = klusterlet_work_key(cluster);
  // The watch has only works with a label: of one that it does not have nothing is known.
  auto is_seen = [&](const KlusterletWork* work) { return work != nullptr && predicate(work); };
  auto is_read = [&](const Object* work) { return predicate(klusterlet_work_of(work).get()); };
  for (bool first = true;; first = false) {
    const auto works = hub.watches().klusterlet_works.current();
    bool shared = works != nullptr && works->get(key) != nullptr;
    if (!first || !shared) {
      auto slot = co_await hub.slot();
      auto found = co_await get_if_exists(hub, ocm::manifest_works, key);
      if (!found) co_return found.error();
      if (is_read(*found ? &**found : nullptr)) co_return Result<>{};
      shared = works != nullptr && (!*found || works->get(key) != nullptr);
    }
    bool holds = false;
    if (shared) {
      const auto deadline = hub.env().clock.now() + watch_turn;
      auto waited =
          co_await async::before_deadline(hub.env().clock, deadline, works->wait_for(key, is_seen, async::never));
      holds = waited.has_value();
    } else {
      holds = co_await watch_for_a_turn(hub, migration.uid, ocm::manifest_works, key, is_read);
    }
    if (holds) co_return Result<>{};
  }
}

Awaitable<Result<>> wait_for_klusterlet_work(Hub& hub, MigrationRef migration, std::string cluster) {
  auto exists = [](const KlusterletWork* work) { return work != nullptr; };
  if (const auto works = hub.watches().klusterlet_works.current()) {
    const auto deadline = hub.env().clock.now() + watch_turn;
    auto waiting = works->wait_for(klusterlet_work_key(cluster), exists, async::never);
    auto seen = co_await async::before_deadline(hub.env().clock, deadline, std::move(waiting));
    if (seen) co_return Result<>{};
  }
  co_return co_await wait_for_klusterlet_work(hub, std::move(migration), std::move(cluster), exists);
}

Awaitable<Result<>> wait_for_copied_works(Hub& hub, MigrationRef migration, std::string cluster) {
  auto is_applied_or_gone = [&](const Object* work) { return work == nullptr || !awaits_agent(migration, *work); };
  std::vector<Key> pending;
  {
    auto slot = co_await hub.slot();
    auto works = co_await list_few(hub, ocm::manifest_works, cluster, ours_selector(migration));
    if (!works) co_return works.error();
    for (const auto& work : *works)
      if (!is_applied_or_gone(&work)) pending.push_back(work.key());
  }
  for (const auto& key : pending)
    while (!co_await watch_for_a_turn(hub, migration.uid, ocm::manifest_works, key, is_applied_or_gone)) {
    }
  co_return Result<>{};
}

namespace {

/// Whether the klusterlet's work is as `rule` wants it, and the copied ones are applied.
bool are_applied(const MigrationRef& migration, const std::string& cluster, WorkRule rule,
                 const std::vector<Object>& works) {
  const auto klusterlet = std::ranges::find(works, klusterlet_work_key(cluster), &Object::key);
  return satisfies(rule, klusterlet_work_of(klusterlet == works.end() ? nullptr : &*klusterlet).get()) &&
         std::ranges::none_of(works, [&](const Object& work) { return awaits_agent(migration, work); });
}

}  // namespace

Awaitable<std::optional<std::set<std::string>>> clusters_with_copied_works(const Hub& hub, MigrationRef migration) {
  const auto works = co_await hub.looks().all_on_hub(ocm::manifest_works, ours_selector(migration));
  if (works == nullptr) co_return std::nullopt;
  std::set<std::string> clusters;
  for (const auto& work : *works) clusters.emplace(work.ns());
  co_return clusters;
}

Awaitable<Result<bool>> has_applied_works(Hub& hub, MigrationRef migration, std::string cluster, WorkRule rule,
                                          bool copied) {
  const auto watched = hub.watches().klusterlet_works.current();
  const auto known = watched == nullptr ? nullptr : watched->get(klusterlet_work_key(cluster));
  if (known != nullptr && !satisfies(rule, known.get())) co_return false;
  if (known != nullptr && !copied) co_return true;
  auto slot = co_await hub.slot();
  auto listing = known != nullptr ? list_few(hub, ocm::manifest_works, cluster, ours_selector(migration))
                                  : list(hub, ocm::manifest_works, cluster);
  auto works = co_await std::move(listing);
  if (!works) co_return works.error();
  co_return are_applied(migration, cluster, known != nullptr ? WorkRule::none : rule, *works);
}

Awaitable<Result<>> wait_for_sign_of_life(Hub& hub, MigrationRef migration, std::string cluster,
                                          async::WallTime since) {
  auto is_alive = [&hub, cluster, since](const Object* lease) {
    return hub.seen_leases().judge(cluster, lease, since, hub.env().clock).kind == SignOfLife::Kind::alive;
  };
  return wait_for(hub, migration.uid, kube::resources::leases, ocm::lease_key(cluster), is_alive);
}

bool is_worth_listing(const Hub& hub, const MigrationRef& migration, std::size_t wanted) {
  if (wanted < worth_listing_clusters) return false;
  std::size_t ours = 0;
  hub.clusters().for_each([&](const Key&, const auto& cluster) {
    if (cluster->label(migration_label) == migration.uid) ++ours;
  });
  return ours <= wanted * most_listed_for_one;
}

Awaitable<ListedClusters> list_for_arrival(Hub& hub, MigrationRef migration, std::size_t wanted) {
  ListedClusters listed;
  listed.at = hub.env().clock.now();
  if (!is_worth_listing(hub, migration, wanted)) co_return listed;
  auto clusters = co_await list(hub, ocm::managed_clusters, {}, ours_selector(migration));
  if (clusters)
    for (auto& one : *clusters) listed.clusters.emplace(one.name(), std::move(one));
  // Leases cannot be listed by migration: all of the hub are.
  if (wanted * most_listed_for_one < hub.clusters().size()) co_return listed;
  const bool may_list = co_await hub.rights().may("list", kube::resources::leases, ocm::names::cluster_lease);
  if (!may_list) co_return listed;
  kube::ListOptions options;
  options.field_selector = std::string{"metadata.name="} + ocm::names::cluster_lease;
  auto leases = co_await hub.api().list_all(kube::resources::leases, options);
  if (leases)
    for (auto& one : *leases) listed.leases.emplace(one.ns(), std::move(one));
  co_return listed;
}

namespace {

/// On a slow hub a cluster may wait for its turn: then it is read.
constexpr auto listed_lifetime = std::chrono::seconds{5};

/// As it was listed, or else read.
Awaitable<Result<std::optional<Object>>> read_unless_listed(const ListedClusters& listed,
                                                            const std::map<std::string, Object>& objects,
                                                            const Hub& hub, std::string cluster, Resource resource,
                                                            Key key) {
  const bool usable = hub.env().clock.now() - listed.at <= listed_lifetime;
  if (const auto known = objects.find(cluster); usable && known != objects.end())
    co_return std::optional<Object>{known->second};
  co_return co_await get_if_exists(hub, std::move(resource), std::move(key));
}

using JoinedCluster = std::shared_ptr<const ocm::ManagedCluster>;

Awaitable<Result<JoinedCluster>> read_joined(const Hub& hub, MigrationRef migration, std::string cluster,
                                             const ListedClusters& listed) {
  auto found = co_await read_unless_listed(listed, listed.clusters, hub, cluster, ocm::managed_clusters,
                                           cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found) co_return no_such_cluster(hub, cluster);
  if (!is_ours(migration, **found))
    co_return Error{FailureReason::cluster_not_found,
                    "managed cluster " + cluster + " on hub " + hub.name() + " is not the one of this migration"};
  auto decoded = ocm::managed_cluster_decoder().from_object(**found);
  if (!decoded) co_return decoded.error();
  auto seen = std::static_pointer_cast<const ocm::ManagedCluster>(decoded->object);
  if (!has_joined(*seen, migration)) co_return not_arrived(hub, cluster, why_not_joined(*seen));
  co_return seen;
}

}  // namespace

Awaitable<Result<>> check_available(const Hub& hub, MigrationRef migration, std::string cluster,
                                    const ListedClusters& listed) {
  auto seen = co_await read_joined(hub, migration, cluster, listed);
  if (!seen) co_return seen.error();
  if (!is_available(**seen, migration)) co_return not_arrived(hub, cluster, "is not Available");
  co_return Result<>{};
}

Awaitable<Result<>> check_arrival(const Hub& hub, MigrationRef migration, std::string cluster, async::WallTime since,
                                  WorkRule rule, const ListedClusters& listed) {
  auto seen = co_await read_joined(hub, migration, cluster, listed);
  if (!seen) co_return seen.error();
  auto lease = co_await read_unless_listed(listed, listed.leases, hub, cluster, kube::resources::leases,
                                           ocm::lease_key(cluster));
  if (!lease) co_return lease.error();
  const auto sign = hub.seen_leases().judge(cluster, *lease ? &**lease : nullptr, since, hub.env().clock);
  if (sign.kind == SignOfLife::Kind::absent) co_return not_arrived(hub, cluster, sign.why);
  if (sign.kind == SignOfLife::Kind::unknown)
    co_return Error{FailureReason::unknown, "cluster " + cluster + " on hub " + hub.name() + " " + sign.why};
  if (!is_available(**seen, migration))
    co_return Error{FailureReason::cluster_unhealthy,
                    "cluster " + cluster + " on hub " + hub.name() + " is not Available, though its agent is there"};
  // One request for all of them; without a rule only the copied ones matter.
  auto listing = rule == WorkRule::none ? list_few(hub, ocm::manifest_works, cluster, ours_selector(migration))
                                        : list(hub, ocm::manifest_works, cluster);
  auto works = co_await std::move(listing);
  if (!works) co_return works.error();
  const auto klusterlet = std::ranges::find(*works, klusterlet_work_key(cluster), &Object::key);
  if (!satisfies(rule, klusterlet_work_of(klusterlet == works->end() ? nullptr : &*klusterlet).get()))
    co_return works_missing(hub, cluster, "has not applied its klusterlet's ManifestWork");
  for (const auto& work : *works)
    if (awaits_agent(migration, work))
      co_return works_missing(hub, cluster,
                              "has not applied " + described(ocm::manifest_works, work.key()) +
                                  ", which keeps workloads of the source on it");
  co_return Result<>{};
}

Heartbeats::Heartbeats(Hub& hub, std::shared_ptr<Leases> shared)
    : clock_(hub.env().clock),
      shared_(shared != nullptr),
      leases_(shared_ ? std::move(shared)
                      : std::make_shared<Leases>(hub.api(), kube::resources::leases, cluster_leases(),
                                                 kube::object_decoder(), hub.env())) {}

bool Heartbeats::is_alive(const std::string& cluster, async::WallTime since, async::WallTime now) const {
  const auto lease = leases_->get(ocm::lease_key(cluster));
  return !why_not_alive(lease.get(), since, now) && !is_ahead(*lease, now);
}

Awaitable<> Heartbeats::run() {
  const auto subscription = leases_->subscribe([this](const Key& key, const auto& old, const auto& now) {
    if (old != nullptr && now != nullptr && was_renewed_early(*old, *now)) ++starts_[key.ns];
  });
  if (shared_) co_await clock_.sleep_until(async::never);
  co_await leases_->run();
}

std::size_t Heartbeats::starts(const std::string& cluster) const {
  const auto found = starts_.find(cluster);
  return found == starts_.end() ? 0 : found->second;
}

Awaitable<> Heartbeats::wait_for_lease(std::string cluster) {
  auto exists = [](const Object* lease) { return lease != nullptr; };
  co_await leases_->wait_for(ocm::lease_key(cluster), exists, async::never);
}

Awaitable<> Heartbeats::wait_for_renewal(std::string cluster) {
  const Key key = ocm::lease_key(cluster);
  auto exists = [](const Object* lease) { return lease != nullptr; };
  auto first = co_await leases_->wait_for(key, exists, async::never);
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
  co_await leases_->wait_for(key, is_renewed, async::never);
}

Awaitable<> Heartbeats::wait_for_renewal(std::string cluster, Object known) {
  // The cache may still show an older state than the one that the caller knows, but then one that it knows of.
  co_await leases_->wait_until_seen(ocm::lease_key(cluster), std::string{known.resource_version()}, async::never);
  auto has_changed = [&](const Object* lease) {
    return lease != nullptr && (lease->uid() != known.uid() || renewal_of(*lease) != renewal_of(known));
  };
  co_await leases_->wait_for(ocm::lease_key(cluster), has_changed, async::never);
}

}  // namespace hubferry::hubagent
