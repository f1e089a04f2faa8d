#pragma once

#include <map>
#include <string>
#include <vector>

namespace hubferry::hubagent {

/// A migration as hubs know it. The objects that it needs on a hub are named after it and carry the label
/// `hubferry.io/migration: <uid>`: an object without that label is not ours, whatever its name.
struct MigrationRef {
  std::string ns;
  std::string name;
  std::string uid;

  /// The KlusterletConfig that gives clusters the target's bootstrap kubeconfig: one for each that they had before
  /// (empty: none), whose settings it repeats.
  [[nodiscard]] std::string klusterlet_config(const std::string& before = {}) const {
    return "migration-" + name + (before.empty() ? "" : "-" + before);
  }
  /// The KlusterletConfig that lets the import controller rest once a cluster has our bootstrap kubeconfig: the Secret
  /// that it names, by the same name, does not exist, and without it the import controller writes nothing.
  [[nodiscard]] std::string resting_config() const { return "delivered-" + name; }
  [[nodiscard]] std::string bootstrap_secret() const { return "bootstrap-" + name; }
};

/// The label on everything that a migration creates; its value is the migration's uid.
inline constexpr const char* migration_label = "hubferry.io/migration";

/// How far a migration had come when it failed: what a rollback has to undo.
enum class Stage { initializing, deploying, registering };

using ClusterNames = std::vector<std::string>;

/// The users' KlusterletConfigs by name, with the clusters that refer to each.
using KlusterletConfigUses = std::map<std::string, ClusterNames>;

}  // namespace hubferry::hubagent
