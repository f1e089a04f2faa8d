#include "load_run.hpp"

#include <boost/json/serialize.hpp>
#include <cstdio>

#include "hubferry/migration/phases.hpp"
#include "hubferry/migration/resource.hpp"
#include "report.hpp"

namespace hubferry::perf {

namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr const char* migrations_namespace = "default";

async::Awaitable<> create_migrations(const LoadOptions& options, kube::Api& global) {
  const auto names = sim::fleet_names(options.plan());
  for (int i = 0; i < options.migrations; ++i) {
    json::array clusters;
    for (int cluster = 0; cluster < options.clusters; ++cluster)
      if (options.migration_of(cluster) == i) clusters.emplace_back(names[static_cast<std::size_t>(cluster)]);
    json::object migration{
        {"metadata", json::object{{"name", "load-" + std::to_string(i)}, {"namespace", migrations_namespace}}},
        {"spec", json::object{{"from", options.hub(1)},
                              {"to", options.target_of(i)},
                              {"includedManagedClusters", std::move(clusters)}}}};
    auto created = co_await global.create(migration::managed_cluster_migrations, std::move(migration));
    if (!created) throw std::runtime_error("cannot create a migration: " + created.error().describe());
  }
}

int number_of(const kube::Object& migration) {
  return std::stoi(std::string{migration.name().substr(migration.name().find('-') + 1)});
}

/// All clusters are claimed, and most of them are on their way.
bool all_in_flight(const LoadOptions& options, const Sample& sample) {
  int waiting = 0;
  for (const auto* phase : {migration::phases::pending, migration::phases::validating, migration::phases::initializing,
                            migration::phases::completed})
    if (const auto found = sample.clusters.find(phase); found != sample.clusters.end()) waiting += found->second;
  return waiting < options.clusters / 2;
}

/// Kills the manager; returns when its successor has written to every migration that has not ended.
async::Awaitable<> replace_manager(kube::Api& global, Manager& manager, LoadEnv& env, LoadResult& result) {
  const kube::ListOptions all;
  std::map<std::string, std::string> versions;
  manager.kill();
  const Stopwatch watch;
  while (versions.empty()) {
    auto found = co_await global.list_all(migration::managed_cluster_migrations, all);
    if (!found) continue;
    for (const auto& one : *found)
      if (!migration::is_terminal(one.string_at({"status", "phase"})))
        versions.emplace(one.name(), one.resource_version());
    if (versions.empty()) co_return;
  }
  const auto in_flight = versions.size();
  manager.replace();
  co_await manager.wait_ready();
  result.ready_after = watch.seconds();
  while (!versions.empty()) {
    auto found = co_await global.list_all(migration::managed_cluster_migrations, all);
    if (found)
      for (const auto& one : *found)
        if (const auto old = versions.find(std::string{one.name()});
            old != versions.end() && old->second != one.resource_version())
          versions.erase(old);
    if (!versions.empty()) co_await env.clock.sleep_for(20ms);
  }
  result.moving_after = watch.seconds();
  std::printf(
      "\nmanager killed with %zu migrations in flight: its successor was ready after %.2f s, and had written to "
      "all of them after %.2f s\n",
      in_flight, result.ready_after, result.moving_after);
}

/// Looks at all migrations; true if all have ended.
async::Awaitable<bool> look(const LoadOptions& options, kube::Api& global, double at, LoadResult& result) {
  const kube::ListOptions all;
  auto found = co_await global.list_all(migration::managed_cluster_migrations, all);
  // With faults, the next look may succeed.
  if (!found) co_return false;
  Sample sample;
  sample.at = at;
  result.phases.clear();
  result.first_failure.clear();
  bool ended = static_cast<int>(found->size()) == options.migrations;
  for (const auto& one : *found) {
    std::string phase{one.string_at({"status", "phase"})};
    if (phase.empty()) phase = migration::phases::pending;
    const auto* clusters = one.find({"spec", "includedManagedClusters"});
    sample.clusters[phase] += static_cast<int>(clusters->as_array().size());
    ++result.phases[phase];
    ended = ended && migration::is_terminal(phase);
    if (migration::is_terminal(phase)) result.ended_at.try_emplace(number_of(one), at);
    if (const auto* status = one.find({"status"}))
      result.largest_status = std::max(result.largest_status, json::serialize(*status).size());
    if (phase == migration::phases::failed && result.first_failure.empty())
      result.first_failure = std::string{one.name()} + ": " + json::serialize(*one.find({"status", "conditions"}));
  }
  result.samples.push_back(std::move(sample));
  co_return ended;
}

void show(const LoadOptions& options, const Sample& sample, double seconds) {
  std::string text;
  for (const auto& [phase, clusters] : sample.clusters) text += " " + phase + " " + std::to_string(clusters);
  std::printf("\r\x1b[K%.0f s of at most %d:%s", seconds, options.timeout_seconds, text.c_str());
  std::fflush(stdout);
}

void subtract_cpu(ProcessFigures& after, const ProcessFigures& before) {
  after.cpu_seconds -= before.cpu_seconds;
}

}  // namespace

async::Awaitable<LoadResult> run_migrations(const LoadOptions& options, Simulator& simulator, Manager& manager,
                                            LoadEnv& env) {
  LoadResult result;
  co_await manager.wait_ready();
  const auto counts_before = co_await simulator.scrape();
  auto manager_before = figures_of(manager.pid());
  const auto simulator_before = figures_of(simulator.pid());
  result.manager_at_rest = manager_before.resident;

  const Stopwatch watch;
  auto& global = simulator.api("global");
  co_await create_migrations(options, global);
  while (true) {
    const bool ended = co_await look(options, global, watch.seconds(), result);
    if (!result.samples.empty()) show(options, result.samples.back(), watch.seconds());
    if (ended) break;
    if (options.restart && result.moving_after == 0 && !result.samples.empty() &&
        all_in_flight(options, result.samples.back())) {
      co_await replace_manager(global, manager, env, result);
      manager_before.cpu_seconds = 0;
    }
    if (!manager.running()) throw std::runtime_error("hubferry manager ended: see its log with --directory DIR");
    if (watch.seconds() > options.timeout_seconds) break;
    co_await env.clock.sleep_for(500ms);
  }
  result.seconds = watch.seconds();
  std::printf("\n");

  result.manager = figures_of(manager.pid());
  subtract_cpu(result.manager, manager_before);
  result.simulator = figures_of(simulator.pid());
  subtract_cpu(result.simulator, simulator_before);
  const auto counts = co_await simulator.scrape();
  for (const auto& [server, scrape] : counts) {
    const auto& before = counts_before.at(server);
    add_requests(server == options.hub(1) ? result.source
                 : server == "global"     ? result.global
                                          : result.targets,
                 before, scrape);
    result.watch_events += scrape.sum("apiserver_watch_events_total") - before.sum("apiserver_watch_events_total");
  }
  // What this program itself has sent to the global hub.
  result.global.erase("LIST managedclustermigrations");
  result.global.erase("POST managedclustermigrations");
  for (const auto& [request, count] : result.global)
    if (request.ends_with("managedclustermigrations/status")) result.status_writes += count;
  result.metrics = co_await manager.scrape();
  co_return result;
}

}  // namespace hubferry::perf
