#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "../migration/simulated_manager.hpp"
#include "forked.hpp"
#include "hubferry/sim/fleet_agents.hpp"
#include "invariants.hpp"
#include "spec_edits.hpp"

namespace hubferry::worlds {

using async::Awaitable;
namespace json = boost::json;
using namespace std::chrono_literals;

/// What happens to a process at one of its writes.
enum class Fate {
  lives,
  killed_before,     // the write is not sent
  killed_after,      // it took effect
  killed_in_flight,  // it takes effect seconds later, when a successor may have begun
  answer_lost,       // it took effect, and its sender does not know
};

/// One point of the matrix.
struct Point {
  Fate fate = Fate::lives;
  async::Duration successor{0};  // starts so long after the death
};
std::string to_string(const Point& point);
/// All points of one write.
const std::vector<Point>& points_of_a_write();

/// Of how many points one is run, as HUBFERRY_CRASH_MATRIX says: a number, or "all".
std::size_t stride_of_matrix(std::size_t by_default);

/// Decides the fate of each write of a process. Runs each chosen point in a clone of the whole world, which continues
/// from this very write to the end of its flow; the original lives on to its next write.
class CrashMatrix {
 public:
  /// Every `stride`-th point, from another one on for each `offset`; stride 1: all.
  CrashMatrix(std::size_t stride, std::size_t offset) : stride_(stride), offset_(offset), candidates_(offset) {}

  Point decide(const std::string& write);
  /// A point of another kind: true in the clone that is made for it.
  bool branch(const std::string& what);
  /// The end of a flow: a clone reports and exits here; the original returns.
  void finish(const std::string& violations);

  [[nodiscard]] std::size_t writes() const { return writes_; }
  [[nodiscard]] std::size_t points() const { return points_; }
  /// Points that there are, those included that are left out.
  [[nodiscard]] std::size_t candidates() const { return candidates_ - offset_; }
  [[nodiscard]] const std::string& failures() const { return failures_; }

 private:
  /// In a clone.
  bool try_point(const std::string& what);

  std::size_t stride_;
  std::size_t offset_;
  std::size_t candidates_;
  std::size_t writes_ = 0;
  std::size_t points_ = 0;
  bool is_clone_ = false;
  std::string failures_;
};

/// Two hubs, three clusters on the first, a migration m1 of two of them, and a manager whose writes are points of the
/// matrix; or the agents' writes are, while the clusters are on their way.
class FlowWorld {
 public:
  enum class Victim { manager, agents, nobody };

  FlowWorld(CrashMatrix& matrix, Victim victim, Checks checks = Checks::all);

  /// Runs the flow to its end and checks it.
  void run();

  // For flows. on_phase() calls `act` once, when m1 first enters the phase.
  void on_phase(const std::string& phase, std::function<void()> act) { acts_[phase] = std::move(act); }
  void spawn(Awaitable<> task);
  void switch_off(const std::string& cluster);
  void switch_on(const std::string& cluster);
  /// The agents of both are away, and return when the rollback has begun for a while.
  void switch_off_both();
  Awaitable<> switch_on_later();
  Awaitable<> delete_migration();
  /// On the target.
  Awaitable<> delete_copy(std::string cluster);
  Awaitable<> edit_spec(json::object edit);
  Awaitable<> annotate(std::string annotation, std::string value);
  Awaitable<> phase_reached(std::string phase);
  Awaitable<> sleep(async::Duration span) { return world.clock().sleep_for(span); }

  sim::VirtualWorld world;
  std::vector<std::string> names;
  Invariants invariants;
  migration::ControllerOptions controller;

 private:
  class Wire;
  class AgentWire;

  void start_manager();
  Awaitable<> succeed_after(async::Duration delay);
  Awaitable<> restart_after(std::string cluster, async::Duration delay);
  Awaitable<> migrate();
  /// The person's API.
  kube::Api& person() { return *person_; }

  CrashMatrix& matrix_;
  Victim victim_;
  std::unique_ptr<kube::Api> person_;
  std::map<std::string, std::function<void()>> acts_;
  std::list<std::unique_ptr<migration::test::SimulatedManager>> managers_;
  std::map<std::string, sim::FleetMember> off_;
  int busy_ = 0;      // tasks and successors that are to come
  bool hot_ = false;  // agents: clusters are on their way
};

}  // namespace hubferry::worlds
