#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/obs/secret.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::sim {

/// Where the names of a hub's own objects are agreed on.
namespace hub_names {

/// The ServiceAccount whose token is in the hub's bootstrap kubeconfigs, and its namespace.
inline constexpr const char* bootstrap_account = "agent-registration-bootstrap";
inline constexpr const char* bootstrap_namespace = "open-cluster-management";
inline constexpr const char* bootstrap_user =
    "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
/// The hub's configuration, of kind ClusterManager.
inline constexpr const char* cluster_manager = "cluster-manager";

}  // namespace hub_names

struct HubOptions {
  std::string name = "hub";
  /// The bootstrap role also under the name that Advanced Cluster Management gives it.
  bool acm = true;
  /// New clusters are accepted, and their first certificates approved, without a human (gate
  /// ManagedClusterAutoApproval). Only says how the ClusterManager is created: what it says later counts.
  bool auto_approval = true;
  /// What the import controller hands to every managed cluster as the first of its bootstrap kubeconfigs. Empty: there
  /// is no import controller.
  obs::Secret bootstrap_kubeconfig{};
  /// hubConnectionTimeoutSeconds of the Klusterlet that it hands out when there is more than one kubeconfig.
  std::chrono::seconds hub_connection_timeout{180};
  /// How many keys of one controller are worked on at once.
  std::size_t workers = 4;
};

/// Creates what a hub consists of, where it is missing: namespaces, the bootstrap role and account, the roles of
/// agents, the ClusterManager.
kube::Awaitable<kube::Result<>> install_hub(kube::Api& hub, HubOptions options);

/// What Open Cluster Management's webhook checks on a simulated hub: setting hubAcceptsClient to true needs the right
/// to update `managedclusters/accept` in register.open-cluster-management.io, and is refused while the cluster's
/// namespace is being deleted. Setting it to false needs no more than the right to update the cluster.
void guard_acceptance(Server& hub);

/// A kubeconfig for the hub's bootstrap account, with a token of that lifetime: what agents start from.
/// `where` says how the hub is reached. install_hub() must have been done.
kube::Awaitable<kube::Result<obs::Secret>> make_bootstrap_kubeconfig(kube::Api& hub, kube::ClientConfig where,
                                                                     std::chrono::seconds lifetime);

/// What Open Cluster Management's controllers do on a hub, as far as agents and migrations rely on it: acceptance and
/// denial of clusters with their namespaces and permissions, approval of certificate requests, leases and availability,
/// clock checks, taints, deletion, import (ManifestWork `<cluster>-klusterlet`), placement decisions.
///
/// They know the hub by kube::Api only, so they run on a simulated server and on a real one; the latter needs a
/// kube-controller-manager, which empties namespaces and signs certificates. All is driven by watches: a quiet hub
/// costs nothing but the expiry timers of its leases.
///
/// Not done here: the check of who may accept (guard_acceptance()), cluster sets, add-ons, and placement by anything
/// but labels.
///
/// Lifetime: `hub` outlives it. Executor: one loop. Cancellation: terminal. Errors: logged and tried again.
class HubControllers {
 public:
  HubControllers(kube::Api& hub, HubOptions options, kube::Env env);
  HubControllers(const HubControllers&) = delete;
  HubControllers& operator=(const HubControllers&) = delete;
  ~HubControllers();

  /// Installs the hub's own objects, then works until cancelled. The CRDs must be there (install_crds()).
  kube::Awaitable<> run();

  /// Waits until there is nothing to do: all objects were seen, and all that follows from them is written.
  kube::Awaitable<> wait_settled();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
