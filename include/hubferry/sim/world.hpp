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
  std::uint64_t seed = 1;
  FaultScript faults{};

  /// Sockets for real clients; only where time is real. Port 0: any free one for each server; else the global hub has
  /// this one, and the hubs those that follow. Nobody needs a credential where there is no TLS: kubectl would not
  /// send one.
  std::optional<HttpOptions> http{};

  /// Each cluster has an agent (FleetAgents), which joined the first hub before the world began.
  bool agents = true;
  /// As in HubSetOptions.
  bool managed_service_accounts = true;
  bool hub_kubeconfigs = true;
  bool auto_approval = true;
  std::chrono::seconds hub_connection_timeout{180};

  /// Of all servers; name and seed are set here.
  Options server{};
};

/// A global hub, hubs that are registered on it (HubSet), and the clusters of the first with their agents: all in one
/// process and one loop. Without sockets the servers have URLs such as https://hub1.sim, which network() knows.
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
  /// Lets hubs behave, agents work and clients in, until cancelled.
  async::Awaitable<> run();
  /// Waits until no hub has anything to do; run() must be running.
  async::Awaitable<> wait_settled() { return hubs().wait_settled(); }

  /// Throws std::out_of_range for a name that is none.
  Server& server(const std::string& name);
  Server& global() { return server(global_hub); }
  /// As admin.
  kube::Api& api(const std::string& name) { return server(name).api(); }
  Network& network();
  HubSet& hubs();
  /// The agents of the clusters; more can be added. Without `agents` there are none at first.
  FleetAgents& agents();
  /// How an admin reaches a server: over its socket where it has one.
  [[nodiscard]] const kube::ClientConfig& admin_config(const std::string& name) const;

  [[nodiscard]] const WorldOptions& options() const;
  /// The global hub first.
  [[nodiscard]] std::vector<std::string> servers() const;
  /// The clusters that build() made.
  [[nodiscard]] std::vector<std::string> clusters() { return hubs().clusters(); }
  /// The requests to all servers in the order in which they happened, one a line, beginning with the seed.
  [[nodiscard]] std::string timeline() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
