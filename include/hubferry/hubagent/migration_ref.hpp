#pragma once

#include <string>
#include <vector>

namespace hubferry::hubagent {

/// A migration as hubs know it. The objects that it needs on a hub are named after it and carry the label
/// `hubferry.io/migration: <uid>`: an object without that label is not ours, whatever its name.
struct MigrationRef {
  std::string ns;
  std::string name;
  std::string uid;

  [[nodiscard]] std::string klusterlet_config() const { return "migration-" + name; }
  [[nodiscard]] std::string bootstrap_secret() const { return "bootstrap-" + name; }
};

/// The label on everything that a migration creates; its value is the migration's uid.
inline constexpr const char* migration_label = "hubferry.io/migration";

/// How far a migration had come when it failed: what a rollback has to undo.
enum class Stage { initializing, deploying, registering };

using ClusterNames = std::vector<std::string>;

}  // namespace hubferry::hubagent
