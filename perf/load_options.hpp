#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hubferry/sim/fleet.hpp"

namespace hubferry::perf {

/// What `perf_load` runs; see usage in load_options.cpp.
struct LoadOptions {
  std::string profile = "ci";
  int hubs = 4;  // the first has all clusters, they move to the others
  int clusters = 500;
  int migrations = 10;
  std::string fleet = "small";
  int secrets = 0;
  int latency_ms = 0;
  double errors = 0;  // share of requests that are answered with 500
  double slow = 0;    // share of requests that take 200 ms longer
  double cut_watches = 0;
  int slow_hub_ms = 0;      // latency of the last hub
  double refusing_hub = 0;  // share of requests that the last hub but one answers with 429
  bool restart = false;
  std::uint64_t seed = 1;
  int in_flight = 50;  // clusters of one hub, of the manager and of the floor
  int timeout_seconds = 900;
  bool floor = true;
  std::string hubferry = "build/hubferry";
  std::string json_file;
  std::string svg_file = "perf/results/load.svg";
  std::string directory;  // of kubeconfigs and logs; empty: a temporary one, deleted at the end

  [[nodiscard]] std::string hub(int number) const { return "hub" + std::to_string(number); }
  /// The hub to which a migration, and so its clusters, move.
  [[nodiscard]] std::string target_of(int migration) const { return hub(2 + migration % (hubs - 1)); }
  [[nodiscard]] int migration_of(int cluster) const { return cluster % migrations; }
  /// The clusters as the simulator makes them.
  [[nodiscard]] sim::FleetPlan plan() const;
  /// The simulator's faults file; empty: none.
  [[nodiscard]] std::string faults() const;
};

/// Exits with the usage for --help, and with a message for what it does not understand.
LoadOptions parse_load_options(int argc, char** argv);

}  // namespace hubferry::perf
