#include "hubagent/heartbeats.hpp"

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

Awaitable<> Heartbeats::next(std::string cluster) {
  const Key key{std::move(cluster), ocm::names::cluster_lease};
  auto exists = [](const Object* lease) { return lease != nullptr; };
  auto first = co_await leases_.wait_for(key, exists, async::never);
  // Renewed is another time on the same object; a lease that was made anew begins a new count.
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
