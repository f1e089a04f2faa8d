#pragma once

#include <functional>

#include "hubagent/requests.hpp"

/// What operations share about clusters: processing them in parallel, the cache, and the claim.
namespace hubferry::hubagent {

/// True for errors after which no other cluster needs to be tried: the hub does not answer, or refuses our credential.
/// A 403 is not one of them: permissions and quotas may differ from namespace to namespace.
bool stops_all(const Error& error);

/// Processes one cluster; releases the slot early where it only waits. An error is the cluster's failure, unless it
/// stops all.
using ProcessCluster = std::function<Awaitable<Result<>>(std::string cluster, Slot slot)>;

/// Processes clusters in parallel, as many as the hub has slots. It takes one slot at a time, so that the operations of
/// several migrations share the hub's slots fairly. An error that stops all is the result; so is a missing permission
/// if it is missing for every cluster.
Awaitable<Result<Outcome>> for_each_cluster(Hub& hub, ClusterNames clusters, ProcessCluster process);
/// The same for HubOptions::operation_timeout: what is not processed by then fails.
Awaitable<Result<Outcome>> for_each_cluster_in_time(Hub& hub, ClusterNames clusters, ProcessCluster process);

/// Waits until the hub's cluster cache is synced. Errors: those of a live request, since a cache does not report why it
/// is not synced.
Awaitable<Result<>> wait_for_cluster_cache(Hub& hub);

/// Waits until the cache no longer shows this ManagedCluster, of which a deletion has left `rest`. After
/// HubOptions::deletion_timeout an error that names the finalizers, as what the cluster waits for does until then.
Awaitable<Result<>> wait_until_deleted(Hub& hub, MigrationRef migration, Object rest);
/// That error, for any object; of a namespace with what its controller says remains in it.
Error still_there(const Hub& hub, const Resource& resource, const Object& rest);

/// True if the migration has claimed this ManagedCluster, by the annotation that initialize wrote.
bool is_claimed_by(const MigrationRef& migration, const Object& cluster);
Error not_claimed(const Hub& hub, const std::string& cluster, const Object& object);
Error no_such_cluster(const Hub& hub, const std::string& cluster);

}  // namespace hubferry::hubagent
