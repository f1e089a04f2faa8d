#pragma once

#include "hubferry/kube/config.hpp"
#include "hubferry/kube/object.hpp"
#include "hubferry/ocm/managed_cluster.hpp"

/// How a hub is registered on the global hub: by a ManagedCluster, and by a Secret with its kubeconfig.
namespace hubferry::hubs {

/// The label of the Secret in namespace H of the global hub with the kubeconfig of hub H.
inline constexpr const char* hub_kubeconfig_label = "hubferry.io/hub-kubeconfig";
/// The Secret's key.
inline constexpr const char* hub_kubeconfig_key = "kubeconfig";

/// The global hub itself, which needs no Secret.
bool is_global_hub(const ocm::ManagedCluster& cluster);

/// Whether a ManagedCluster of the global hub is a hub.
bool is_hub(const ocm::ManagedCluster& cluster);

/// What to do about a hub without a Secret.
std::string missing_kubeconfig(const std::string& hub);

/// The kubeconfig in a hub's Secret. Throws kube::ConfigError, whose text never holds a credential.
kube::ClientConfig read_hub_kubeconfig(const kube::Object& secret);

}  // namespace hubferry::hubs
