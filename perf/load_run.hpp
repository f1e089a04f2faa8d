#pragma once

#include <map>
#include <string>
#include <vector>

#include "load_processes.hpp"

namespace hubferry::perf {

/// How many clusters are in which phase, at a time in seconds since the migrations were created.
struct Sample {
  double at = 0;
  std::map<std::string, int> clusters;  // by the phase of their migration
};

struct LoadResult {
  double seconds = 0;
  std::vector<Sample> samples;
  std::map<std::string, int> phases;  // migrations at the end
  std::string first_failure;          // of a migration that did not complete
  std::size_t largest_status = 0;     // bytes of JSON
  double status_writes = 0;
  ProcessFigures manager;  // CPU since the migrations were created
  ProcessFigures simulator;
  double manager_at_rest = 0;  // resident bytes before
  RequestTable source, targets, global;
  double watch_events = 0;
  std::map<int, double> ended_at;  // by the number of a migration: seconds
  double ready_after = 0;          // of --restart: seconds from the kill to the successor's readiness,
  double moving_after = 0;         // and until it had written to every migration that had not ended
  Scrape metrics;
};

/// Creates the migrations and waits until all have ended; shows how far they are.
async::Awaitable<LoadResult> run_migrations(const LoadOptions& options, Simulator& simulator, Manager& manager,
                                            LoadEnv& env);

/// Every cluster is Available on its target with the content that it had, and nothing of it is on the source. What is
/// wrong, up to ten lines; empty: nothing.
async::Awaitable<std::vector<std::string>> verify_clusters(const LoadOptions& options, Simulator& simulator,
                                                           LoadEnv& env);

/// True for an object that a migration must bring to the target.
bool moves(const sim::FleetObject& object);

struct FloorResult {
  double seconds = 0;
  double writes = 0;
  double client_cpu = 0;
  double simulator_cpu = 0;
};

/// The least that migrations of these clusters have to write, without reading or waiting for anything: as many clusters
/// at once as the manager processes, each write after the one before.
async::Awaitable<FloorResult> run_floor(const LoadOptions& options, Simulator& simulator, LoadEnv& env);

/// Clusters by phase over time, as SVG.
void write_plot(const std::string& file, const LoadOptions& options, const std::vector<Sample>& samples);

}  // namespace hubferry::perf
