#pragma once

#include <string>
#include <vector>

#include "hubferry/hubs/hub_directory.hpp"

namespace hubferry::relocator {

/// An object of the destination that keeps one from being copied.
struct Obstacle {
  std::string object;  // "Secret pull"
  std::string message;
};

/// One ClusterDeployment that a relocator matches.
struct PlannedRelocation {
  kube::Key deployment;
  std::vector<std::string> objects;  // that would be copied: "Secret pull"
  std::string reason;                // why it would not move, as in its condition; empty: it would
  std::string message;
  bool on_destination = false;                 // it is there already, and would only be deleted here
  std::vector<std::string> missing_sync_sets;  // SelectorSyncSets that match here and are missing there
  // Of the objects, what the destination has already: the others would be created.
  std::vector<std::string> present;   // equal: they would be left as they are
  std::vector<std::string> outdated;  // copies from this hub that would be updated
  std::vector<Obstacle> obstacles;
};

/// The effect of a ClusterRelocator.
struct RelocationPlan {
  std::string name;
  std::string reason;  // why it cannot be used at all; empty: it can
  std::string message;
  std::vector<PlannedRelocation> deployments;  // by namespace and name

  /// True if it would move all that it matches.
  [[nodiscard]] bool can_succeed() const;
};

/// Finds out what a relocator would do, by the controller's own rules. `relocator`: as it is, or would be, on the
/// source. Both hubs are only read. Errors: throws std::runtime_error if the source cannot be read. Cancellation:
/// terminal.
async::Awaitable<RelocationPlan> make_plan(kube::Api& source, hubs::Connect connect, kube::Object relocator,
                                           kube::Env env);

}  // namespace hubferry::relocator
