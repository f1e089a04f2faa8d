#pragma once

#include <functional>
#include <memory>
#include <string>

#include "hubferry/hubagent/hub.hpp"
#include "hubferry/hubs/hubs.hpp"
#include "hubferry/kube/config.hpp"

namespace hubferry::hubs {

/// The label of the Secret in namespace H of the global hub that says how hub H is reached (key `kubeconfig`).
inline constexpr const char* hub_kubeconfig_label = "hubferry.io/hub-kubeconfig";

struct HubDirectoryOptions {
  hubagent::HubOptions hub;
  /// How clusters reach the global hub, where that is a source or target itself (local-cluster) and its ManagedCluster
  /// does not say.
  std::string global_server;
  std::string global_ca_pem;
};

/// Opens the way to a hub. May throw kube::ConfigError.
using Connect = std::function<std::shared_ptr<kube::Api>(const std::string& hub, const kube::ClientConfig& config)>;

/// The hubs that the manager reaches by itself: the agents of all of them run in this process.
///
/// A hub is a ManagedCluster on the global hub with a hub's marks and a Secret with its kubeconfig; local-cluster is
/// the global hub itself and needs none. Each has a connection, a cache of its clusters and a bound on what is in
/// flight there, from the moment when it is found. When its Secret changes (a rotated credential, say), a new
/// connection takes the place of the old one, and orders that were under way are given again on the new one: they are
/// idempotent.
///
/// Metrics: hubferry_hubs (by whether there is a way to them), hubferry_hub_reachable (did it answer when last asked),
/// hubferry_hub_clusters_in_flight.
/// Lifetime: `global` and what `env` refers to outlive it, and every order to what it gave out. Executor: the control
/// loop. Errors: run() never ends by itself; what is wrong with a hub is told to whoever asks for it.
class HubDirectory final : public Hubs {
 public:
  HubDirectory(kube::Api& global, Connect connect, HubDirectoryOptions options, kube::Env env);
  HubDirectory(const HubDirectory&) = delete;
  HubDirectory& operator=(const HubDirectory&) = delete;
  ~HubDirectory() override;

  /// Follows the global hub, and the clusters of all hubs, until cancelled. Orders under way then are cut off with an
  /// error; run() ends after the connections have.
  async::Awaitable<> run();

  async::Awaitable<HubInfo> find(std::string hub) override;
  kube::Result<std::shared_ptr<hubagent::SourceHub>> source(const std::string& hub) override;
  kube::Result<std::shared_ptr<hubagent::TargetHub>> target(const std::string& hub) override;

  /// True once the global hub has been looked at.
  [[nodiscard]] bool synced() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace hubferry::hubs
