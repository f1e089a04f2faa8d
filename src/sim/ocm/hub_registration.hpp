#pragma once

#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::sim {

/// Makes a hub known on the global one: ManagedCluster, namespace and, where asked for, the Secret with its kubeconfig.
/// Throws std::runtime_error.
kube::Awaitable<> register_hub(kube::Api& global, std::string hub, kube::ClientConfig admin, bool with_kubeconfig,
                               kube::Env env);

/// Says on the global hub that the hub runs the add-on for ManagedServiceAccounts. Throws std::runtime_error.
kube::Awaitable<> announce_account_addon(kube::Api& global, std::string hub);

/// The hub's own registration agent on the global hub, as far as a migration sees it: it keeps the lease and the
/// condition Available as long as the hub can be reached. Runs until cancelled.
kube::Awaitable<> represent_hub(kube::Api& global, kube::Api& hub, std::string name, kube::Env env);

}  // namespace hubferry::sim
