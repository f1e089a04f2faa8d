#include "hubferry/ocm/resources.hpp"

namespace hubferry::ocm {

namespace {

constexpr bool cluster_scoped = false;
constexpr const char* cluster_group = "cluster.open-cluster-management.io";
constexpr const char* operator_group = "operator.open-cluster-management.io";
constexpr const char* metal3_group = "metal3.io";

}  // namespace

const kube::Resource placements{cluster_group, "v1beta1", "placements", "Placement"};
const kube::Resource placement_decisions{cluster_group, "v1beta1", "placementdecisions", "PlacementDecision"};
const kube::Resource managed_cluster_sets{cluster_group, "v1beta2", "managedclustersets", "ManagedClusterSet",
                                          cluster_scoped};

const kube::Resource klusterlets{operator_group, "v1", "klusterlets", "Klusterlet", cluster_scoped};
const kube::Resource cluster_managers{operator_group, "v1", "clustermanagers", "ClusterManager", cluster_scoped};
const kube::Resource manifest_works{"work.open-cluster-management.io", "v1", "manifestworks", "ManifestWork"};
const kube::Resource applied_manifest_works{"work.open-cluster-management.io", "v1", "appliedmanifestworks",
                                            "AppliedManifestWork", cluster_scoped};
const kube::Resource klusterlet_configs{"config.open-cluster-management.io", "v1alpha1", "klusterletconfigs",
                                        "KlusterletConfig", cluster_scoped};
const kube::Resource klusterlet_addon_configs{"agent.open-cluster-management.io", "v1", "klusterletaddonconfigs",
                                              "KlusterletAddonConfig"};
const kube::Resource managed_service_accounts{"authentication.open-cluster-management.io", "v1beta1",
                                              "managedserviceaccounts", "ManagedServiceAccount"};
const kube::Resource managed_cluster_addons{"addon.open-cluster-management.io", "v1alpha1", "managedclusteraddons",
                                            "ManagedClusterAddOn"};
const kube::Resource observability_addons{"observability.open-cluster-management.io", "v1beta1", "observabilityaddons",
                                          "ObservabilityAddon"};

const kube::Resource cluster_deployments{"hive.openshift.io", "v1", "clusterdeployments", "ClusterDeployment"};
const kube::Resource image_cluster_installs{"extensions.hive.openshift.io", "v1alpha1", "imageclusterinstalls",
                                            "ImageClusterInstall"};

const kube::Resource bare_metal_hosts{metal3_group, "v1alpha1", "baremetalhosts", "BareMetalHost"};
const kube::Resource host_firmware_settings{metal3_group, "v1alpha1", "hostfirmwaresettings", "HostFirmwareSettings"};
const kube::Resource firmware_schemas{metal3_group, "v1alpha1", "firmwareschemas", "FirmwareSchema"};
const kube::Resource host_firmware_components{metal3_group, "v1alpha1", "hostfirmwarecomponents",
                                              "HostFirmwareComponents"};
const kube::Resource data_images{metal3_group, "v1alpha1", "dataimages", "DataImage"};

}  // namespace hubferry::ocm
