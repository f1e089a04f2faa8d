#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/obs/secret.hpp"

namespace hubferry::sim {

/// The name of the server on which hubs are registered and migrations are asked for.
inline constexpr const char* global_hub = "global";

/// A server that is to be a hub.
struct HubSite {
  std::string name;
  kube::Api* api = nullptr;  // as admin
  /// How an admin reaches it from outside; without the credential, also how agents do.
  kube::ClientConfig admin;
};

struct HubSetOptions {
  /// Of the first hub that is not the global one: see fleet.hpp.
  std::size_t clusters = 0;
  std::uint64_t seed = 1;
  /// The global hub serves ManagedServiceAccounts, whose tokens lead to the hubs.
  bool managed_service_accounts = true;
  /// A Secret beside each hub's ManagedCluster says how the manager reaches the hub. Without it, an agent on the hub
  /// is needed.
  bool hub_kubeconfigs = true;
  /// Hubs accept new clusters, and approve their certificates, by themselves.
  bool auto_approval = true;
  /// What agents are told to use when they have several hubs to choose from.
  std::chrono::seconds hub_connection_timeout{180};
};

/// Makes hubs of servers, simulated or real, and lets them behave so.
///
/// The hub H is on the global one (the site of that name, where there is one) a ManagedCluster H, available as long as
/// H can be reached, with the label global-hub.open-cluster-management.io/deploy-mode, and a Secret `hub-kubeconfig` in
/// namespace H with the label hubferry.io/hub-kubeconfig. Every site has HubControllers.
///
/// Lifetime: the Apis outlive it. Executor: one loop.
class HubSet {
 public:
  HubSet(std::vector<HubSite> sites, HubSetOptions options, kube::Env env);
  HubSet(const HubSet&) = delete;
  HubSet& operator=(const HubSet&) = delete;
  ~HubSet();

  /// Makes everything that is there from the beginning: CRDs, the hubs' own objects, registrations, clusters. What is
  /// there already stays. Throws std::runtime_error.
  async::Awaitable<> build();
  /// Behaves, until cancelled.
  async::Awaitable<> run();
  /// Waits until no hub has anything to do; run() must be running.
  async::Awaitable<> wait_settled();

  /// What agents of that hub start from; after build(). Throws std::out_of_range.
  [[nodiscard]] const obs::Secret& bootstrap_kubeconfig(const std::string& hub) const;
  /// The clusters that build() made.
  [[nodiscard]] std::vector<std::string> clusters() const;
  /// Where they are; empty when there is no hub but the global one.
  [[nodiscard]] std::string first_hub() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
