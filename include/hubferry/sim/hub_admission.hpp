#pragma once

#include "hubferry/sim/server.hpp"

namespace hubferry::sim {

/// What Open Cluster Management's webhook checks on a simulated hub: setting hubAcceptsClient to true needs the right
/// to update `managedclusters/accept` in register.open-cluster-management.io, and is refused while the cluster's
/// namespace is being deleted. Setting it to false needs no more than the right to update the cluster.
void guard_acceptance(Server& hub);

}  // namespace hubferry::sim
