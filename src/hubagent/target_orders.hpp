#pragma once

#include "hubagent/each_cluster.hpp"
#include "hubferry/hubagent/target.hpp"

/// The orders of Target, one file each. Their contract is Target's; the hub outlives them.
namespace hubferry::hubagent {

Awaitable<Result<Outcome>> validate_on_target(Hub& hub, MigrationRef migration, ClusterNames clusters);
Awaitable<Result<obs::Secret>> issue_token(Hub& hub, MigrationRef migration, BootstrapIdentity identity);
Awaitable<Result<>> initialize_on_target(Hub& hub, MigrationRef migration, BootstrapIdentity identity);
Awaitable<Result<Outcome>> deploy(Hub& hub, MigrationRef migration, Bundle bundle);
Awaitable<Result<>> await_arrivals(Hub& hub, MigrationRef migration, ClusterNames clusters, async::WallTime since,
                                   Target::OnArrival on_arrival);
Awaitable<Result<ClusterNames>> find_arrived(Hub& hub, MigrationRef migration, ClusterNames clusters,
                                             async::WallTime since);
Awaitable<Result<Outcome>> verify(Hub& hub, MigrationRef migration, Bundle bundle);
Awaitable<Result<Outcome>> clean_on_target(Hub& hub, MigrationRef migration, ClusterNames clusters);
Awaitable<Result<Outcome>> roll_back_on_target(Hub& hub, MigrationRef migration, Stage stage, ClusterNames clusters);
Awaitable<Result<>> remove_target_helpers(Hub& hub, MigrationRef migration, BootstrapIdentity identity);

// Parts of initialize and remove_helpers.
Awaitable<Result<>> approve_automatically(Hub& hub, std::string user);
Awaitable<Result<>> end_automatic_approval(Hub& hub, std::string user);

/// The clusters of a bundle, by name.
ClusterNames names_of(const Bundle& bundle);

}  // namespace hubferry::hubagent
