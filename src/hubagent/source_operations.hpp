#pragma once

#include "hubagent/each_cluster.hpp"
#include "hubferry/hubagent/source_hub.hpp"

/// The orders of SourceHub, one file each. Their contract is SourceHub's; the hub outlives them.
namespace hubferry::hubagent {

Awaitable<Result<ClusterNames>> resolve_placement(Hub& hub, std::string placement);
Awaitable<Result<Outcome>> validate_on_source(Hub& hub, MigrationRef migration, ClusterNames clusters);
Awaitable<Result<Outcome>> initialize_on_source(Hub& hub, MigrationRef migration, ClusterNames clusters,
                                                obs::Secret bootstrap_kubeconfig);
Awaitable<Result<Outcome>> collect(Hub& hub, ClusterNames clusters, BundleSink sink);
Awaitable<Result<Outcome>> detach_clusters(Hub& hub, MigrationRef migration, ClusterNames clusters);
Awaitable<Result<Outcome>> clean_on_source(Hub& hub, MigrationRef migration, ClusterNames clusters);
Awaitable<Result<Outcome>> roll_back_on_source(Hub& hub, MigrationRef migration, Stage stage, ClusterNames clusters);
Awaitable<Result<>> delete_source_objects(Hub& hub, MigrationRef migration);

/// Waits until the cache of clusters can be relied on. Errors: the hub's, as a live request tells them.
Awaitable<Result<>> see_clusters(Hub& hub);

/// Does this cluster belong to the migration, by the annotation that initialize wrote?
bool is_in_our_hands(const MigrationRef& migration, const Object& cluster);
/// "cluster c1 on hub h is in the hands of …"
Error not_in_our_hands(const Hub& hub, const std::string& cluster, const Object& object);
Error no_such_cluster(const Hub& hub, const std::string& cluster);

}  // namespace hubferry::hubagent
