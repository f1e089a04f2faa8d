#include "hubferry/hubagent/carried_resources.hpp"

#include <algorithm>
#include <array>

#include "hubferry/kube/config.hpp"
#include "hubferry/kube/yaml_section.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using kube::YamlSection;
using kube::resources::config_maps;
using kube::resources::secrets;

constexpr const char* sync_wave_annotation = "siteconfig.open-cluster-management.io/sync-wave";
constexpr const char* preserve_label = "siteconfig.open-cluster-management.io/preserve";

/// The Secrets that Hive's API can name in a ClusterDeployment, on every platform.
constexpr std::array deployment_secrets{"spec.pullSecretRef.name",
                                        "spec.clusterMetadata.adminKubeconfigSecretRef.name",
                                        "spec.clusterMetadata.adminPasswordSecretRef.name",
                                        "spec.boundServiceAccountSigningKeySecretRef.name",
                                        "spec.certificateBundles[].certificateSecretRef.name",
                                        "spec.provisioning.installConfigSecretRef.name",
                                        "spec.provisioning.sshPrivateKeySecretRef.name",
                                        "spec.provisioning.manifestsSecretRef.name",
                                        "spec.platform.aws.credentialsSecretRef.name",
                                        "spec.platform.azure.credentialsSecretRef.name",
                                        "spec.platform.gcp.credentialsSecretRef.name",
                                        "spec.platform.ibmcloud.credentialsSecretRef.name",
                                        "spec.platform.nutanix.credentialsSecretRef.name",
                                        "spec.platform.openstack.credentialsSecretRef.name",
                                        "spec.platform.openstack.certificatesSecretRef.name",
                                        "spec.platform.ovirt.credentialsSecretRef.name",
                                        "spec.platform.ovirt.certificatesSecretRef.name",
                                        "spec.platform.vsphere.credentialsSecretRef.name",
                                        "spec.platform.vsphere.certificatesSecretRef.name",
                                        "spec.platform.baremetal.libvirtSSHPrivateKeySecretRef.name"};

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
  for (const char* path : deployment_secrets) deployments.references.push_back({path, secrets});
  deployments.references.push_back({"spec.provisioning.manifestsConfigMapRef.name", config_maps});

  // Those of users only: see works.hpp.
  CarriedKind works;
  works.resource = ocm::manifest_works;
  works.all = true;

  return {kept_secrets,
          kept_config_maps,
          named_like_the_cluster(ocm::managed_clusters),
          named_like_the_cluster(ocm::klusterlet_addon_configs),
          works,
          hosts,
          all_with_status(ocm::host_firmware_settings),
          all_with_status(ocm::firmware_schemas),
          all_with_status(ocm::host_firmware_components),
          installs,
          deployments};
}

std::string required(const YamlSection& section, const std::string& field) {
  auto text = section.text(field);
  if (text.empty()) section.fail(field, "is missing");
  return text;
}

kube::Resource read_resource(const YamlSection& section) {
  kube::Resource resource{section.text("group"), required(section, "version"), required(section, "resource"),
                          required(section, "kind"), true};
  const auto scope = section.text("scope");
  if (scope != "" && scope != "Namespaced" && scope != "Cluster")
    section.fail("scope", "must be Namespaced or Cluster");
  resource.namespaced = scope != "Cluster";
  if (!may_be_copied(resource))
    section.fail("resource", "is granted or created on each hub separately: it cannot be copied");
  return resource;
}

CarriedReference read_reference(const YamlSection& section) {
  section.allow_only({"path", "group", "version", "resource", "kind", "scope"});
  CarriedReference reference{required(section, "path"), read_resource(section)};
  if (!reference.resource.namespaced)
    section.fail("scope", "only objects of the cluster's namespace can be referred to");
  return reference;
}

CarriedKind read_kind(const YamlSection& section) {
  section.allow_only({"group", "version", "resource", "kind", "scope", "all", "names", "withLabels", "withAnnotations",
                      "withStatus", "references"});
  CarriedKind kind;
  kind.resource = read_resource(section);
  kind.all = section.flag("all");
  kind.names = section.texts("names");
  kind.with_labels = section.texts("withLabels");
  kind.with_annotations = section.texts("withAnnotations");
  kind.with_status = section.flag("withStatus");
  for (const auto& reference : section.sections("references")) kind.references.push_back(read_reference(reference));

  const bool by_name_only = !kind.all && kind.with_labels.empty() && kind.with_annotations.empty();
  if (by_name_only && kind.names.empty())
    section.fail("names", "selects nothing: give all, names, withLabels or withAnnotations");
  // Any other object of a cluster-scoped kind may belong to another cluster.
  if (!kind.resource.namespaced && !(by_name_only && kind.names == std::vector<std::string>{"{cluster}"}))
    section.fail("names", "a cluster-scoped kind can only be selected by the name {cluster}");
  return kind;
}

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void add(CarriedResources& table, CarriedKind kind) {
  const auto same = std::ranges::find(table, kind.resource, &CarriedKind::resource);
  if (same == table.end()) {
    table.push_back(std::move(kind));
    return;
  }
  same->all |= kind.all;
  same->with_status |= kind.with_status;
  append(same->names, kind.names);
  append(same->with_labels, kind.with_labels);
  append(same->with_annotations, kind.with_annotations);
  append(same->references, kind.references);
}

}  // namespace

const CarriedResources& default_carried_resources() {
  static const CarriedResources table = make_default();
  return table;
}

bool may_be_copied(const kube::Resource& resource) {
  return resource.group != "rbac.authorization.k8s.io" && resource != kube::resources::namespaces;
}

CarriedResources parse_carried_resources(std::string_view text, const std::string& source) {
  CarriedResources table = default_carried_resources();
  const auto top = kube::parse_yaml(text, source);
  top.allow_only({"carriedResources"});
  for (const auto& section : top.sections("carriedResources")) add(table, read_kind(section));
  return table;
}

}  // namespace hubferry::hubagent
