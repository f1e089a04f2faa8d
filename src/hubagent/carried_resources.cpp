#include "hubferry/hubagent/carried_resources.hpp"

#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using kube::resources::config_maps;
using kube::resources::secrets;

constexpr const char* sync_wave_annotation = "siteconfig.open-cluster-management.io/sync-wave";
constexpr const char* preserve_label = "siteconfig.open-cluster-management.io/preserve";

CarriedKind named_like_the_cluster(const kube::Resource& resource) {
  CarriedKind kind;
  kind.resource = resource;
  kind.names = {"{cluster}"};
  return kind;
}

CarriedKind all_with_status(const kube::Resource& resource) {
  CarriedKind kind;
  kind.resource = resource;
  kind.all = true;
  kind.with_status = true;
  return kind;
}

CarriedResources make_default() {
  CarriedKind kept_secrets;
  kept_secrets.resource = secrets;
  kept_secrets.names = {"{cluster}-admin-password", "{cluster}-admin-kubeconfig", "{cluster}-metadata-json",
                        "{cluster}-seed-reconfiguration"};
  kept_secrets.with_annotations = {sync_wave_annotation};
  kept_secrets.with_labels = {preserve_label};

  CarriedKind kept_config_maps;
  kept_config_maps.resource = config_maps;
  kept_config_maps.with_labels = {preserve_label};

  auto hosts = all_with_status(ocm::bare_metal_hosts);
  hosts.references = {{"spec.bmc.credentialsName", secrets}};

  auto installs = named_like_the_cluster(ocm::image_cluster_installs);
  installs.with_status = true;
  installs.references = {{"spec.extraManifestsRefs[].name", config_maps}};

  auto deployments = named_like_the_cluster(ocm::cluster_deployments);
  deployments.with_status = true;
  deployments.references = {{"spec.pullSecretRef.name", secrets}};

  return {kept_secrets,
          kept_config_maps,
          named_like_the_cluster(ocm::managed_clusters),
          named_like_the_cluster(ocm::klusterlet_addon_configs),
          hosts,
          all_with_status(ocm::host_firmware_settings),
          all_with_status(ocm::firmware_schemas),
          all_with_status(ocm::host_firmware_components),
          installs,
          deployments};
}

}  // namespace

const CarriedResources& default_carried_resources() {
  static const CarriedResources table = make_default();
  return table;
}

bool may_be_copied(const kube::Resource& resource) {
  return resource.group != "rbac.authorization.k8s.io" && resource != kube::resources::namespaces;
}

}  // namespace hubferry::hubagent
