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

/// Names of a hub's own objects.
namespace hub_names {

/// The ServiceAccount whose token is in the hub's bootstrap kubeconfigs, and its namespace.
inline constexpr const char* bootstrap_account = "agent-registration-bootstrap";
inline constexpr const char* bootstrap_namespace = "open-cluster-management";
inline constexpr const char* bootstrap_user =
    "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
/// The hub's configuration, of kind ClusterManager.
inline constexpr const char* cluster_manager = "cluster-manager";

}  // namespace hub_names

/// The import controllers of Advanced Cluster Management differ in what the annotation disable-auto-import does: to the
/// klusterlet's work of MCE 2.17 nothing; MCE 5.x makes its manifests ReadOnly and does not write its content again.
enum class ImportController { none, mce_2_17, mce_5_x };

struct HubOptions {
  std::string name = "hub";
  /// Besides `none`, the bootstrap role also has its name in Advanced Cluster Management.
  ImportController import_controller = ImportController::mce_2_17;
  /// New clusters are accepted, and their first certificates approved, automatically (feature gate
  /// ManagedClusterAutoApproval). Used only to create the ClusterManager, whose current spec decides.
  bool auto_approval = true;
  /// The hub's own bootstrap kubeconfig, which the import controller gives to every managed cluster. Empty: the hub has
  /// no import controller.
  obs::Secret bootstrap_kubeconfig{};
  /// hubConnectionTimeoutSeconds in its Klusterlet, if there is more than one kubeconfig.
  std::chrono::seconds hub_connection_timeout{180};
  /// Concurrent reconciles per controller.
  std::size_t workers = 4;
};

/// Creates the missing objects of a hub: namespaces, bootstrap role and account, the roles of agents, the
/// ClusterManager.
kube::Awaitable<kube::Result<>> install_hub(kube::Api& hub, HubOptions options);

/// Adds the checks of Open Cluster Management's webhook to a simulated hub: setting hubAcceptsClient to true needs the
/// permission to update `managedclusters/accept` in register.open-cluster-management.io, and is forbidden while the
/// cluster's namespace is being deleted. Setting it to false only needs the permission to update the cluster.
void guard_acceptance(Server& hub);

/// A bootstrap kubeconfig for agents, with a token of the hub's bootstrap account of that lifetime. `where` is the
/// client configuration of the hub. install_hub() must have been run.
kube::Awaitable<kube::Result<obs::Secret>> make_bootstrap_kubeconfig(kube::Api& hub, kube::ClientConfig where,
                                                                     std::chrono::seconds lifetime);

/// The controllers of Open Cluster Management on a hub, as far as agents and migrations rely on them: acceptance and
/// denial of clusters with their namespaces and permissions, approval of certificate requests, leases and availability,
/// clock checks, taints, deletion, import (ManifestWork `<cluster>-klusterlet`), placement decisions.
///
/// They use kube::Api only, so they run on a simulated server and on a real one; the latter needs a
/// kube-controller-manager, which empties namespaces and signs certificates. Everything is driven by watches: an idle
/// hub costs only the expiry timers of its leases.
///
/// Not included: the permission check for accepting (guard_acceptance()), cluster sets, add-ons, and placement by
/// anything but labels.
///
/// Lifetime: `hub` outlives it. Executor: one loop. Cancellation: terminal. Errors: logged and retried.
class HubControllers {
 public:
  HubControllers(kube::Api& hub, HubOptions options, kube::Env env);
  HubControllers(const HubControllers&) = delete;
  HubControllers& operator=(const HubControllers&) = delete;
  ~HubControllers();

  /// Installs the hub's own objects, then runs until cancelled. The CRDs must exist (install_crds()).
  kube::Awaitable<> run();

  /// Waits until the caches are synced and all work queues are empty.
  kube::Awaitable<> wait_settled();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
