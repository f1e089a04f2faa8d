#pragma once

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/sim/world.hpp"

namespace hubferry::sim {

/// A World on virtual time with its own loop, clock and generator: built and running from construction.
///
///     VirtualWorld world{{.hubs = {"hub1", "hub2"}, .clusters = 10, .seed = 7}};
///     world.spawn(controller.run());
///     world.run_for(1h);
///     EXPECT_TRUE(…) << world.timeline();
///
/// Spawned tasks are cancelled and joined before the servers are destroyed.
class VirtualWorld {
 public:
  explicit VirtualWorld(WorldOptions options)
      : random_(options.seed),
        env_{loop_.clock(), random_, metrics_, obs::Logger{}},
        world_(std::move(options), loop_.executor(), env_),
        scope_(loop_.executor()) {
    loop_.run(world_.build());
    scope_.spawn(world_.run());
    loop_.run(world_.wait_settled());
  }
  VirtualWorld(const VirtualWorld&) = delete;
  VirtualWorld& operator=(const VirtualWorld&) = delete;
  ~VirtualWorld() { stop(); }

  void spawn(async::Awaitable<> task) { scope_.spawn(std::move(task)); }
  /// Runs `task` to its end, advancing virtual time as needed.
  template <typename T>
  T run(async::Awaitable<T> task) {
    return loop_.run(std::move(task));
  }
  void run_for(async::Duration span) { loop_.run_for(span); }
  /// Cancels all tasks, those of the servers included, and joins them. The destructor does it too; call it before
  /// anything that the tasks use is destroyed.
  void stop() {
    scope_.stop();
    loop_.run(scope_.join());
  }

  async::VirtualLoop& loop() { return loop_; }
  async::VirtualClock& clock() { return loop_.clock(); }
  [[nodiscard]] const kube::Env& env() const { return env_; }

  World& world() { return world_; }
  Server& server(const std::string& name) { return world_.server(name); }
  Server& global() { return world_.global(); }
  kube::Api& api(const std::string& name) { return world_.api(name); }
  Network& network() { return world_.network(); }
  [[nodiscard]] std::string timeline() const { return world_.timeline(); }

 private:
  async::VirtualLoop loop_;
  async::Random random_;
  obs::Metrics metrics_;
  kube::Env env_;
  World world_;
  async::TaskScope scope_;
};

}  // namespace hubferry::sim
