#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hubferry/async/types.hpp"

namespace hubferry::klusterlet::worlds {

using async::Duration;

/// What happens in a world: a fault, or an administrator's act. Most begin and end.
enum class Act {
  outage,          // the hub is unreachable
  fault,           // `detail`: which requests of the hub fail, and how
  revoke,          // the bootstrap credential loses its rights on the hub
  forget,          // the hub loses all ManagedClusters, as if restored from a backup
  cut_watches,     // once, all of the hub
  compact,         // once, the hub's history
  deny,            // hubAcceptsClient of one cluster: false, and true again at the end
  delete_cluster,  // once, the ManagedCluster on one hub
  delete_lease,    // once
  lease_duration,  // the hub asks for another interval of heartbeats
  kill,            // the agent's process, which starts again at the end
  clock,           // the agent's wall clock is set, for good
  reorder,         // once: the agent's list of hubs is reversed
  remove_hub,      // a hub is removed from the list, and back at the end
  break_list,      // one entry of the list is unparsable
  fresh_token,     // once: another credential for the same hubs
  full_disk,       // nothing can be saved
  dead_disk,       // nothing can be saved or read
  stop,            // the agent's process is stopped, as by SIGSTOP, and continues at the end
  freeze,          // the agent stops, and should not have: never drawn, for the test of the harness itself
};

struct Step {
  Act act = Act::outage;
  Duration at{0};
  Duration lasts{0};
  std::size_t hub = 0;
  std::size_t agent = 0;
  std::size_t detail = 0;
  std::int64_t number = 0;
};

/// A world and what happens in it, all drawn from one seed. Without I/O, so that a plan can be printed, shortened and
/// run again.
struct Plan {
  std::uint64_t seed = 0;
  std::size_t hubs = 2;
  std::size_t agents = 1;
  Duration busy{0};  // the time in which things happen; afterwards the world is left alone
  std::vector<Step> steps;
};

Plan make_plan(std::uint64_t seed);

std::string to_string(const Step& step);
std::string to_string(const Plan& plan);

/// The faults of a hub that Step::detail selects.
inline constexpr std::size_t fault_kinds = 12;
inline constexpr std::size_t lost_events = 11;
const char* fault_name(std::size_t detail);
/// True if a hub with this fault may well be unable to take a cluster.
bool is_severe(std::size_t detail);

}  // namespace hubferry::klusterlet::worlds
