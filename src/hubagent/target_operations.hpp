#pragma once

#include "hubagent/each_cluster.hpp"
#include "hubferry/hubagent/target_hub.hpp"

/// The orders of TargetHub, one file each. Their contract is TargetHub's; the hub outlives them.
namespace hubferry::hubagent {

Awaitable<Result<Outcome>> validate_on_target(Hub& hub, MigrationRef migration, ClusterNames clusters);
Awaitable<Result<obs::Secret>> issue_token(Hub& hub, MigrationRef migration, BootstrapIdentity identity);
Awaitable<Result<>> initialize_on_target(Hub& hub, MigrationRef migration, BootstrapIdentity identity);
Awaitable<Result<Outcome>> deploy(Hub& hub, MigrationRef migration, Bundle bundle);
Awaitable<Result<>> await_arrivals(Hub& hub, MigrationRef migration, ClusterNames clusters, async::WallTime since,
                                   TargetHub::OnArrival on_arrival);
Awaitable<Result<ClusterNames>> find_arrived(Hub& hub, MigrationRef migration, ClusterNames clusters,
                                             async::WallTime since);
Awaitable<Result<Outcome>> verify(Hub& hub, MigrationRef migration, Bundle bundle);
Awaitable<Result<Outcome>> clean_on_target(Hub& hub, MigrationRef migration, ClusterNames clusters);
Awaitable<Result<Outcome>> roll_back_on_target(Hub& hub, MigrationRef migration, Stage stage, ClusterNames clusters);
Awaitable<Result<>> delete_target_objects(Hub& hub, MigrationRef migration, BootstrapIdentity identity);

// Parts of initialize and delete_migration_objects.
Awaitable<Result<>> approve_automatically(Hub& hub, std::string user);
Awaitable<Result<>> end_automatic_approval(Hub& hub, std::string user);

/// The clusters of a bundle, by name.
ClusterNames names_of(const Bundle& bundle);

}  // namespace hubferry::hubagent
