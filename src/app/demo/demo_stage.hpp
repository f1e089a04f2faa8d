#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hubferry/async/loops.hpp"
#include "hubferry/hubs/hub_directory.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/sim/world.hpp"

namespace hubferry::app {

struct DemoOptions {
  int clusters = 50;
  int migrations = 3;
  bool keep = false;
  std::string fail;  // empty: nothing; else the phase in which it shall
  int seed = 1;
};

/// The words of --fail: the phases in which something can be made to go wrong.
const std::vector<std::string>& demo_failures();

/// Where the demo plays: a simulated world on real sockets, and the manager's controller, which knows that world by its
/// kubeconfigs only. The world has a loop and thread of its own, as other machines would.
///
/// Lifetime: what `env` refers to outlives it; world_run() and manager_run() have ended before it goes.
/// Executor: the caller's loop; `loops` serve the connections and the world.
class DemoStage {
 public:
  static constexpr const char* source = "hub1";
  static constexpr const char* target = "hub2";
  static constexpr const char* ns = "default";

  DemoStage(const DemoOptions& options, async::LoopPool& loops, kube::Env env);
  DemoStage(const DemoStage&) = delete;
  DemoStage& operator=(const DemoStage&) = delete;

  /// Makes the hubs and their clusters, and whatever shall go wrong later.
  async::Awaitable<> build();
  /// The hubs and the clusters' agents, until cancelled.
  async::Awaitable<> world_run();
  /// Returns when the hubs are there as the manager sees them.
  async::Awaitable<> wait_ready();
  /// What `hubferry manager` does when it leads, until cancelled.
  async::Awaitable<> manager_run();

  /// Asks for the migrations; each gets its share of the clusters.
  async::Awaitable<> create_migrations();
  /// How many clusters are Available on a hub, by its own API.
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
  // Of the world: what the manager shows of itself must not tell of it.
  obs::Metrics world_metrics_;
  async::Random world_random_;
  std::unique_ptr<sim::World> world_;
  std::vector<std::string> clusters_;
  std::shared_ptr<kube::Api> global_;
};

}  // namespace hubferry::app
