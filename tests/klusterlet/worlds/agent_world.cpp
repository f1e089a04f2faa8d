#include <algorithm>
#include <tuple>

#include "hubferry/sim/crds.hpp"
#include "inhabitants.hpp"

// How a world is set up, and how its time passes.
namespace hubferry::klusterlet::worlds {

using async::Awaitable;

namespace {

// Kubernetes collects certificate requests after an hour: here everything is denser.
constexpr auto collection_period = 5min;

}  // namespace

AgentWorld::AgentWorld(Plan plan)
    : plan_(std::move(plan)),
      random_(plan_.seed),
      env_{loop_.clock(), random_, metrics_, obs::Logger{}},
      watched_(plan_.agents),
      scope_(loop_.executor()) {
  std::vector<BootstrapConfig> list;
  for (std::size_t index = 0; index < plan_.hubs; ++index) {
    set_up_hub(index);
    list.push_back(hubs_.back()->bootstrap);
  }
  loop_.run_for(1s);
  for (std::size_t index = 0; index < plan_.agents; ++index) {
    machines_.push_back(std::make_unique<Machine>(index, list, env_));
    scope_.spawn(live(*machines_.back()));
  }
}

AgentWorld::~AgentWorld() {
  scope_.stop();
  loop_.run(scope_.join());
}

void AgentWorld::set_up_hub(std::size_t index) {
  const auto name = "hub" + std::to_string(index + 1);
  auto& hub = *hubs_.emplace_back(std::make_unique<SimulatedHub>(name, env_));
  network_.add(hub.url, hub.server);
  sim::HubOptions options;
  options.name = name;
  obs::Secret fresh;
  auto install = [&]() -> Awaitable<> {
    co_await sim::install_crds(hub.server.api(), env_);
    auto installed = co_await sim::install_hub(hub.server.api(), options);
    if (!installed) throw std::runtime_error(installed.error().describe());
    auto text = co_await sim::make_bootstrap_kubeconfig(hub.server.api(), network_.address_of(hub.server), 365 * 24h);
    hub.bootstrap = {name, text.value(), std::nullopt};
    text = co_await sim::make_bootstrap_kubeconfig(hub.server.api(), network_.address_of(hub.server), 400 * 24h);
    fresh = text.value();
  };
  loop_.run(install());
  // In half of the worlds the hubs send their agents credentials: their own in some, in others fresh ones.
  if (plan_.seed % 2 == 0) options.bootstrap_kubeconfig = plan_.seed % 4 == 0 ? fresh : hub.bootstrap.kubeconfig;
  hub.controllers.emplace(hub.server.api(), options, env_);
  scope_.spawn(hub.controllers->run());
}

/// One process after the other.
Awaitable<> AgentWorld::live(Machine& machine) {
  const kube::Env env{machine.clock, machine.random, metrics_, obs::Logger{}};
  while (true) {
    AgentOptions options;
    options.cluster_name = cluster_name(machine.index);
    options.agent_name = "agent";
    options.connection_timeout = connection_timeout;
    options.record_events = false;
    const Connect connect = [this](const kube::ClientConfig& config) { return network_.connect(config); };
    Agent agent{options, machine.store, connect, env};
    machine.started = env_.clock.now();
    machine.process = &agent;
    auto process = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(agent.run());
      co_await machine.kill.wait();
      scope.stop();
    };
    co_await async::with_scope(process);
    machine.process = nullptr;
    co_await machine.revive.wait();
  }
}

std::string AgentWorld::run() {
  struct Moment {
    Duration at;
    bool begins;
    const Step* step;
  };
  std::vector<Moment> moments;
  for (const auto& step : plan_.steps) {
    moments.push_back({step.at, true, &step});
    if (step.lasts > 0s) moments.push_back({step.at + step.lasts, false, &step});
  }
  std::ranges::sort(moments, {},
                    [](const Moment& moment) { return std::tuple{moment.at, moment.step, moment.begins}; });
  // All are joined before anything happens: how they come there has its own tests.
  loop_.run_for(1min);
  see_heartbeats();
  for (std::size_t agent = 0; agent < plan_.agents; ++agent)
    if (!watched_[agent].hub) violation(agent, Invariant::fed, "has not joined any hub, with all of them well");
  const auto start = loop_.clock().now();
  const auto last = moments.empty() ? plan_.busy : std::max(plan_.busy, moments.back().at);
  const auto over = start + last + stated_time(plan_.hubs) + 2min;
  std::size_t next = 0;
  auto collected = start;
  while (loop_.clock().now() < over) {
    const auto until = loop_.clock().now() + tick;
    while (next < moments.size() && start + moments[next].at <= until) {
      loop_.run_until(start + moments[next].at);
      const auto& moment = moments[next++];
      if (moment.begins)
        begin(*moment.step);
      else
        end(*moment.step);
      note_flaws();
    }
    loop_.run_until(until);
    if (until - collected >= collection_period) {
      collect_requests();
      collected = until;
    }
    check();
  }
  return violations_;
}

/// What Kubernetes does with old certificate requests.
void AgentWorld::collect_requests() {
  auto collect = [](SimulatedHub& hub) -> Awaitable<> {
    for (const auto& request : hub.server.objects(kube::resources::certificate_signing_requests))
      co_await hub.server.api().remove(kube::resources::certificate_signing_requests, request.key());
  };
  for (auto& hub : hubs_)
    if (hub->outages == 0 && hub->faults.empty()) scope_.spawn(collect(*hub));
}

}  // namespace hubferry::klusterlet::worlds
