#pragma once

#include "hubagent/requests.hpp"

namespace hubferry::hubagent {

/// Deletes from a cluster that has arrived on this hub the Secrets with bootstrap kubeconfigs that the source's import
/// controller left on it: nothing uses them any more, their tokens are revoked, and nobody else deletes them. Done by a
/// ManifestWork that contains them and is deleted once the agent has applied it: with it the agent deletes what it
/// contains. A Secret that this hub itself gives the cluster stays.
///
/// Where we may not create works, or the agent does not apply it soon, the Secrets stay; that is logged, and no error.
/// Takes slots of its own.
Awaitable<Result<>> delete_bootstrap_secrets(Hub& hub, MigrationRef migration, std::string cluster);

}  // namespace hubferry::hubagent
