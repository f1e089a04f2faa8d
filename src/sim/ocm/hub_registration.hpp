#pragma once

#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::sim {

/// Registers a hub on the global one: ManagedCluster, namespace and, optionally, the Secret with its kubeconfig.
/// Throws std::runtime_error.
kube::Awaitable<> register_hub(kube::Api& global, std::string hub, kube::ClientConfig admin, bool with_kubeconfig,
                               kube::Env env);

/// Creates the hub's ManagedClusterAddOn for ManagedServiceAccounts on the global hub. Throws std::runtime_error.
kube::Awaitable<> create_account_addon(kube::Api& global, std::string hub);

/// The hub's own registration agent on the global hub, reduced to what a migration needs: renews the lease and sets
/// Available as long as the hub can be reached. Runs until cancelled.
kube::Awaitable<> send_hub_heartbeats(kube::Api& global, kube::Api& hub, std::string name, kube::Env env);

}  // namespace hubferry::sim
