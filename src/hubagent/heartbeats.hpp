#pragma once

#include <functional>

#include "hubagent/requests.hpp"
#include "hubferry/kube/cache.hpp"

/// A renewal is seen as a change of the lease. The time in it is by the clock of the agent, which may be hours ahead of
/// ours: it says nothing about when.
namespace hubferry::hubagent {

/// Watches the clusters of a hub renew their leases: the one sign of life that a hub cannot give on a cluster's behalf.
/// (The hub creates a lease, with the time of its creation; after that only the cluster renews it.)
/// Lifetime: outlives run() and all waiters.
class Heartbeats {
 public:
  explicit Heartbeats(Hub& hub);

  /// Watches the leases until cancelled: one watch for all clusters.
  Awaitable<> run() { return leases_.run(); }
  /// As far as seen: false may be outdated.
  [[nodiscard]] bool is_alive(const std::string& cluster, async::WallTime since, async::WallTime now) const;
  Awaitable<> wait_for_lease(std::string cluster);
  /// Waits for a renewal after this call.
  Awaitable<> wait_for_renewal(std::string cluster);
  /// Waits until there is another lease, or this one was renewed.
  Awaitable<> wait_for_renewal(std::string cluster, Object known);

 private:
  kube::Cache<Object> leases_;
};

using OnRenewal = std::function<void(const std::string& cluster)>;

/// Calls `on_renewal` for each cluster that renews its lease from now on; ends when all have.
Awaitable<> await_renewals_of(Hub& hub, ClusterNames clusters, OnRenewal on_renewal);

}  // namespace hubferry::hubagent
