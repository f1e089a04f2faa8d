#pragma once

#include "hubferry/kube/resource.hpp"

/// The custom resource of a migration: its kind, its conditions, its annotations.
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

}  // namespace conditions

namespace names {

/// On the resource from the start until nothing is left to undo.
inline constexpr const char* finalizer = "hubferry.io/migration";
/// "rollback" on a Failed migration retries the rollback.
inline constexpr const char* request_annotation = "global-hub.open-cluster-management.io/migration-request";
inline constexpr const char* rollback_request = "rollback";
/// Where the add-on keeps the ServiceAccounts of ManagedServiceAccounts on the target.
inline constexpr const char* install_namespace_annotation =
    "global-hub.open-cluster-management.io/managed-serviceaccount-install-namespace";

}  // namespace names

}  // namespace hubferry::migration
