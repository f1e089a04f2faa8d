// A hub falls for ever and all of its agents go to the other one: what that hub is asked, and what an agent costs. On
// virtual time: the figures are those of an undisturbed machine, however busy this one is. `--faults 1`: the other hub
// answers a tenth of all requests with 429 or 500 meanwhile.
#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/fleet_agents.hpp"
#include "hubferry/sim/hub_controllers.hpp"
#include "report.hpp"

namespace {

using namespace hubferry;
using namespace std::chrono_literals;
using async::Awaitable;

std::string cluster_name(int number) {
  return "cluster-" + std::to_string(number);
}

/// A hub that accepts everybody.
struct Hub {
  Hub(std::string hub_name, bool record, sim::Network& network, kube::Env env, async::VirtualLoop& loop)
      : url("https://" + hub_name + ".example:6443"), server(server_options(hub_name, record), env) {
    network.add(url, server);
    sim::HubOptions options;
    options.name = hub_name;
    options.auto_approval = true;
    loop.run(set_up(network, options, env));
    options.bootstrap_kubeconfig = bootstrap.kubeconfig;
    controllers.emplace(server.api(), options, env);
  }

  static sim::Options server_options(const std::string& name, bool record) {
    sim::Options options;
    options.name = name;
    options.record_requests = record;
    options.history = 500;
    // As a hub that has work to do.
    options.latency = sim::Latency::exponential(5ms, 50ms);
    return options;
  }

  Awaitable<> set_up(sim::Network& network, sim::HubOptions options, kube::Env env) {
    co_await sim::install_crds(server.api(), env);
    auto installed = co_await sim::install_hub(server.api(), options);
    installed.value();
    auto text = co_await sim::make_bootstrap_kubeconfig(server.api(), network.address_of(server), 365 * 24h);
    bootstrap = {options.name, text.value(), std::nullopt};
  }

  Awaitable<> add_clusters(int count) {
    for (int number = 0; number < count; ++number) {
      kube::json::object cluster{{"metadata", kube::json::object{{"name", cluster_name(number)}}},
                                 {"spec", kube::json::object{{"hubAcceptsClient", true}}}};
      auto created = co_await server.api().create(ocm::managed_clusters, std::move(cluster));
      created.value();
    }
  }

  std::string url;
  sim::Server server;
  klusterlet::BootstrapConfig bootstrap;
  std::optional<sim::HubControllers> controllers;
};

/// Requests of agents; the hub's own controllers are not what is measured.
std::size_t take_agents_requests(sim::Server& server) {
  const auto of_agents = std::ranges::count_if(
      server.requests(), [](const sim::RequestRecord& record) { return record.user != sim::admin().name; });
  server.forget_requests();
  return static_cast<std::size_t>(of_agents);
}

void print_curve(const std::vector<std::size_t>& per_second, std::size_t peak) {
  constexpr std::size_t step = 10;
  constexpr std::size_t width = 60;
  std::printf("  requests of agents at hub2, by seconds since hub1 fell (the most in one second of ten)\n");
  for (std::size_t from = 0; from < per_second.size(); from += step) {
    std::size_t most = 0;
    for (std::size_t at = from; at < std::min(from + step, per_second.size()); ++at)
      most = std::max(most, per_second[at]);
    if (most == 0) continue;
    std::printf("  %5zu s %7zu %s\n", from, most,
                std::string(std::max<std::size_t>(1, most * width / peak), '#').c_str());
  }
}

int number_from(int argc, char** argv, std::string_view flag, int standard) {
  for (int at = 1; at + 1 < argc; ++at)
    if (argv[at] == flag) return std::atoi(argv[at + 1]);
  return standard;
}

// The least that the API allows.
constexpr auto connection_timeout = 180s;

}  // namespace

int main(int argc, char** argv) {
  const int agents = number_from(argc, argv, "--agents", 5'000);
  const bool faults = number_from(argc, argv, "--faults", 0) != 0;
  perf::Report report{"fleet", argc, argv};
  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  const kube::Env env{loop.clock(), random, metrics, obs::Logger{}};
  sim::Network network;
  Hub hub1{"hub1", false, network, env, loop};
  Hub hub2{"hub2", true, network, env, loop};
  async::TaskScope scope{loop.executor()};
  for (auto* hub : {&hub1, &hub2}) scope.spawn(hub->controllers->run());
  for (auto* hub : {&hub1, &hub2}) {
    loop.run(hub->add_clusters(agents));
    loop.run(hub->controllers->wait_settled());
  }

  const auto memory_before = perf::allocated_bytes();
  sim::FleetOptions options;
  options.upstream = false;  // the agents measured are our own
  options.start_spread = 60s;
  options.connection_timeout = connection_timeout;
  sim::FleetAgents fleet{network, options, env};
  perf::Stopwatch start_watch;
  const auto bootstrap = hub1.bootstrap.parse();
  for (int number = 0; number < agents; ++number) {
    const auto name = cluster_name(number);
    fleet.add({name, {hub1.bootstrap, hub2.bootstrap}, sim::issue_hub_secret(network, hub1.server, name, bootstrap)});
  }
  scope.spawn(fleet.run());
  loop.run_for(2min);
  const auto at_hub1 = fleet.available_at(hub1.url);
  report.line("agents available on hub1", static_cast<double>(at_hub1), "", "all");
  report.line("CPU to start and join, per agent", start_watch.cpu() / agents * 1e3, "ms");
  report.line("memory of an agent that waits", (perf::allocated_bytes() - memory_before) / agents / 1024, "KiB",
              "under 64 KiB");

  perf::Stopwatch idle_watch;
  loop.run_for(10min);
  report.line("CPU of an agent at rest, per virtual hour", idle_watch.cpu() / agents * 6 * 1e3, "ms");

  hub1.server.outage(true);
  take_agents_requests(hub2.server);
  if (faults)
    for (const auto* verb : {"read", "write"}) {
      hub2.server.faults().on({verb}).rate(0.05).fail(429, 1);
      hub2.server.faults().on({verb}).rate(0.05).fail(500);
    }
  perf::Stopwatch switch_watch;
  std::vector<std::size_t> per_second;
  std::size_t first_at = 0;
  std::size_t half_at = 0;
  std::size_t all_requests = 0;
  while (fleet.available_at(hub2.url) < static_cast<std::size_t>(agents) && per_second.size() < 7200) {
    loop.run_for(1s);
    per_second.push_back(take_agents_requests(hub2.server));
    all_requests += per_second.back();
    if (first_at == 0 && fleet.available_at(hub2.url) > 0) first_at = per_second.size();
    if (half_at == 0 && fleet.available_at(hub2.url) >= static_cast<std::size_t>(agents) / 2)
      half_at = per_second.size();
  }
  const auto peak = *std::ranges::max_element(per_second);
  print_curve(per_second, std::max<std::size_t>(1, peak));
  report.line("agents available on hub2", static_cast<double>(fleet.available_at(hub2.url)), "", "all");
  report.line("first of them available after", static_cast<double>(first_at), "s (virtual)");
  report.line("half of them available after", static_cast<double>(half_at), "s (virtual)");
  report.line("all of them available after", static_cast<double>(per_second.size()), "s (virtual)");
  report.line("that is after the connection timeout",
              static_cast<double>(per_second.size()) - std::chrono::duration<double>(connection_timeout).count(),
              "s (virtual)", "at most 60 s");
  report.line("most requests at hub2 in one second", static_cast<double>(peak), "/s", "at most 500");
  report.line("requests of a switch, per agent", static_cast<double>(all_requests) / agents, "");
  report.line("CPU of a switch, hubs included, per agent", switch_watch.cpu() / agents * 1e3, "ms");

  scope.stop();
  loop.run(scope.join());
  return 0;
}
