#include "hubferry/ocm/hive.hpp"

namespace hubferry::ocm {

namespace {
constexpr const char* hive_group = "hive.openshift.io";
}

const kube::Resource machine_pools{hive_group, "v1", "machinepools", "MachinePool"};
const kube::Resource sync_sets{hive_group, "v1", "syncsets", "SyncSet"};
const kube::Resource selector_sync_sets{hive_group, "v1", "selectorsyncsets", "SelectorSyncSet", false};
const kube::Resource sync_identity_providers{hive_group, "v1", "syncidentityproviders", "SyncIdentityProvider"};
const kube::Resource dns_zones{hive_group, "v1", "dnszones", "DNSZone"};
const kube::Resource cluster_provisions{hive_group, "v1", "clusterprovisions", "ClusterProvision"};
const kube::Resource cluster_deprovisions{hive_group, "v1", "clusterdeprovisions", "ClusterDeprovision"};
const kube::Resource cluster_relocates{hive_group, "v1", "clusterrelocates", "ClusterRelocate"};

}  // namespace hubferry::ocm
