#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/types.hpp"

namespace hubferry::worlds {

using async::Duration;

/// Between whom and a hub something is wrong.
enum class Side { manager, agents, everybody };

/// What happens in a world. Most begin and end; the others happen once.
enum class Act {
  // To a hub, for one side.
  outage,
  errors,            // 500
  conflicts,         // 409
  throttling,        // 429 with Retry-After
  resets_before,     // the request does not reach the server
  resets_after,      // the answer does not reach the client
  slow,              // answers take seconds
  hanging,           // some requests are never answered; writes take effect nevertheless
  late_events,       // watch events are late
  lost_events,       // watch events do not arrive; when it is over, the watches have to begin anew
  stalled_watches,   // nothing arrives, until the watch breaks
  reordered_events,  // those of different objects; the ones of one object stay in order
  repeated_events,   // watch events arrive twice
  // To a hub, for everybody.
  stale_lists,
  refusals,     // a webhook or a quota refuses a kind of write
  hub_clock,    // the wall clock of the hub and its controllers is wrong
  cut_watches,  // once
  compaction,   // once
  // To managers.
  kill,            // it starts again at the end
  pause,           // it wakes up at the end and believes that it leads
  lease_deletion,  // once
  lease_theft,     // once: the Lease names somebody else
  clock_jump,      // of the wall clock of a manager, which is set right at the end
  // To agents.
  severance,      // they do not reach the target any more, as soon as the migration is in Registering
  agent_off,      // and on again at the end
  agent_restart,  // once
  // People.
  migration_deletion,
  rollback_request,
  cluster_edit,        // a label of theirs on a ManagedCluster, which must stay
  denial,              // hubAcceptsClient: false where the cluster is, and true again at the end
  copy_deletion,       // the ManagedCluster on the target, while the source has it
  late_copy_deletion,  // the same as soon as the migration is in Cleaning
  object_deletion,     // something that was copied, from the target, as soon as the migration is in Registering
  acceptance,          // on the source again, when the manager is about to delete it there; denied again at the end
  namespace_deletion,  // of the cluster, on the source or the target, while it moves
  kubeconfig_edit,     // of a hub, on the global hub: gone, unreadable, to nowhere, or renewed; as before at the end
  ledger_edit,         // deleted, emptied, made unreadable, or filled with what is not of this migration
  spec_edit,           // of a migration that has begun: what it says now must not matter
  ledger_omission,     // the name of a cluster is taken out of the list of all
  // Never drawn.
  slow_clock,  // of a manager that does not reach its Lease any more: it leads beside its successor
  sabotage,    // bugs of a manager, for the tests of the invariants themselves
};

struct Step {
  Act act = Act::outage;
  Duration at{0};
  Duration lasts{0};
  Side side = Side::manager;
  std::size_t hub = 0;  // 0: the global hub
  std::size_t cluster = 0;
  std::size_t migration = 0;
  std::size_t manager = 0;
  std::size_t detail = 0;  // how often, or which of several: each act takes it modulo what it needs
};

struct MigrationPlan {
  std::size_t from = 1;
  std::size_t to = 2;
  std::vector<std::size_t> clusters;
  bool by_set = false;  // they are a ManagedClusterSet, and a Placement selects them
  Duration at{0};
  std::optional<Duration> stage_timeout = {};
};

/// A world, and what happens in it: drawn from one seed, without I/O, so that it can be printed, shortened and run
/// again.
struct Plan {
  std::uint64_t seed = 0;
  std::size_t hubs = 2;
  bool accounts = true;            // the global hub serves ManagedServiceAccounts
  bool rules = true;               // the global hub evaluates the rules of CRDs (CEL); false: it is older
  bool newest_import = false;      // the import controller of MCE 5.x
  bool upstream_agents = false;    // they register where they have begun to, until somebody restarts them
  std::vector<std::size_t> homes;  // by cluster: its hub
  std::vector<MigrationPlan> migrations;
  std::size_t managers = 1;
  Duration skew{0};  // of the second manager's wall clock
  std::vector<Step> steps;
};

Plan make_plan(std::uint64_t seed);
/// The same with two managers, of which each leads beside the other once, for a minute and more, soon after it has
/// begun.
Plan with_two_leaders(Plan plan);

std::string to_string(const Step& step);
std::string to_string(const Plan& plan);

/// When the last step is over.
Duration end_of(const Plan& plan);

/// By how much Act::clock_jump sets a clock.
Duration jump_of(std::size_t detail);

/// By how much the clock of a hub is wrong: less than what certificates allow for.
Duration hub_skew_of(std::size_t detail);

/// What Act::refusals refuses: "managedclusters/status" all writes, "delete namespaces" those.
std::string refused_write(std::size_t detail);

}  // namespace hubferry::worlds
