#pragma once

#include <boost/json/parse.hpp>

#include "hubferry/kube/object.hpp"

namespace hubferry::app {

/// A migration as a server holds it: `status` as JSON text, created at 2030-01-01T00:00:00Z.
inline kube::json::object migration_object(const std::string& name, const std::string& status,
                                           const std::string& ns = "default") {
  auto object = kube::json::parse(R"({
    "apiVersion": "global-hub.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterMigration",
    "metadata": {"creationTimestamp": "2030-01-01T00:00:00Z"},
    "spec": {"from": "hub1", "to": "hub2", "includedManagedClusters": ["c1", "c2", "c3", "c4"]}})")
                    .as_object();
  object["metadata"].as_object()["name"] = name;
  object["metadata"].as_object()["namespace"] = ns;
  if (!status.empty()) object["status"] = kube::json::parse(status);
  return object;
}

inline const char* registering_status = R"({
  "phase": "Registering", "startTime": "2030-01-01T00:00:02Z",
  "stage": {"phase": "Registering", "startTime": "2030-01-01T00:00:10Z"},
  "clusters": {"total": 4, "migrating": 2, "migrated": 1, "failed": 1,
               "failures": [{"name": "c4", "stage": "Deploying", "reason": "ClusterConflict", "message": "exists there"}]},
  "conditions": [
    {"type": "MigrationStarted", "status": "True", "reason": "InstanceStarted", "message": "its turn",
     "lastTransitionTime": "2030-01-01T00:00:02Z"},
    {"type": "ClusterRegistered", "status": "False", "reason": "Waiting", "message": "waiting for 2 clusters",
     "lastTransitionTime": "2030-01-01T00:00:10Z", "lastUpdateTime": "2030-01-01T00:00:15Z"},
    {"type": "ResourceDeployed", "status": "True", "reason": "ResourcesDeployed", "message": "deployed",
     "lastTransitionTime": "2030-01-01T00:00:10Z"}],
  "state": {
    "Validating": {"done": true, "startTime": "2030-01-01T00:00:02Z", "endTime": "2030-01-01T00:00:04Z",
                   "state": {"hubs": {"done": true, "startTime": "2030-01-01T00:00:02Z"},
                             "source": {"done": false, "failed": true, "error": "no answer",
                                        "startTime": "2030-01-01T00:00:02Z"}}},
    "Deploying": {"done": true, "startTime": "2030-01-01T00:00:04Z", "endTime": "2030-01-01T00:00:10Z"},
    "Registering": {"done": false, "startTime": "2030-01-01T00:00:10Z"}}})";

inline const char* completed_status = R"({
  "phase": "Completed", "startTime": "2030-01-01T00:00:02Z", "completionTime": "2030-01-01T00:01:12Z",
  "clusters": {"total": 4, "migrated": 4},
  "conditions": [{"type": "ResourceCleaned", "status": "True", "reason": "ResourceCleaned", "message": "all is done",
                  "lastTransitionTime": "2030-01-01T00:01:12Z"}]})";

inline const char* failed_status = R"({
  "phase": "Failed", "startTime": "2030-01-01T00:00:02Z", "completionTime": "2030-01-01T00:01:12Z",
  "clusters": {"total": 4, "rolledBack": 4},
  "rollback": {"remove helpers": "the target does not answer"}})";

inline const char* timed_out_status = R"({
  "phase": "Failed", "clusters": {"total": 20, "migrated": 1, "failed": 19, "rolledBack": 19},
  "conditions": [
    {"type": "ResourceDeployed", "status": "True", "reason": "ResourcesDeployed", "message": "deployed",
     "lastTransitionTime": "2030-01-01T00:00:10Z"},
    {"type": "ClusterRegistered", "status": "False", "reason": "Timeout", "message": "1 of 20 clusters came",
     "lastTransitionTime": "2030-01-01T00:00:11Z"},
    {"type": "ResourceRolledBack", "status": "True", "reason": "ResourceRolledBack",
     "message": "back on hub 'hub1': 19 clusters", "lastTransitionTime": "2030-01-01T00:00:15Z"}]})";

/// The kind, without the checks that the real definition brings.
inline kube::json::object migration_definition() {
  return kube::json::parse(R"({
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "managedclustermigrations.global-hub.open-cluster-management.io"},
    "spec": {
      "group": "global-hub.open-cluster-management.io", "scope": "Namespaced",
      "names": {"plural": "managedclustermigrations", "singular": "managedclustermigration",
                "kind": "ManagedClusterMigration", "shortNames": ["mcm"]},
      "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})")
      .as_object();
}

}  // namespace hubferry::app
