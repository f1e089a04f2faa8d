#pragma once

#include "hubagent/registration_approval.hpp"

/// Clusters that registered on the target by themselves: their agents have the target's bootstrap kubeconfig, and find
/// no copy there, since it could not be created or somebody deleted it. Such an agent creates its ManagedCluster
/// itself, without our label.
namespace hubferry::hubagent {

/// Labels and accepts the cluster's ManagedCluster if it carries no migration's label and its agent has registered it
/// with this migration's credential; true then. The proof is a certificate request of that cluster: the API server
/// itself records who sent it. (Hubs delete requests: an hour after they were approved, a day after they were sent.)
/// Without proof, or without the permission to look for it, nothing is touched.
Awaitable<Result<bool>> adopt_registered(const Hub& hub, MigrationRef migration, std::string cluster);

/// Why an adopted cluster has not arrived yet.
Error just_adopted(const Hub& hub, const std::string& cluster);

}  // namespace hubferry::hubagent
