#pragma once

#include <string>
#include <vector>

#include "app/cli/log_flags.hpp"
#include "app/service/observability.hpp"
#include "hubferry/kube/http_api.hpp"

namespace hubferry::app {

/// The controllers that there are, by the names of --controllers.
const std::vector<std::string>& controller_names();

/// What `hubferry manager` can be told.
struct ManagerOptions {
  std::string kubeconfig;
  std::string own_namespace;    // empty: see effective_namespace()
  std::string watch_namespace;  // empty: all
  bool leader_elect = false;
  async::Duration lease_duration = std::chrono::seconds(15);
  async::Duration renew_deadline = std::chrono::seconds(10);
  async::Duration retry_period = std::chrono::seconds(2);
  std::string lease_name = "hubferry-manager";
  std::string lease_namespace;  // empty: the own one
  std::vector<std::string> controllers = controller_names();
  int max_concurrent_migrations = 10;
  int clusters_in_flight_per_hub = 50;
  std::string carried_resources;  // a file; empty: only what moves anyway
  int threads = 0;                // 0: one for each CPU
  double kube_api_qps = -1;       // 0 and below: unlimited
  int kube_api_burst = 100;
  // Together with the unwinding below the 30 s that Kubernetes gives a pod.
  async::Duration shutdown_grace_period = std::chrono::seconds(25);
  LogFlags log;
  ServingFlags serving;

  /// This object must outlive the command.
  void add_to(Command& command);
  /// What concerns several flags at once. Throws UsageError.
  void check() const;

  /// --namespace, else that of the pod, else hubferry-system.
  [[nodiscard]] std::string effective_namespace() const;
  [[nodiscard]] std::size_t effective_threads() const;
};

/// How the manager talks to the API server of that name.
kube::HttpApiOptions client_options(const ManagerOptions& options, std::string name);

}  // namespace hubferry::app
