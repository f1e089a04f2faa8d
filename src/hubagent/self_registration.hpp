#pragma once

#include "hubagent/registration_approval.hpp"

/// Clusters that registered on the target by themselves: their agents have the target's bootstrap kubeconfig, and find
/// no copy there, since it could not be created or somebody deleted it. Such an agent creates its ManagedCluster
/// itself, without our label.
namespace hubferry::hubagent {

/// True if the cluster's agent has registered here with the migration's credential, or has begun to. With a copy it has
/// joined it; or there is a certificate request of that cluster: the API server itself records who sent it. (Hubs
/// delete requests: an hour after they were approved, a day after they were sent.) Without the permission to look for
/// requests, any copy may be in use.
Awaitable<Result<bool>> is_registered(const Hub& hub, MigrationRef migration, RegistrationRight right,
                                      std::string cluster);

/// Labels and accepts the cluster's ManagedCluster if its agent has registered it with this migration's credential;
/// true then. What proves that: it was created after the clusters were permitted to register, there is such a request,
/// and it is nobody else's: no other migration's, none that has an owner. (The API server does not record who created
/// an object: somebody who created this very ManagedCluster by hand in that time, for an agent that registers with our
/// credential, would see it adopted.) Without proof, or without the permission to look for it, nothing is touched.
Awaitable<Result<bool>> adopt_registered(const Hub& hub, MigrationRef migration, std::string cluster);

}  // namespace hubferry::hubagent
