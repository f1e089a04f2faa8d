#include "hubagent/heartbeats.hpp"

#include "hubagent/arrival.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

kube::CacheOptions cluster_leases() {
  kube::CacheOptions options;
  options.field_selector = std::string{"metadata.name="} + ocm::names::cluster_lease;
  return options;
}

std::string renewal_of(const Object& lease) {
  return std::string{lease.string_at({"spec", "renewTime"})};
}

}  // namespace

Heartbeats::Heartbeats(Hub& hub)
    : leases_(hub.api(), kube::resources::leases, cluster_leases(), kube::object_decoder(), hub.env()) {}

bool Heartbeats::is_alive(const std::string& cluster, async::WallTime since, async::WallTime now) const {
  const auto lease = leases_.get(ocm::lease_key(cluster));
  return !why_not_alive(lease.get(), since, now);
}

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

Awaitable<> await_renewals_of(Hub& hub, ClusterNames clusters, OnRenewal on_renewal) {
  Heartbeats heartbeats{hub};
  auto wait = [&](std::string cluster) -> Awaitable<> {
    co_await heartbeats.wait_for_renewal(cluster);
    on_renewal(cluster);
  };
  auto wait_for_all = [&](async::TaskScope& scope) -> Awaitable<> {
    for (const auto& cluster : clusters) scope.spawn(wait(cluster));
    co_return;
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(heartbeats.run());
    co_await async::with_scope(wait_for_all);
    scope.stop();
  };
  co_await async::with_scope(body);
}

}  // namespace hubferry::hubagent
