#pragma once

#include "hubagent/clusters.hpp"
#include "hubagent/heartbeats.hpp"

/// How a detached cluster returns to the source. The hub accepts it again, and keeps the claim and the annotation
/// `returning` on it until its agent has renewed the lease: Available proves nothing, it stays True for five lease
/// periods after the agent has left. The lease is not deleted, since the hub would create it anew with the time of now.
/// All that is needed for that is on the ManagedCluster, so that any process can continue.
namespace hubferry::hubagent {

bool is_accepted(const Object& cluster);
/// True for a cluster that accept_again() has accepted.
bool is_returning(const Object& cluster);

/// Accepts a claimed cluster again. No effect on one that is not claimed, which must be accepted already.
Awaitable<Result<>> accept_again(const Hub& hub, MigrationRef migration, std::string cluster);

/// Waits until the agent of an accepted cluster has renewed its lease, and the cluster is Available.
Awaitable<Result<>> wait_for_return(Hub& hub, MigrationRef migration, std::string cluster, Slot slot,
                                    Heartbeats& heartbeats);

}  // namespace hubferry::hubagent
