/// The load test of migrations: see load_options.cpp for its usage, README.md for what its figures mean.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "hubferry/migration/phases.hpp"
#include "load_run.hpp"
#include "report.hpp"
#include "support/real_loop.hpp"

namespace hubferry::perf {

namespace {

namespace json = boost::json;

void print_requests(Report& report, const char* where, const RequestTable& requests, double clusters) {
  std::vector<std::pair<std::string, double>> sorted(requests.begin(), requests.end());
  std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::printf("\n  %.2f requests per cluster on the %s\n", total(requests) / clusters, where);
  json::object all;
  for (const auto& [request, count] : sorted) {
    if (count / clusters >= 0.01) std::printf("  %8.2f  %s\n", count / clusters, request.c_str());
    all[request] = count / clusters;
  }
  report.add(std::string{"requestsPerClusterOn"} + where, std::move(all));
}

void print_phases(Report& report, const Scrape& metrics) {
  const std::string name = "hubferry_migration_phase_duration_seconds";
  for (const auto& phase : migration::phase_table) {
    const double count = metrics.sum(name + "_count", "phase", phase.name);
    if (count > 0)
      report.line(std::string{phase.name} + ", mean of a migration",
                  metrics.sum(name + "_sum", "phase", phase.name) / count, "s");
  }
}

/// Whether a hub that is slow, or refuses requests, slows down the migrations to others.
void print_hubs(Report& report, const LoadOptions& options, const LoadResult& result) {
  if (options.slow_hub_ms == 0 && options.refusing_hub == 0) return;
  std::map<std::string, std::pair<double, int>> ends;
  for (const auto& [migration, at] : result.ended_at) {
    const auto target = options.target_of(migration);
    const bool slow = options.slow_hub_ms > 0 && target == options.hub(options.hubs);
    const bool refusing = options.refusing_hub > 0 && target == options.hub(options.hubs - 1);
    auto& [sum, count] = ends[slow ? "the slow hub" : refusing ? "the hub that refuses requests" : "the other hubs"];
    sum += at;
    ++count;
  }
  for (const auto& [hubs, end] : ends)
    report.line("end of the migrations to " + hubs + ", mean", end.first / end.second, "s");
}

void print_result(Report& report, const LoadOptions& options, const LoadResult& result) {
  const double clusters = options.clusters;
  const bool small = options.fleet == "small" && options.secrets == 0;
  report.line("wall time", result.seconds, "s");
  report.line("clusters per second", clusters / result.seconds, "1/s", "at least 100");
  print_phases(report, result.metrics);
  const char* cut_over = "hubferry_migration_cluster_cut_over_seconds";
  report.line("cut-over of a cluster, p50", result.metrics.quantile(cut_over, 0.5), "s", "under 1");
  report.line("cut-over of a cluster, p99", result.metrics.quantile(cut_over, 0.99), "s", "under 3");
  report.line("manager: CPU per cluster", 1e3 * result.manager.cpu_seconds / clusters, "ms", "at most 3");
  report.line("manager: most memory", result.manager.peak_resident / 1048576, "MiB", "under 100");
  report.line("manager: more than at rest, per cluster",
              (result.manager.peak_resident - result.manager_at_rest) / 1024 / clusters, "KiB");
  report.line("simulator: CPU per cluster", 1e3 * result.simulator.cpu_seconds / clusters, "ms", "at most 10");
  report.line("simulator: most memory", result.simulator.peak_resident / 1048576, "MiB");
  report.line("requests per cluster", (total(result.source) + total(result.targets) + total(result.global)) / clusters,
              "", small ? "at most 15" : "");
  report.line("  on the source", total(result.source) / clusters, "");
  report.line("  on the target", total(result.targets) / clusters, "");
  report.line("  on the global hub", total(result.global) / clusters, "");
  report.line("watch events per cluster", result.watch_events / clusters, "");
  report.line("largest status", static_cast<double>(result.largest_status) / 1024, "KiB", "under 100");
  report.line("status writes of a migration", result.status_writes / options.migrations, "", "under 100");
  print_hubs(report, options, result);
  if (options.restart) {
    report.line("restart: ready after", result.ready_after, "s");
    report.line("restart: every migration written after", result.moving_after, "s", "under 1");
  }
  print_requests(report, "Source", result.source, clusters);
  print_requests(report, "Target", result.targets, clusters);
  print_requests(report, "Global", result.global, clusters);
  std::printf("\n");
}

void add_run(Report& report, const LoadOptions& options, const LoadResult& result) {
  json::array samples;
  for (const auto& sample : result.samples) {
    json::object clusters;
    for (const auto& [phase, count] : sample.clusters) clusters[phase] = count;
    samples.push_back(json::object{{"at", sample.at}, {"clusters", std::move(clusters)}});
  }
  report.add("samples", std::move(samples));
  report.add("parameters", json::object{{"profile", options.profile},
                                        {"hubs", options.hubs},
                                        {"clusters", options.clusters},
                                        {"migrations", options.migrations},
                                        {"fleet", options.fleet},
                                        {"secrets", options.secrets},
                                        {"latencyMilliseconds", options.latency_ms},
                                        {"errors", options.errors},
                                        {"slow", options.slow},
                                        {"cutWatches", options.cut_watches},
                                        {"seed", options.seed},
                                        {"inFlight", options.in_flight}});
}

/// True if all clusters have moved.
bool measure(const LoadOptions& options, const std::filesystem::path& directory, Report& report, double& seconds) {
  LoadEnv env;
  test::RealLoop loop;
  Simulator simulator{options, directory / "load", true, env};
  Manager manager{options, directory / "load", simulator, env};
  const auto result = loop.run(run_migrations(options, simulator, manager, env));
  seconds = result.seconds;
  print_result(report, options, result);
  add_run(report, options, result);
  if (!options.svg_file.empty()) write_plot(options.svg_file, options, result.samples);
  const auto completed = result.phases.find(migration::phases::completed);
  const bool all = completed != result.phases.end() && completed->second == options.migrations;
  if (!all) {
    for (const auto& [phase, count] : result.phases) std::printf("%d migrations are %s\n", count, phase.c_str());
    std::printf("%s\n", result.first_failure.c_str());
  }
  std::printf("looking at every cluster\n");
  const auto wrong = loop.run(verify_clusters(options, simulator, env));
  for (const auto& line : wrong) std::printf("WRONG: %s\n", line.c_str());
  if (all && wrong.empty())
    std::printf("all %d clusters are on their targets, as they were, and nothing of them on the source\n",
                options.clusters);
  report.add("verified", all && wrong.empty());
  return all && wrong.empty();
}

void measure_floor(const LoadOptions& options, const std::filesystem::path& directory, Report& report, double seconds) {
  LoadEnv env;
  test::RealLoop loop;
  // Agents that lose their hub without another one would be in the way of the writes that are measured.
  Simulator simulator{options, directory / "floor", false, env};
  const auto floor = loop.run(run_floor(options, simulator, env));
  report.line("floor: wall time", floor.seconds, "s");
  report.line("floor: writes per cluster", floor.writes / options.clusters, "");
  report.line("floor: CPU of the client per cluster", 1e3 * floor.client_cpu / options.clusters, "ms");
  report.line("floor: CPU of the simulator per cluster", 1e3 * floor.simulator_cpu / options.clusters, "ms");
  report.line("wall time, as a multiple of the floor's", seconds / floor.seconds, "", "at most 1.5");
}

int run(int argc, char** argv) {
  const auto options = parse_load_options(argc, argv);
  const bool temporary = options.directory.empty();
  const auto directory = temporary
                             ? std::filesystem::temp_directory_path() / ("hubferry-load-" + std::to_string(getpid()))
                             : std::filesystem::path{options.directory};
  struct Cleanup {
    const std::filesystem::path& directory;
    bool wanted;
    ~Cleanup() {
      std::error_code ignored;
      if (wanted) std::filesystem::remove_all(directory, ignored);
    }
  } const cleanup{directory, temporary};
  Report report{"load, profile " + options.profile, argc, argv};
  double seconds = 0;
  const bool moved = measure(options, directory, report, seconds);
  // With latency or faults it would say little.
  const bool clean = options.errors == 0 && options.slow == 0 && options.slow_hub_ms == 0 &&
                     options.refusing_hub == 0 && !options.restart;
  if (options.floor && clean) measure_floor(options, directory, report, seconds);
  return moved ? 0 : 1;
}

}  // namespace

}  // namespace hubferry::perf

int main(int argc, char** argv) {
  try {
    return hubferry::perf::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "load: " << error.what() << "\n";
    return 1;
  }
}
