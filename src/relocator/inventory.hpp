#pragma once

#include <vector>

#include "hubferry/kube/api.hpp"
#include "relocator/relocator_spec.hpp"

namespace hubferry::relocator {

/// The source's caches of the kinds that can belong to a ClusterDeployment.
struct SourceCaches {
  const ObjectCache* machine_pools = nullptr;
  const ObjectCache* sync_sets = nullptr;
  const ObjectCache* identity_providers = nullptr;
  const ObjectCache* selector_sync_sets = nullptr;
};

struct InventoryItem {
  kube::Resource resource;
  kube::Object object;
};

/// What moves together with a ClusterDeployment, in the order in which it is copied: Secrets, ConfigMaps, MachinePools,
/// SyncSets, SyncIdentityProviders. Not the namespace, the DNSZone and the ClusterDeployment itself.
///
/// By default only what belongs to it: MachinePools, SyncSets and SyncIdentityProviders that refer to it; Secrets and
/// ConfigMaps to which those or the ClusterDeployment refer, that it owns, or that are labelled with its name. With
/// `whole_namespace` everything of these kinds in its namespace. Never what a cluster makes for itself (tokens of
/// service accounts, CA bundles), and not the kubeconfig of the destination. Secrets and ConfigMaps are read from the
/// server: they are too many, and too large, to be cached.
Awaitable<OrProblem<std::vector<InventoryItem>>> take_inventory(kube::Api& source, const SourceCaches& caches,
                                                                const RelocatorSpec& relocator,
                                                                const kube::Object& deployment);

/// False if MachinePools, SyncSets or SyncIdentityProviders of that inventory have changed in the caches since it was
/// taken, other than in their status, or if there are more of them. Sends no request.
bool is_current(const std::vector<InventoryItem>& inventory, const SourceCaches& caches, const RelocatorSpec& relocator,
                const kube::Object& deployment);

/// The names of SelectorSyncSets that match it.
std::vector<std::string> matching_sync_sets(const ObjectCache& selector_sync_sets, const kube::Object& deployment);

}  // namespace hubferry::relocator
