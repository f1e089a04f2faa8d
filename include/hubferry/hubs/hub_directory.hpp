#pragma once

#include <functional>
#include <memory>
#include <string>

#include "hubferry/hubagent/hub.hpp"
#include "hubferry/hubs/hub_registration.hpp"
#include "hubferry/hubs/hubs.hpp"
#include "hubferry/kube/config.hpp"

namespace hubferry::hubs {

struct HubDirectoryOptions {
  hubagent::HubOptions hub;
  /// False: the account on the global hub is not the manager's, so its permissions say nothing (`plan`).
  bool is_manager = true;
  /// How clusters reach the global hub, if that is a source or target itself (local-cluster) and its ManagedCluster
  /// does not say.
  std::string global_server;
  std::string global_ca_pem;
};

/// Connects to a hub. May throw kube::ConfigError.
using Connect = std::function<std::shared_ptr<kube::Api>(const std::string& hub, const kube::ClientConfig& config)>;

/// The hubs that the manager connects to itself: their operations run in this process.
///
/// A hub is a ManagedCluster on the global hub with a hub's label or annotation and a Secret with its kubeconfig;
/// local-cluster is the global hub itself and needs none. Each has a connection, a cache of its clusters and a limit on
/// the clusters in flight, from the moment when it is found. When its Secret changes (a rotated credential, say), a new
/// connection replaces the old one, and operations that were running are restarted on it: they are idempotent.
///
/// Metrics: hubferry_hubs (by whether there is a connection), hubferry_hub_reachable (whether the hub answered the last
/// operation), hubferry_hub_clusters_in_flight.
/// Lifetime: `global` and what `env` refers to outlive it; it outlives the operations on its hubs. Executor: the
/// control loop. Errors: run() never ends by itself; what is wrong with a hub is the error of connection().
class HubDirectory final : public Hubs {
 public:
  HubDirectory(kube::Api& global, Connect connect, HubDirectoryOptions options, kube::Env env);
  HubDirectory(const HubDirectory&) = delete;
  HubDirectory& operator=(const HubDirectory&) = delete;
  ~HubDirectory() override;

  /// Watches the global hub, and the clusters of all hubs, until cancelled. Operations that are running then end with
  /// an error; run() ends after the connections have.
  async::Awaitable<> run();

  async::Awaitable<HubInfo> find(std::string hub) override;
  async::Awaitable<std::vector<std::string>> names() override;
  hubagent::Result<std::shared_ptr<Connection>> connection(const std::string& hub) override;

  /// True once the global hub's clusters and Secrets are synced.
  [[nodiscard]] bool synced() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace hubferry::hubs
