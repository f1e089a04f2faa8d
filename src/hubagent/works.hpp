#pragma once

#include <optional>
#include <string>

#include "hubagent/requests.hpp"

/// Which ManifestWorks of a cluster are copied: those of its users. On the target they adopt what they deployed before,
/// and the source's eviction deletes nothing. Until the agent has applied them there, the source's works must stay: an
/// agent that still serves the source would delete what they deployed.
namespace hubferry::hubagent {

/// Why this work is not copied; nullopt: it is.
std::optional<std::string> why_work_stays(const std::string& cluster, const Object& work);

/// Picks the works of users, and perhaps some that are not copied all the same.
std::string users_works_selector();

/// The work by which a hub with an import controller installs the klusterlet, with its bootstrap kubeconfigs.
Key klusterlet_work_key(const std::string& cluster);

/// True for the works of the klusterlet itself, of which every hub has its own.
bool is_klusterlet_work(const std::string& cluster, const Object& work);

/// True for a work that controllers of this hub create for every cluster, and create again: of the klusterlet, of an
/// add-on, of a ManifestWorkReplicaSet.
bool is_generated_work(const std::string& cluster, const Object& work);

/// True if the agent has applied the current version of the work.
bool is_applied(const Object& work);

/// Records on a copy whether the agent had applied the work on the source, in whatever version.
void record_applied(json::object& copy, const Object& work);

/// True for a copy of this migration that the agent applied on the source and has not applied here yet.
bool awaits_agent(const MigrationRef& migration, const Object& work);

/// Deletes a copy of this migration from a hub that the agent has left, or never came to: what it deployed stays on the
/// cluster, and nobody is left to remove the agent's finalizer.
Awaitable<Result<>> delete_copied_work(const Hub& hub, MigrationRef migration, Object work);

}  // namespace hubferry::hubagent
