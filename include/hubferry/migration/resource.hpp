#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/hubagent/migration_ref.hpp"
#include "hubferry/hubagent/target_hub.hpp"
#include "hubferry/kube/object.hpp"
#include "hubferry/kube/resource.hpp"
#include "hubferry/phase/state.hpp"

/// The custom resource of a migration: its kind, spec and status, and the names that users meet in it.
namespace hubferry::migration {

/// global-hub.open-cluster-management.io/v1alpha1 ManagedClusterMigration.
extern const kube::Resource managed_cluster_migrations;

/// The types of its conditions, in the order in which they are first set.
namespace conditions {

inline constexpr const char* started = "MigrationStarted";
inline constexpr const char* validated = "ResourceValidated";
inline constexpr const char* initialized = "ResourceInitialized";
inline constexpr const char* deployed = "ResourceDeployed";
inline constexpr const char* registered = "ClusterRegistered";
inline constexpr const char* verified = "MigrationVerified";
inline constexpr const char* cleaned = "ResourceCleaned";
inline constexpr const char* rolled_back = "ResourceRolledBack";
/// What the phase says in the words that tools know: `kubectl wait`, and kstatus, by which Flux and Argo CD judge. They
/// follow from the phase and from the conditions above, so MigrationStatus has them not.
inline constexpr const char* ready = "Ready";          // Unknown until the end
inline constexpr const char* succeeded = "Succeeded";  // only at the end
inline constexpr const char* stalled = "Stalled";      // True if it failed, else absent
/// True while the hubs or clusters in the spec are not those that the migration moves, else absent: somebody has
/// changed them on an API server that does not know the rule against it (CEL).
inline constexpr const char* spec_changed = "SpecChanged";

}  // namespace conditions

/// The reasons of conditions that are not True. A phase that succeeded has a reason of its own; a cluster's failure has
/// a hubagent::FailureReason or `timeout`.
namespace reasons {

inline constexpr const char* waiting = "Waiting";      // not yet, and nothing is wrong
inline constexpr const char* cancelled = "Cancelled";  // the migration was deleted
inline constexpr const char* timeout = "Timeout";
inline constexpr const char* error = "Error";
/// A rollback, or a cleanup, that cannot be finished now: it is retried until it can.
inline constexpr const char* rollback_pending = "RollbackPending";
inline constexpr const char* cleanup_pending = "CleanupPending";
inline constexpr const char* left_behind = "LeftBehind";  // a person ended it before all was done
inline constexpr const char* hub_invalid = "HubClusterInvalid";
inline constexpr const char* spec_invalid = "ResourceInvalid";
inline constexpr const char* change_ignored = "ChangeIgnored";           // of SpecChanged
inline constexpr const char* config_map_conflict = "ConfigMapConflict";  // the ledger's name is taken

}  // namespace reasons

namespace names {

/// On the resource from the start until nothing is left to undo.
inline constexpr const char* finalizer = "hubferry.io/migration";
/// "rollback" on a Failed migration retries the rollback; in Cleaning, and on one that completed and left something
/// behind, it returns the clusters that the target has lost.
inline constexpr const char* request_annotation = "global-hub.open-cluster-management.io/migration-request";
inline constexpr const char* rollback_request = "rollback";
/// Ends a rollback or a cleanup that is pending, by naming what stays: hubs ("hub2": everything of the migration there)
/// and clusters on a hub ("hub2/cluster1"), separated by commas; "global-hub" for the credential.
inline constexpr const char* leave_annotation = "hubferry.io/leave-behind";
/// Where the add-on keeps the ServiceAccounts of ManagedServiceAccounts on the target.
inline constexpr const char* install_namespace_annotation =
    "global-hub.open-cluster-management.io/managed-serviceaccount-install-namespace";

}  // namespace names

/// The spec. A field that is missing is absent or empty here, a malformed one is empty; check_spec() names both.
struct MigrationSpec {
  std::string from;
  std::string to;
  std::optional<hubagent::ClusterNames> clusters;  // includedManagedClusters: sorted, without duplicates
  std::optional<std::string> placement;            // includedManagedClustersPlacementRef
  /// supportedConfigs.stageTimeout replaces the default timeout of every phase; absent: the defaults count.
  std::optional<async::Duration> stage_timeout;
  std::optional<std::string> stage_timeout_problem;  // why it is not a positive duration: a message
  /// supportedConfigs.restartAgents: a rollback whose target does not answer may restart the clusters' agents.
  bool restart_agents = false;
  /// ttlSecondsAfterFinished: when an ended migration is deleted, counted from its end; absent: never.
  std::optional<async::Duration> time_to_live;
};

/// A digest of what a migration moves, from where to where: the fields that cannot be changed once it has begun.
std::string selection_of(const MigrationSpec& spec);

/// `migration` is the whole object.
MigrationSpec read_spec(const kube::json::object& migration);

/// The identity with which clusters first register on the target. The status names it; the secret is never in it.
struct Credential {
  static constexpr const char* managed_service_account = "ManagedServiceAccount";
  static constexpr const char* service_account = "ServiceAccount";

  std::string kind;
  hubagent::BootstrapIdentity identity;
};

/// What a step of a rollback or a cleanup could not do. The others ran nevertheless.
struct StepProblem {
  std::string activity;  // "rollback" or "cleanup"
  std::string step;
  std::string message;
  bool timed_out = false;
};

/// The status, parsed once. What is missing or malformed is empty or zero.
struct MigrationStatus {
  struct Clusters {
    std::int64_t total = 0;
    std::int64_t pending = 0;
    std::int64_t migrating = 0;
    std::int64_t migrated = 0;
    std::int64_t failed = 0;
    std::int64_t rolled_back = 0;
  };
  struct Condition {
    std::string type;
    std::string status;
    std::string reason;
    std::string message;
    std::optional<async::WallTime> changed;  // any field of it, not only its status
  };
  struct Failure {
    std::string cluster;
    std::string stage;  // the phase in which it failed
    std::string reason;
    std::string message;
  };

  std::string phase;       // empty: no manager has seen it yet
  std::string source_hub;  // as of the start, whatever the spec says now; empty before it
  std::string target_hub;
  std::optional<async::WallTime> started;
  std::optional<async::WallTime> completed;
  std::optional<async::WallTime> cut_over;       // leases on the target count from here
  std::optional<async::WallTime> phase_started;  // of the current phase
  std::optional<Credential> credential;
  std::optional<hubagent::Stage> rollback_stage;  // what the rollback undoes; absent: nothing
  Clusters clusters;
  std::vector<Failure> failures;  // the first ones; all are in the ledger
  std::vector<Condition> conditions;
  std::vector<StepProblem> problems;
  phase::States states;  // of the phase machine

  [[nodiscard]] bool has_ended() const;
  [[nodiscard]] bool has_succeeded() const;
  /// It failed, or is being rolled back.
  [[nodiscard]] bool is_failing() const;
  /// The condition with the cause of the failure. Null: it is not failing, or no condition names a cause.
  [[nodiscard]] const Condition* cause() const;
  /// Its rollback or cleanup cannot be finished now, and is retried.
  [[nodiscard]] bool is_cleanup_pending() const;
  /// The condition that changed last.
  [[nodiscard]] const Condition* latest_condition() const;
};

MigrationStatus read_status(const kube::json::object& status);
/// `migration` is the whole object, with or without a status.
MigrationStatus read_status(const kube::Object& migration);

/// metadata.creationTimestamp.
std::optional<async::WallTime> read_creation_time(const kube::Object& migration);

/// All failed clusters, from the ledger: the ConfigMap beside the migration. By name.
std::vector<MigrationStatus::Failure> read_failures(const kube::Object& config_map);

}  // namespace hubferry::migration
