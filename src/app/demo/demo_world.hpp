#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/common_flags.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/hubs/hub_directory.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/sim/world.hpp"
#include "hubferry/ui/console.hpp"

namespace hubferry::app {

struct DemoOptions {
  int clusters = 50;
  int migrations = 3;
  bool keep = false;
  bool relocate = false;  // ClusterDeployments of Hive, by a ClusterRelocator
  bool mysql = false;     // real MariaDB servers, by the MySQL operator
  std::string fail;       // the phase to fail in; empty: no failure
  int seed = 1;
  UiFlags ui{.address = "127.0.0.1:0"};
};

/// The values of --fail: the phases in which a failure can be injected.
const std::vector<std::string>& demo_failures();

/// The world of the demo: simulated hubs and clusters on local sockets, and the manager's controller, which has only
/// their kubeconfigs. The simulation has its own loop and thread, as if on other machines.
///
/// Lifetime: the objects of `env` outlive it; world_run() and manager_run() end before it is destroyed.
/// Executor: the caller's loop; `loops` serve the connections and the world.
class DemoWorld {
 public:
  static constexpr const char* source = "hub1";
  static constexpr const char* target = "hub2";
  static constexpr const char* ns = "default";

  DemoWorld(const DemoOptions& options, async::LoopPool& loops, kube::Env env);
  DemoWorld(const DemoWorld&) = delete;
  DemoWorld& operator=(const DemoWorld&) = delete;

  /// Creates the hubs, their clusters, and the injected failure.
  async::Awaitable<> build();
  /// Runs the hubs and the clusters' agents until cancelled.
  async::Awaitable<> world_run();
  /// Waits until both hubs are Available on the global hub.
  async::Awaitable<> wait_ready();
  /// Runs the controller as a leading `hubferry manager` does, until cancelled, with the page.
  async::Awaitable<> manager_run(ui::Console& console);

  /// Creates the migrations; the clusters are divided among them.
  async::Awaitable<> create_migrations();
  /// The number of clusters that are Available on a hub, from its own API.
  async::Awaitable<std::size_t> count_available(std::string hub);

  [[nodiscard]] kube::Api& global() { return *global_; }
  [[nodiscard]] std::vector<std::string> servers() const { return world_->servers(); }
  [[nodiscard]] std::string kubeconfig(const std::string& server) const;
  [[nodiscard]] std::size_t clusters() const { return clusters_.size(); }

 private:
  void prepare_failure();
  [[nodiscard]] std::shared_ptr<kube::Api> connect(const std::string& name, const kube::ClientConfig& config);

  DemoOptions options_;
  async::LoopPool& loops_;
  async::Executor world_loop_;
  kube::Env env_;
  // The simulation's metrics, kept apart from those of the manager.
  obs::Metrics world_metrics_;
  async::Random world_random_;
  std::unique_ptr<sim::World> world_;
  std::vector<std::string> clusters_;
  std::shared_ptr<kube::Api> global_;
};

}  // namespace hubferry::app
