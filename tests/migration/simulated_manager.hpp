#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/hubs/hub_directory.hpp"
#include "hubferry/kube/leader_election.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/sim/virtual_world.hpp"

/// Managers as processes, several in one simulated world and on virtual time: each with its own election, fence, hub
/// connections and controller, wired as `hubferry manager` wires them.
namespace hubferry::migration::test {

using async::Awaitable;

/// A write that a manager has sent. Those to its Lease and its events are left out.
struct SentWrite {
  async::TimePoint at;
  std::string what;  // "delete managedclusters /c1 on hub1"
};

struct SimulatedManagerOptions {
  std::string identity;
  /// False: as without --leader-elect.
  bool leader_elect = true;
  /// Of its Lease. Managers with different ones do not see each other.
  std::string lease_namespace = "default";
  ControllerOptions controller = {};
  /// The user as whom it writes, on all servers: tells its writes from those of others. Empty: as the hubs' kubeconfigs
  /// say.
  std::string user = {};
  /// What is between it and each server. Empty: nothing.
  std::function<std::shared_ptr<kube::Api>(std::shared_ptr<kube::Api>)> wire = {};
  /// How far its wall clock is wrong.
  async::Duration skew{0};
};

/// One manager. pause() and resume() are SIGSTOP and SIGCONT: meanwhile nothing of it runs, while servers, clocks and
/// other managers go on; requests that are in flight take effect, their answers wait. A manager that loses its lead
/// ends, as the process does, or waits for the Lease again where it is run without --leader-elect. Lifetime: within
/// that of the world; stop() it before.
class SimulatedManager {
 public:
  SimulatedManager(sim::VirtualWorld& world, SimulatedManagerOptions options);
  ~SimulatedManager();
  SimulatedManager(const SimulatedManager&) = delete;
  SimulatedManager& operator=(const SimulatedManager&) = delete;

  void pause();
  void resume();
  /// Its clock goes at a tenth of the speed, and it does not reach the Lease: it leads on for a minute and more after
  /// its term, beside its successor.
  void deceive(bool deceived);
  /// Sets its wall clock.
  void jump(async::Duration by);
  /// SIGKILL: nothing of it runs any more, and nothing that it had not sent is sent. stop() only frees its memory then.
  void kill();
  /// SIGTERM, and its end. One that is paused continues for that.
  void stop();

  [[nodiscard]] bool leads() const;
  /// The holder of the Lease, as this manager knows it.
  [[nodiscard]] std::string leader() const;
  /// Why it ended by itself; empty: it did not.
  [[nodiscard]] const std::string& end() const;
  [[nodiscard]] const std::vector<SentWrite>& writes() const;
  [[nodiscard]] std::size_t writes_since(async::TimePoint when) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::migration::test
