#pragma once

#include <vector>

#include "hubagent/requests.hpp"

namespace hubferry::hubagent {

/// A kind whose controller acts on machines, and how to pause it.
struct PausingKind {
  Resource resource;
  const char* annotation;        // paused while it is "true"
  const char* finalizer_suffix;  // finalizers by which the controller would deprovision
};

const std::vector<PausingKind>& pausing_kinds();
/// nullptr for a kind that needs no pause.
const PausingKind* find_pausing(const Resource& resource);
/// Those that the hub serves.
Awaitable<Result<std::vector<PausingKind>>> served_pausing_kinds(const Hub& hub);

/// Pauses every object in a cluster's namespace that is not paused already, and annotates it with our uid.
Awaitable<Result<>> pause_all(const Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration, std::string ns);
/// Resumes the objects that this migration paused.
Awaitable<Result<>> resume_all(const Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration, std::string ns);

/// Drops the finalizers by which the objects of a namespace would be deprovisioned when deleted, and those of their BMC
/// Secrets. The objects are paused first: an active controller would add the finalizers again.
Awaitable<Result<>> prevent_deprovisioning(const Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration,
                                           std::string ns);
/// The same for one object. Returns it as it is then; absent if it is gone.
Awaitable<Result<std::optional<Object>>> prevent_deprovisioning_of(const Hub& hub, PausingKind kind,
                                                                   MigrationRef migration, Object object);

/// Deletes ClusterDeployments without deprovisioning what they describe: a hub keeps the namespace of a deleted cluster
/// for as long as it has one.
Awaitable<Result<>> delete_deployments(const Hub& hub, MigrationRef migration, std::vector<Object> deployments);

// Mutations.
bool pause(json::object& object, const PausingKind& kind, const std::string& uid);
bool resume(json::object& object, const PausingKind& kind, const std::string& uid);
/// Hive leaves a cluster alone when such a ClusterDeployment is deleted. The previous value is recorded.
bool preserve_on_delete(json::object& object);
/// Restores it in a copy.
void restore_preserve_on_delete(json::object& object);
bool drop_finalizers_ending(json::object& object, std::string_view suffix);
/// Those whose prefix is this domain or one below it: "metal3.io/x", "baremetalhost.metal3.io", not
/// "example.com/metal3".
bool drop_finalizers_of(json::object& object, std::string_view domain);

}  // namespace hubferry::hubagent
