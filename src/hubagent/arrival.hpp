#pragma once

#include "hubagent/calls.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

/// When a cluster counts as arrived on the target. Its ManagedCluster is the one that this migration created (by our
/// label), without any status: Joined and Available on it can only come from the cluster itself. Against what is left
/// of an earlier time, a sign of life after the cut-over is wanted too: Available has become True since, or the lease
/// was renewed since. With ACM, the ManifestWork of the klusterlet must have been applied, where there is one.
namespace hubferry::hubagent {

/// As far as the ManagedCluster tells.
bool has_joined(const ocm::ManagedCluster& cluster, const MigrationRef& migration);

/// Is there a sign of life after `since`? Reads the lease only where the condition is older.
Awaitable<Result<bool>> shows_life(const Hub& hub, async::WallTime since, std::string cluster,
                                   const ocm::ManagedCluster& seen);

/// Waits until the klusterlet's ManifestWork, if there is one, has been applied. Takes slots of its own.
Awaitable<Result<>> await_klusterlet_work(Hub& hub, std::string cluster);
/// The same until it is as wanted; null stands for no such work.
using WorkPredicate = std::function<bool(const Object* work)>;
Awaitable<Result<>> await_klusterlet_work(Hub& hub, std::string cluster, WorkPredicate wanted);

/// The whole test at once, read from the server.
Awaitable<Result<bool>> has_arrived(const Hub& hub, MigrationRef migration, std::string cluster, async::WallTime since,
                                    bool works_served);

}  // namespace hubferry::hubagent
