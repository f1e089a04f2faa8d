#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/sim/fault_script.hpp"
#include "hubferry/sim/http_frontend.hpp"
#include "hubferry/sim/hub_set.hpp"
#include "hubferry/sim/network.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::sim {

class FleetAgents;

struct WorldOptions {
  std::vector<std::string> hubs{"hub1", "hub2"};
  /// On the first hub: see fleet.hpp.
  std::size_t clusters = 0;
  FleetKind fleet = FleetKind::mixed;
  std::size_t secrets = 0;  // as in FleetPlan
  std::uint64_t seed = 1;
  /// From when all hubs are idle for the first time.
  FaultScript faults{};

  /// Sockets for real clients; only on real time. Port 0: any free one for each server; otherwise the global hub gets
  /// this one, and the hubs those that follow. Without TLS no credential is needed: kubectl would not send one.
  std::optional<HttpOptions> http{};

  /// Each cluster has an agent (FleetAgents), which has already joined the first hub.
  bool agents = true;
  /// Each cluster has an API server of its own name, on which its hub's ManifestWorks are applied. What a hub deployed
  /// is evicted this long after the cluster has left it.
  bool cluster_servers = false;
  async::Duration eviction_grace = std::chrono::minutes{60};
  /// As in FleetOptions.
  bool upstream_agents = true;
  /// As in HubSetOptions.
  bool managed_service_accounts = true;
  bool hub_kubeconfigs = true;
  bool auto_approval = true;
  ImportController import_controller = ImportController::mce_2_17;
  std::chrono::seconds hub_connection_timeout{180};

  /// Options of all servers; name and seed are set by the world.
  Options server{};
};

/// A global hub, hubs that are registered on it (HubSet), and the clusters of the first with their agents: all in one
/// process and one loop. Without sockets the servers have URLs such as https://hub1.sim, which network() knows.
///
/// Lifetime: what `env` refers to outlives it. Executor: the one given. The same seed and the same requests on virtual
/// time give the same timeline.
class World {
 public:
  /// Opens the sockets, if there are any; throws std::runtime_error if it cannot.
  World(WorldOptions options, async::Executor executor, kube::Env env);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  /// Creates the initial objects. Throws std::runtime_error.
  async::Awaitable<> build();
  /// Runs hub controllers, agents and HTTP frontends until cancelled.
  async::Awaitable<> run();
  /// Waits until all hubs are idle; run() must be running.
  async::Awaitable<> wait_settled() { return hubs().wait_settled(); }

  /// Throws std::out_of_range for an unknown name.
  Server& server(const std::string& name);
  Server& global() { return server(global_hub); }
  /// As admin.
  kube::Api& api(const std::string& name) { return server(name).api(); }
  /// The wall clock of that server and its controllers is so far ahead of the others'. Throws std::out_of_range.
  void set_clock(const std::string& name, async::Duration ahead);
  Network& network();
  HubSet& hubs();
  /// The agents of the clusters; more can be added. Without `agents` there are none initially.
  FleetAgents& agents();
  /// The client configuration of a server's admin: for its socket if it has one.
  [[nodiscard]] const kube::ClientConfig& admin_config(const std::string& name) const;

  [[nodiscard]] const WorldOptions& options() const;
  /// The global hub first.
  [[nodiscard]] std::vector<std::string> servers() const;
  /// The clusters that build() created.
  [[nodiscard]] std::vector<std::string> clusters() { return hubs().clusters(); }
  /// The seed, then the requests to all servers in order, one per line.
  [[nodiscard]] std::string timeline() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
