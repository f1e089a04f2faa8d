#pragma once

#include "hubagent/calls.hpp"
#include "hubferry/hubagent/migration_ref.hpp"

/// When a cluster may be let go. Its agent learns of the target through the ManifestWork `<cluster>-klusterlet`, which
/// the import controller writes anew after initialize. An agent that is denied before it has applied that knows of no
/// other hub, and cannot read the work any more: it would be lost to both.
namespace hubferry::hubagent {

/// Does the cluster's agent know the way to the target, by this work? Without a work nobody hands anything out, and
/// there is nothing to wait for.
bool knows_the_way(const Object* work, const MigrationRef& migration);

/// Reads the work; true also where the hub does not serve ManifestWorks.
Awaitable<Result<bool>> has_the_way(const Hub& hub, MigrationRef migration, std::string cluster);

/// Waits for it, woken by a watch. Holds no slot.
Awaitable<> await_the_way(Hub& hub, MigrationRef migration, std::string cluster);

}  // namespace hubferry::hubagent
