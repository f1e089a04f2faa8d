#pragma once

#include "hubferry/kube/resource.hpp"

/// The custom resource of a migration: its kind, and the words that people meet in it.
namespace hubferry::migration {

/// global-hub.open-cluster-management.io/v1alpha1 ManagedClusterMigration.
extern const kube::Resource managed_cluster_migrations;

/// Pending -> Validating -> Initializing -> Deploying -> Registering -> Cleaning -> Completed
///    \___________\-> Failed    \______________\____________\-> Rollbacking -> Failed, or Cleaning for what arrived
/// Validating leads back to Pending when a placement turns out to name a cluster of another migration.
/// Cleaning ends in Completed, also with a warning; in Failed where some clusters did not arrive.
namespace phases {

inline constexpr const char* pending = "Pending";
inline constexpr const char* validating = "Validating";
inline constexpr const char* initializing = "Initializing";
inline constexpr const char* deploying = "Deploying";
inline constexpr const char* registering = "Registering";
inline constexpr const char* rollbacking = "Rollbacking";
inline constexpr const char* cleaning = "Cleaning";
inline constexpr const char* completed = "Completed";
inline constexpr const char* failed = "Failed";

}  // namespace phases

/// In the order in which they come about.
namespace conditions {

inline constexpr const char* started = "MigrationStarted";
inline constexpr const char* validated = "ResourceValidated";
inline constexpr const char* initialized = "ResourceInitialized";
inline constexpr const char* deployed = "ResourceDeployed";
inline constexpr const char* registered = "ClusterRegistered";
inline constexpr const char* verified = "MigrationVerified";
inline constexpr const char* cleaned = "ResourceCleaned";
inline constexpr const char* rolled_back = "ResourceRolledBack";

}  // namespace conditions

namespace names {

/// Held from the start until nothing is left to undo.
inline constexpr const char* finalizer = "hubferry.io/migration";
/// "rollback" on a Failed migration: try the rollback again.
inline constexpr const char* request_annotation = "global-hub.open-cluster-management.io/migration-request";
inline constexpr const char* rollback_request = "rollback";
/// Where the add-on keeps the ServiceAccounts of ManagedServiceAccounts on the target.
inline constexpr const char* install_namespace_annotation =
    "global-hub.open-cluster-management.io/managed-serviceaccount-install-namespace";

}  // namespace names

}  // namespace hubferry::migration
