#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>

#include "../migration/simulated_manager.hpp"
#include "hubferry/sim/fleet.hpp"
#include "hubferry/sim/fleet_agents.hpp"
#include "invariants.hpp"
#include "plan.hpp"
#include "wire.hpp"

namespace hubferry::worlds {

using async::Awaitable;

/// Names the ManagedClusterSet of a cluster.
inline constexpr const char* set_label = "cluster.open-cluster-management.io/clusterset";

/// What a run of a plan came to.
struct Result {
  std::string violations;  // empty: none
  std::string summary;     // "hash 0123456789abcdef, 812 writes, m0 Completed": the same for the same plan
  std::string timeline;    // of a recorded world: the writes of managers and people, and their answers
  double cpu_seconds = 0;  // what the run cost
};

/// Hubs without clusters, for many worlds of one kind: built once, and cloned by fork().
std::unique_ptr<sim::VirtualWorld> build_hubs(const Plan& plan, bool recorded);

/// Runs a plan on hubs that build_hubs() made for it, which are used up by that.
class SeededWorld {
 public:
  SeededWorld(sim::VirtualWorld& hubs, Plan plan);
  SeededWorld(const SeededWorld&) = delete;
  SeededWorld& operator=(const SeededWorld&) = delete;

  Result run();

 private:
  /// A pod: its process is started again after each end.
  struct Manager {
    std::unique_ptr<migration::test::SimulatedManager> process;
    std::vector<std::unique_ptr<migration::test::SimulatedManager>> dead;
    int lives = 0;
    std::map<Duration, int> jumped;  // by the step: which of its lives has a wrong clock
    int killed = 0;
    int paused = 0;
  };

  void add_clusters();
  void add_sets();
  void create_fleet(kube::Api& hub, const sim::FleetPlan& fleet);
  void start_manager(std::size_t index);
  void spawn(Awaitable<> task);
  Awaitable<> migrate(std::size_t index);
  Awaitable<> happen(Step step);
  void set_fault(const Step& step, bool begins);
  [[nodiscard]] Step severed(Step step) const;
  void apply_faults(std::size_t hub);
  void add_rules(sim::Faults& faults, const Step& step);
  void jump(const Step& step, bool begins);
  void set_hub_clock(const Step& step, bool begins);
  void switch_agent(std::size_t cluster, bool on);
  void kill(std::size_t index, bool begins);
  void pause(std::size_t index, bool begins);
  void deceive(std::size_t index, bool begins);
  Awaitable<> restart_agent(std::size_t cluster);
  void restart_stuck_agents();
  Awaitable<> change_lease(bool steal);
  Awaitable<> annotate_migration(std::size_t migration);
  Awaitable<> label_cluster(Step step);
  Awaitable<> deny(Step step, bool begins);
  Awaitable<> delete_copy(Step step);
  /// Until it is done, or there is no such object.
  Awaitable<> insist(std::string server, kube::Resource resource, kube::Key key, boost::json::object patch);
  /// Until it exists.
  Awaitable<> insist_on(std::string server, kube::Resource resource, boost::json::object object);
  /// Until the step's migration is in that phase; false if that does not come soon.
  Awaitable<bool> reaches(Step step, std::string phase);
  Awaitable<> delete_late_copy(Step step);
  Awaitable<> delete_copied_object(Step step);
  Awaitable<> delete_namespace(Step step);
  Awaitable<> edit_ledger(Step step);
  Awaitable<> omit_from_ledger(Step step);
  Awaitable<> edit_spec(Step step);
  Awaitable<> edit_kubeconfig(Step step, bool begins);
  /// Armed from the begin to the end of the step: see interfere().
  Awaitable<> accept_again(Step step, bool begins);
  /// Before a manager's request reaches that hub.
  Awaitable<> interfere(std::size_t hub, kube::Verb verb, std::string plural, std::string name);
  Awaitable<> sabotage(Step step);
  [[nodiscard]] std::string hub_name(std::size_t hub) const;
  kube::Api& person(const std::string& server);
  [[nodiscard]] Wire& wire_of(Side side, std::size_t hub);
  std::shared_ptr<kube::Api> on_wire(Side side, std::shared_ptr<kube::Api> api);
  [[nodiscard]] std::string summary() const;

  sim::VirtualWorld& world_;
  Plan plan_;
  async::Random random_;
  std::vector<std::string> clusters_;
  std::unique_ptr<Invariants> invariants_;
  std::map<std::pair<Side, std::size_t>, std::unique_ptr<Wire>> wires_;
  std::vector<Step> active_;
  std::map<std::string, std::unique_ptr<kube::Api>> people_;
  std::vector<std::unique_ptr<Manager>> managers_;
  std::map<std::size_t, sim::FleetMember> off_;
  std::map<std::size_t, int> switched_off_;
  std::map<std::size_t, std::string> denied_on_;
  std::vector<Step> armed_;                           // of Act::acceptance
  std::map<std::size_t, std::size_t> accepted_on_;    // by cluster: the source on which a person accepted it again
  std::map<std::size_t, kube::Object> kubeconfigs_;   // by hub: the Secret before it was edited
  std::map<std::size_t, Duration> kubeconfig_edits_;  // by hub: the step that has edited it
  std::map<std::size_t, Duration> hub_clocks_;        // by hub: how far it is ahead
  Duration two_leaders_{0};                           // so long two managers believed to lead
  int busy_ = 0;
};

}  // namespace hubferry::worlds
