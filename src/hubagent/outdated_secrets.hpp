#pragma once

#include "hubagent/requests.hpp"

/// The Secrets with bootstrap kubeconfigs that the source's import controller has put on a cluster. After the move
/// nobody uses them, and nobody deletes them: the klusterlet's work leaves its objects behind. A ManifestWork of the
/// target that contains them, and is deleted at the end, takes them along. The agent adopts them as they are
/// (CreateOnly).
///
/// Where we may not create works, or the cluster has no work agent, they stay. That is logged, and never an error.
namespace hubferry::hubagent {

/// The label of these works. One is deleted only if it carries this label and the migration's: works of users have
/// neither.
inline constexpr const char* outdated_secrets_label = "hubferry.io/deletes-outdated-secrets";

/// Creates the work of a cluster that arrives: once, since nothing but an arrival does so. Takes a slot of its own.
Awaitable<> adopt_outdated_secrets(Hub& hub, MigrationRef migration, std::string cluster);

/// Deletes these works of all clusters, once their agents have applied them or have had some seconds for it. An error
/// is one of the hub: to be repeated. Takes slots of its own.
Awaitable<Result<>> delete_outdated_secrets(Hub& hub, MigrationRef migration);

}  // namespace hubferry::hubagent
