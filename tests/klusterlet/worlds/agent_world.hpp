#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "../flaky_store.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/klusterlet/agent.hpp"
#include "hubferry/sim/hub_controllers.hpp"
#include "hubferry/sim/network.hpp"
#include "hubferry/sim/server.hpp"
#include "plan.hpp"

namespace hubferry::klusterlet::worlds {

using namespace std::chrono_literals;

/// The machine of one agent: its disk and its clock survive the process.
struct Machine;
/// A hub with all its controllers.
struct SimulatedHub;

/// What every agent of these worlds has.
inline constexpr Duration connection_timeout = 90s;
/// The longest interval between two heartbeats, with the jitter.
inline constexpr Duration longest_period = 38s;

/// How long an agent may be without a hub although one would take it. It leaves a lost hub after the connection
/// timeout; so it does with each hub that is in its way and neither registers nor refuses it; and while no hub could be
/// selected it looks again after at most two minutes, and as long for each attempt to register.
inline Duration stated_time(std::size_t hubs) {
  return static_cast<int>(hubs) * (connection_timeout + 30s) + 4min;
}
/// How long two hubs may both have a Lease that is fresh: one heartbeat.
inline constexpr Duration longest_overlap = longest_period;

/// How soon an agent that is denied sends its heartbeats to another hub: far below the connection timeout, after which
/// it would leave in any case.
inline constexpr Duration longest_denial = 30s;

/// Hubs and agents on virtual time, to which a plan happens. Invariants are checked every few seconds:
///
/// - A living agent is without a hub (no heartbeat of it reaches any) only while no hub in its list would take it, plus
///   the stated time.
/// - Never do two hubs have a fresh Lease of one agent for longer than one heartbeat.
/// - No agent leaves a hub on which nothing was wrong for it.
/// - An agent that its hub denies is on another one at once, if nothing else is wrong.
class AgentWorld {
 public:
  explicit AgentWorld(Plan plan);
  AgentWorld(const AgentWorld&) = delete;
  AgentWorld& operator=(const AgentWorld&) = delete;
  ~AgentWorld();

  /// Runs the plan to its end and the time after it. The violations, one per line; empty: none.
  std::string run();
  /// Differs if anything went differently.
  [[nodiscard]] std::string fingerprint() const;

 private:
  enum class Invariant { fed, alone, stays, obeys };

  struct Watched {
    std::map<std::size_t, async::TimePoint> renewed;           // by hub: the last heartbeat that reached it
    std::map<std::size_t, async::TimePoint> starving;          // by hub that would take it: since when
    std::optional<async::TimePoint> doubled;                   // two fresh Leases: since when
    std::map<std::size_t, std::set<async::TimePoint>> flawed;  // by hub: when something was wrong there for this agent
    std::optional<std::size_t> hub;                            // the last one that a heartbeat reached
    bool settled = false;                                      // there at the last check, and all was well
    std::optional<async::TimePoint> denied;                    // by that hub, with nothing else wrong: since when
    std::set<Invariant> violated;                              // each is reported once
  };

  void set_up_hub(std::size_t index);
  void begin(const Step& step);
  void end(const Step& step);
  void edit_list(std::size_t agent);
  void check();
  void see_heartbeats();
  void note_flaws();
  void check_departure(std::size_t agent, std::size_t left, async::TimePoint arrived);
  void check_hunger(std::size_t agent);
  void check_overlap(std::size_t agent);
  void check_denial(std::size_t agent);
  [[nodiscard]] bool would_take(std::size_t hub, std::size_t agent) const;
  [[nodiscard]] bool is_flawless(std::size_t hub, std::size_t agent) const;
  [[nodiscard]] bool is_calm(std::size_t agent) const;
  [[nodiscard]] bool is_fed(std::size_t agent) const;
  [[nodiscard]] bool accepts(std::size_t hub, std::size_t agent) const;
  void violation(std::size_t agent, Invariant which, const std::string& text);
  void collect_requests();
  async::Awaitable<> live(Machine& machine);
  async::Awaitable<> administrate(std::size_t hub, Step step);

  Plan plan_;
  async::VirtualLoop loop_;
  async::Random random_;
  obs::Metrics metrics_;
  kube::Env env_;
  sim::Network network_;
  std::vector<std::unique_ptr<SimulatedHub>> hubs_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<Watched> watched_;
  async::TaskScope scope_;
  std::string violations_;
  std::size_t heartbeats_ = 0;
};

}  // namespace hubferry::klusterlet::worlds
