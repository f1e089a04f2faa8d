#pragma once

#include <string>

#include "hubferry/kube/object.hpp"

/// The RBAC objects with the permissions of an agent on its hub.
namespace hubferry::sim::agent_permissions {

/// The works of a denied cluster are still processed: this finalizer keeps the permission until they are deleted.
inline constexpr const char* work_finalizer = "cluster.open-cluster-management.io/manifest-work-cleanup";
inline constexpr const char* registration_role = "open-cluster-management:managedcluster:registration";
inline constexpr const char* work_role = "open-cluster-management:managedcluster:work";

/// The group that all agents of a cluster are in.
std::string group_of(const std::string& cluster);

// Names of one cluster's objects: the ClusterRole and its binding, and the RoleBindings in its namespace.
std::string role_name(const std::string& cluster);
std::string registration_binding_name(const std::string& cluster);
std::string work_binding_name(const std::string& cluster);

/// Permissions of an accepted cluster outside of its namespace.
kube::json::object accepted_role(const std::string& cluster);
/// Permissions of a denied one: it may read that it is denied.
kube::json::object denied_role(const std::string& cluster);
kube::json::object role_binding(const std::string& cluster);
kube::json::object registration_binding(const std::string& cluster);
kube::json::object work_binding(const std::string& cluster);

// Shared by all clusters: permissions within a cluster's namespace.
kube::json::object shared_registration_role();
kube::json::object shared_work_role();
/// Permissions of a bootstrap credential.
kube::json::object bootstrap_role(const std::string& name);

}  // namespace hubferry::sim::agent_permissions
