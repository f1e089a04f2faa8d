#pragma once

#include <string>
#include <vector>

namespace hubferry::hubagent {

/// A migration as hubs know it. The objects that it needs on a hub are named after it, and carry the label
/// `hubferry.io/migration: <uid>`: what lacks that label is not ours, whatever its name.
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

/// Why one cluster could not be treated: a sentence for people, without any secret.
struct ClusterFailure {
  std::string cluster;
  std::string reason;  // one of `reasons`
  std::string message;
};

/// Words for ClusterFailure::reason.
namespace reasons {
inline constexpr const char* not_found = "ClusterNotFound";
inline constexpr const char* conflict = "ClusterConflict";
inline constexpr const char* not_available = "ClusterNotAvailable";
inline constexpr const char* local_cluster = "ClusterIsLocal";
inline constexpr const char* hosted = "ClusterIsHosted";
inline constexpr const char* is_hub = "ClusterIsHub";
inline constexpr const char* not_allowed = "ResourceNotAllowed";
inline constexpr const char* invalid = "ResourceInvalid";
inline constexpr const char* differs = "ResourceDiffers";
inline constexpr const char* other = "Error";
}  // namespace reasons

/// What an order came to, cluster by cluster: each cluster of the order is in exactly one of the two.
struct Outcome {
  ClusterNames done;
  std::vector<ClusterFailure> failed;
};

}  // namespace hubferry::hubagent
