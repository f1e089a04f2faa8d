#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/obs/secret.hpp"
#include "hubferry/sim/fleet.hpp"
#include "hubferry/sim/hub_controllers.hpp"

namespace hubferry::sim {

/// The name of the server on which hubs are registered and migrations are created.
inline constexpr const char* global_hub = "global";

/// A server that becomes a hub.
struct HubSite {
  std::string name;
  kube::Api* api = nullptr;  // as admin
  /// The client configuration of an admin; agents use it without the credential.
  kube::ClientConfig admin;
  /// Of the machine that its controllers run on; null: that of everybody.
  async::Clock* clock = nullptr;
};

struct HubSetOptions {
  /// On the first hub that is not the global one: see fleet.hpp.
  std::size_t clusters = 0;
  FleetKind fleet = FleetKind::mixed;
  std::size_t secrets = 0;  // as in FleetPlan
  std::uint64_t seed = 1;
  /// The global hub serves ManagedServiceAccounts, whose tokens give access to the hubs.
  bool managed_service_accounts = true;
  /// Create a Secret with each hub's kubeconfig for the manager. Without it, the hub needs an agent.
  bool hub_kubeconfigs = true;
  /// Hubs accept new clusters, and approve their certificates, automatically.
  bool auto_approval = true;
  /// Of every hub but the global one. `none`: no KlusterletConfigs either.
  ImportController import_controller = ImportController::mce_2_17;
  /// hubConnectionTimeoutSeconds of agents with several hubs.
  std::chrono::seconds hub_connection_timeout{180};
};

/// Turns servers, simulated or real, into hubs, and runs their controllers.
///
/// On the global hub (the site of that name, if there is one) hub H is a ManagedCluster H, available as long as H can
/// be reached, with the label global-hub.open-cluster-management.io/deploy-mode, and a Secret `hub-kubeconfig` in
/// namespace H with the label hubferry.io/hub-kubeconfig. Every site has HubControllers.
///
/// Lifetime: the Apis outlive it. Executor: one loop.
class HubSet {
 public:
  HubSet(std::vector<HubSite> sites, HubSetOptions options, kube::Env env);
  HubSet(const HubSet&) = delete;
  HubSet& operator=(const HubSet&) = delete;
  ~HubSet();

  /// Creates the initial objects: CRDs, the hubs' own objects, registrations, clusters. Existing ones are not changed.
  /// Throws std::runtime_error.
  async::Awaitable<> build();
  /// Runs the controllers until cancelled.
  async::Awaitable<> run();
  /// Waits until all hubs are idle; run() must be running.
  async::Awaitable<> wait_settled();

  /// The bootstrap kubeconfig for agents of that hub; after build(). Throws std::out_of_range.
  [[nodiscard]] const obs::Secret& bootstrap_kubeconfig(const std::string& hub) const;
  /// The clusters that build() created.
  [[nodiscard]] std::vector<std::string> clusters() const;
  /// The hub that has them; empty if there is only the global one.
  [[nodiscard]] std::string first_hub() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
