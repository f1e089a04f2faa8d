#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/obs/secret.hpp"
#include "hubferry/sim/fault_script.hpp"
#include "hubferry/sim/http_door.hpp"
#include "hubferry/sim/network.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::sim {

/// The name of the server on which hubs are registered and migrations are asked for.
inline constexpr const char* global_hub = "global";

struct WorldOptions {
  std::vector<std::string> hubs{"hub1", "hub2"};
  /// On the first hub: see fleet.hpp.
  std::size_t clusters = 0;
  std::uint64_t seed = 1;
  FaultScript faults{};

  /// Sockets for real clients; only where time is real. Port 0: any free one for each server; else the global hub has
  /// this one, and the hubs those that follow. Nobody needs a credential where there is no TLS: kubectl would not
  /// send one.
  std::optional<HttpOptions> http{};

  /// The global hub serves ManagedServiceAccounts, whose tokens lead to the hubs.
  bool managed_service_accounts = true;
  /// A Secret beside each hub's ManagedCluster says how the manager reaches the hub. Without it, an agent on the hub
  /// is needed.
  bool hub_kubeconfigs = true;
  /// Hubs accept new clusters, and approve their certificates, by themselves.
  bool auto_approval = true;
  std::chrono::seconds hub_connection_timeout{180};

  /// Of all servers; name and seed are set here.
  Options server{};
};

/// A global hub, hubs that are registered on it, and the clusters of the first: all in one process and one loop.
///
/// The hub H is on the global one a ManagedCluster H (available as long as H can be reached) with the label
/// global-hub.open-cluster-management.io/deploy-mode, and a Secret `hub-kubeconfig` in namespace H with the label
/// hubferry.io/hub-kubeconfig. Every server behaves as a hub does (HubBehaviours). Without sockets the servers have
/// URLs such as https://hub1.sim, which network() knows.
///
/// Lifetime: what `env` refers to outlives it. Executor: the one given. The same seed and the same requests on virtual
/// time give the same timeline.
class World {
 public:
  /// Opens the sockets, where there are any; throws system_error when it cannot.
  World(WorldOptions options, async::Executor executor, kube::Env env);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  /// Makes everything that is there from the beginning. Throws std::runtime_error.
  async::Awaitable<> build();
  /// Lets hubs behave and clients in, until cancelled.
  async::Awaitable<> run();
  /// Waits until no hub has anything to do; run() must be running.
  async::Awaitable<> wait_settled();

  /// Throws std::out_of_range for a name that is none.
  Server& server(const std::string& name);
  Server& global() { return server(global_hub); }
  /// As admin.
  kube::Api& api(const std::string& name) { return server(name).api(); }
  Network& network();
  /// How an admin reaches a server: over its socket where it has one.
  [[nodiscard]] kube::ClientConfig admin_config(const std::string& name);
  /// What agents start from, for each hub; after build().
  [[nodiscard]] const obs::Secret& bootstrap_kubeconfig(const std::string& hub) const;

  [[nodiscard]] const WorldOptions& options() const;
  /// The global hub first.
  [[nodiscard]] std::vector<std::string> servers() const;
  /// The clusters that build() made.
  [[nodiscard]] std::vector<std::string> clusters() const;
  /// The requests to all servers in the order in which they happened, one a line, beginning with the seed.
  [[nodiscard]] std::string timeline() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
