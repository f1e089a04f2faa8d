#pragma once

#include <vector>

#include "hubagent/calls.hpp"

namespace hubferry::hubagent {

/// A kind whose controller acts on machines by itself, and how to hold it still.
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

/// Pauses everything in a cluster's namespace that is not paused already, and marks what was paused so.
Awaitable<Result<>> pause_all(const Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration, std::string ns);
/// Takes off the pauses that carry this migration's mark.
Awaitable<Result<>> end_own_pauses(const Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration,
                                   std::string ns);

/// Takes off the finalizers by which the objects of a namespace would be deprovisioned when deleted, those of their
/// BMC Secrets too. The objects are paused first: an active controller would put them back.
Awaitable<Result<>> disarm(const Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration, std::string ns);
/// The same for one object.
Awaitable<Result<>> disarm_one(const Hub& hub, PausingKind kind, MigrationRef migration, Object object);

/// Mutations.
bool pause(json::object& object, const PausingKind& kind, const std::string& uid);
bool end_own_pause(json::object& object, const PausingKind& kind, const std::string& uid);
bool drop_finalizers_ending(json::object& object, std::string_view suffix);

}  // namespace hubferry::hubagent
