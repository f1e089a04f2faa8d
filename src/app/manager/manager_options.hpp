#pragma once

#include <string>
#include <vector>

#include "app/cli/common_flags.hpp"
#include "app/service/service.hpp"
#include "hubferry/kube/http_api.hpp"

namespace hubferry::app {

/// All controllers, by their names in --controllers.
const std::vector<std::string>& controller_names();
/// Those that run unless --controllers says otherwise.
std::vector<std::string> default_controllers();

/// Options of `hubferry manager`.
struct ManagerOptions {
  std::string kubeconfig;
  std::string own_namespace;    // empty: see effective_namespace()
  std::string watch_namespace;  // empty: all
  std::string mysql_namespace;  // empty: watch_namespace
  bool beside_global_hub = false;
  bool leader_elect = false;
  async::Duration lease_duration = std::chrono::seconds(15);
  async::Duration renew_deadline = std::chrono::seconds(10);
  async::Duration retry_period = std::chrono::seconds(2);
  std::string lease_name = "hubferry-manager";
  std::string lease_namespace;  // empty: that of effective_namespace()
  std::vector<std::string> controllers = default_controllers();
  std::string print_phases;  // the format; empty: run
  int max_concurrent_migrations = 10;
  int max_concurrent_relocations = 10;  // to one destination
  int clusters_in_flight_per_hub = 50;
  std::string carried_resources;  // a file; empty: the default resources only
  int threads = 0;                // 0: one per CPU
  double kube_api_qps = -1;       // 0 and below: unlimited
  int kube_api_burst = 100;
  // Leaves 5 s of the 30 s that Kubernetes gives a pod, for cancelled work to end.
  async::Duration shutdown_grace_period = std::chrono::seconds(25);
  LogFlags log;
  ServingFlags serving;
  UiFlags ui;

  /// Lifetime: this object outlives the command.
  void add_to(Command& command);
  /// Validates combinations of flags. Throws UsageError.
  void check() const;

  /// --namespace, or the pod's namespace, or hubferry-system.
  [[nodiscard]] std::string effective_namespace() const;
  [[nodiscard]] std::size_t effective_threads() const;
};

/// Client options for the API server of that name.
kube::HttpApiOptions client_options(const ManagerOptions& options, std::string name);

}  // namespace hubferry::app
