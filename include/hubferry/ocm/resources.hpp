#pragma once

#include "hubferry/kube/object.hpp"
#include "hubferry/kube/resource.hpp"

/// The kinds of other systems on hubs: Open Cluster Management, Hive, metal3. `managed_clusters` is with
/// its projection.
namespace hubferry::ocm {

// cluster.open-cluster-management.io
extern const kube::Resource placements;
extern const kube::Resource placement_decisions;
extern const kube::Resource managed_cluster_sets;

// Other groups of Open Cluster Management
extern const kube::Resource klusterlets;
extern const kube::Resource cluster_managers;
extern const kube::Resource manifest_works;
extern const kube::Resource applied_manifest_works;  // on a managed cluster
extern const kube::Resource klusterlet_configs;
extern const kube::Resource klusterlet_addon_configs;
extern const kube::Resource managed_service_accounts;
extern const kube::Resource managed_cluster_addons;
extern const kube::Resource observability_addons;

// Hive
extern const kube::Resource cluster_deployments;
extern const kube::Resource image_cluster_installs;

// metal3
extern const kube::Resource bare_metal_hosts;
extern const kube::Resource host_firmware_settings;
extern const kube::Resource firmware_schemas;
extern const kube::Resource host_firmware_components;
extern const kube::Resource data_images;

/// Names that those systems agree on.
namespace names {

inline constexpr const char* cluster_lease = "managed-cluster-lease";
inline constexpr const char* cluster_name_label = "open-cluster-management.io/cluster-name";
inline constexpr const char* placement_label = "cluster.open-cluster-management.io/placement";

// Conditions of a ManagedCluster
inline constexpr const char* accepted = "HubAcceptedManagedCluster";
inline constexpr const char* joined = "ManagedClusterJoined";
inline constexpr const char* available = "ManagedClusterConditionAvailable";
inline constexpr const char* clock_synced = "ManagedClusterConditionClockSynced";
inline constexpr const char* certificate_rotated = "ClusterCertificateRotated";

// Registration
inline constexpr const char* addon_name_label = "open-cluster-management.io/addon-name";
/// Set once by a hub that accepts clusters automatically, so that a later manual denial is kept.
inline constexpr const char* accepted_on_annotation = "open-cluster-management.io/automatically-accepted-on";
inline constexpr const char* agent_annotation_prefix = "agent.open-cluster-management.io";
/// Where the agent's Secrets lie on its own cluster, unless the Klusterlet says otherwise.
inline constexpr const char* agent_namespace = "open-cluster-management-agent";
inline constexpr const char* hub_kubeconfig_secret = "hub-kubeconfig-secret";
inline constexpr const char* bootstrap_secret = "bootstrap-hub-kubeconfig";

// Hubs and clusters that must not be moved
inline constexpr const char* deploy_mode_label = "global-hub.open-cluster-management.io/deploy-mode";
inline constexpr const char* local_cluster_label = "local-cluster";
inline constexpr const char* on_hub_annotation = "addon.open-cluster-management.io/on-multicluster-hub";
inline constexpr const char* import_mode_annotation = "import.open-cluster-management.io/klusterlet-deploy-mode";

// Labels and annotations of a migration
inline constexpr const char* migrating_annotation = "global-hub.open-cluster-management.io/migrating";
inline constexpr const char* klusterlet_config_annotation = "agent.open-cluster-management.io/klusterlet-config";
inline constexpr const char* disable_auto_import_annotation = "import.open-cluster-management.io/disable-auto-import";
inline constexpr const char* hive_pause_annotation = "hive.openshift.io/reconcile-pause";
inline constexpr const char* metal3_pause_annotation = "baremetalhost.metal3.io/paused";

// ManifestWorks
/// The works by which the import controller installs the klusterlet itself.
inline constexpr const char* klusterlet_works_label = "import.open-cluster-management.io/klusterlet-works";
/// The works that a ManifestWorkReplicaSet creates.
inline constexpr const char* replica_set_label = "work.open-cluster-management.io/manifestworkreplicaset";
/// Kept by a work until its agent has deleted what it deployed.
inline constexpr const char* work_cleanup_finalizer = "cluster.open-cluster-management.io/manifest-work-cleanup";

/// Where bootstrap Secrets of a KlusterletConfig lie on a hub.
inline constexpr const char* engine_namespace = "multicluster-engine";
/// Where a ManagedServiceAccount's ServiceAccount lies on its cluster, unless the add-on says otherwise.
inline constexpr const char* addon_namespace = "open-cluster-management-agent-addon";

// What a bootstrap identity may do on a hub: with ACM, and with plain OCM
inline constexpr const char* acm_bootstrap_role = "open-cluster-management:managedcluster:bootstrap:agent-registration";
inline constexpr const char* ocm_bootstrap_role = "open-cluster-management:bootstrap";

}  // namespace names

/// The lease that a cluster's agent renews on its hub.
inline kube::Key lease_key(const std::string& cluster) {
  return {cluster, names::cluster_lease};
}

}  // namespace hubferry::ocm
