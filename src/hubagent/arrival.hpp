#pragma once

#include "hubagent/calls.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

/// When a cluster counts as arrived on the target. Its ManagedCluster is the one that this migration created (by our
/// label), without any status: Joined and Available on it can only come from the cluster itself. Against what is left
/// of an earlier time, a sign of life after the cut-over is wanted too: Available has become True since, or the lease
/// was renewed since. On a hub with ACM, which makes one for every cluster, the ManifestWork of the klusterlet must
/// have been applied too; elsewhere where there is one.
namespace hubferry::hubagent {

/// As far as the ManagedCluster tells.
bool has_joined(const ocm::ManagedCluster& cluster, const MigrationRef& migration);

/// Is there a sign of life after `since`? Reads the lease only where the condition is older.
Awaitable<Result<bool>> shows_life(const Hub& hub, async::WallTime since, std::string cluster,
                                   const ocm::ManagedCluster& seen);

/// What a hub wants to see of a cluster's klusterlet work before the cluster counts as arrived.
enum class WorkRule { none, applied_if_there, applied };
Awaitable<Result<WorkRule>> work_rule(const Hub& hub);
bool satisfies(WorkRule rule, const Object* work);

/// Waits until the klusterlet's ManifestWork is as wanted; null stands for no such work. Takes slots of its own.
using WorkPredicate = std::function<bool(const Object* work)>;
Awaitable<Result<>> await_klusterlet_work(Hub& hub, std::string cluster, WorkPredicate wanted);

/// The whole test at once, read from the server.
Awaitable<Result<bool>> has_arrived(const Hub& hub, MigrationRef migration, std::string cluster, async::WallTime since,
                                    WorkRule rule);

}  // namespace hubferry::hubagent
