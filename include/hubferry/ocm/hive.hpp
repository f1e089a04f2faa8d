#pragma once

#include "hubferry/kube/resource.hpp"

/// The kinds and names of Hive that a relocation uses, beside the ClusterDeployment (resources.hpp).
namespace hubferry::ocm {

extern const kube::Resource machine_pools;
extern const kube::Resource sync_sets;
extern const kube::Resource selector_sync_sets;
extern const kube::Resource sync_identity_providers;
extern const kube::Resource dns_zones;
extern const kube::Resource cluster_provisions;
extern const kube::Resource cluster_deprovisions;
/// Hive's own relocation.
extern const kube::Resource cluster_relocates;

namespace names {

/// "<name>/<outgoing|complete|incoming>": Hive's controllers keep their hands off.
inline constexpr const char* hive_relocate_annotation = "hive.openshift.io/relocate";
/// Hive's webhook refuses to delete such a ClusterDeployment.
inline constexpr const char* hive_protected_delete_annotation = "hive.openshift.io/protected-delete";
inline constexpr const char* hive_deployment_label = "hive.openshift.io/cluster-deployment-name";
inline constexpr const char* hive_deprovision_finalizer = "hive.openshift.io/deprovision";
inline constexpr const char* hive_machine_pool_finalizer = "hive.openshift.io/remotemachineset";
inline constexpr const char* hive_dns_zone_finalizer = "hive.openshift.io/dnszone";
inline constexpr const char* hive_dns_endpoint_finalizer = "hive.openshift.io/dnsendpoint";

}  // namespace names
}  // namespace hubferry::ocm
