#pragma once

#include <functional>
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
/// The same for the objects that this migration created.
Awaitable<Result<>> pause_copies(const Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration,
                                 std::string ns);
/// Resumes the objects that this migration paused.
Awaitable<Result<>> resume_all(const Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration, std::string ns);

/// Whether an object is still the migration's to change, in the state in which it was just read.
using MayTouch = std::function<bool(const json::object& current)>;
bool may_touch_any(const json::object& object);

/// Drops the finalizers by which an object would be deprovisioned when deleted, and those of its BMC Secret. It is
/// paused first: an active controller would add the finalizers again. Returns it in a version in which it is paused,
/// preserved and without those finalizers; absent if it is gone. An error if it may not be touched any more.
Awaitable<Result<std::optional<Object>>> make_harmless(const Hub& hub, PausingKind kind, MigrationRef migration,
                                                       Object object, MayTouch may_touch);
/// Deletes it in that version: if somebody makes it harmful again in between, it is made harmless again first. (A hub
/// keeps the namespace of a deleted cluster for as long as it has a ClusterDeployment.)
Awaitable<Result<>> delete_harmless(const Hub& hub, PausingKind kind, MigrationRef migration, Object object,
                                    MayTouch may_touch);

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
