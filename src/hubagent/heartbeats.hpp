#pragma once

#include "hubagent/calls.hpp"
#include "hubferry/kube/cache.hpp"

namespace hubferry::hubagent {

/// Hears the clusters of a hub renew their leases: the one sign of life that a hub cannot give in a cluster's place.
/// (The hub creates a lease, with the time of its creation; after that only the cluster renews it.)
/// Lifetime: outlives run() and those who wait.
class Heartbeats {
 public:
  explicit Heartbeats(Hub& hub);

  /// Follows the leases until cancelled: one watch for all clusters.
  Awaitable<> run() { return leases_.run(); }
  /// Waits for a renewal that comes after this call.
  Awaitable<> next(std::string cluster);

 private:
  kube::Cache<Object> leases_;
};

}  // namespace hubferry::hubagent
