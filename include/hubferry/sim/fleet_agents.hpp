#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/klusterlet/agent.hpp"
#include "hubferry/sim/network.hpp"
#include "hubferry/sim/work_agent.hpp"

namespace hubferry::sim {

/// Options of all agents of a fleet.
struct FleetOptions {
  async::Duration connection_timeout = std::chrono::minutes{10};
  /// Their starts are spread over this duration.
  async::Duration start_spread{0};
  /// Each event costs a write on the hub; off by default for thousands of agents.
  bool record_events = false;
  /// As the agent of Open Cluster Management was recorded: one that registers does so until it succeeds, or is
  /// restarted, and it takes its time to apply the klusterlet's work. False: as hubferry's own agent, which leaves a
  /// hub on which it cannot register.
  bool upstream = true;
  /// Of clusters with an API server of their own.
  async::Duration eviction_grace = std::chrono::minutes{60};
};

/// One managed cluster of a fleet.
struct FleetMember {
  std::string cluster;
  std::vector<klusterlet::BootstrapConfig> bootstraps;
  /// A credential issued in advance (issue_hub_secret()): the agent joins without registering.
  std::optional<klusterlet::HubSecret> secret;
  /// The cluster's own API server, on which its hub's ManifestWorks are applied (WorkAgent), and which has the agents'
  /// pod; null: it has none. Outlives the fleet.
  kube::Api* own_cluster = nullptr;
};

/// The credential that a hub would issue to the agent of this cluster: for fleets that start as joined. `bootstrap`
/// must be a configuration for that server, which must be in the network.
klusterlet::HubSecret issue_hub_secret(const Network& network, const Server& hub, const std::string& cluster,
                                       const kube::ClientConfig& bootstrap);

/// Thousands of managed clusters: real agents (klusterlet::Agent) in one process, on the direct APIs of simulated
/// hubs.
///
///   FleetAgents fleet{network, {}, env};
///   fleet.add({"cluster-1", {bootstrap_of_hub1}, issue_hub_secret(network, hub1, "cluster-1", config_of_hub1)});
///   scope.spawn(fleet.run());
///
/// Lifetime: network, its servers and what `env` refers to outlive run(). Executor: one loop, that of the servers.
/// Cancellation of run(): terminal; all agents have stopped when it returns.
class FleetAgents {
 public:
  FleetAgents(const Network& network, FleetOptions options, kube::Env env);
  FleetAgents(const FleetAgents&) = delete;
  FleetAgents& operator=(const FleetAgents&) = delete;
  ~FleetAgents();

  /// Starts immediately if run() is running. Throws std::invalid_argument for a duplicate or invalid name.
  void add(FleetMember member);
  /// Stops the agent and removes the cluster, without notifying its hub. False if there is none of that name.
  bool remove(const std::string& cluster);
  /// Restarts the agent, as if its pod were deleted: it selects a hub again. False if there is none of that name.
  bool restart(const std::string& cluster);

  async::Awaitable<> run();

  [[nodiscard]] std::size_t size() const;
  /// nullptr if there is none of that name.
  [[nodiscard]] const klusterlet::Agent* find(const std::string& cluster) const;
  [[nodiscard]] klusterlet::MemoryStore* store_of(const std::string& cluster) const;
  /// How many agents are in the phase Joined at this server.
  [[nodiscard]] std::size_t joined_at(const std::string& server) const;
  /// How many of them have reported to that server that they are available.
  [[nodiscard]] std::size_t available_at(const std::string& server) const;

 private:
  struct Cluster;

  async::Awaitable<> live(std::shared_ptr<Cluster> cluster);

  const Network& network_;
  FleetOptions options_;
  kube::Env env_;
  std::map<std::string, std::shared_ptr<Cluster>> clusters_;
  async::TaskScope* scope_ = nullptr;  // while run() runs
};

}  // namespace hubferry::sim
