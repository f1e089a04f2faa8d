#include "agent_world.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <tuple>

#include "hubferry/async/event.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/crds.hpp"

namespace hubferry::klusterlet::worlds {

using async::Awaitable;
using kube::json::object;

namespace {

constexpr auto tick = 5s;
// Kubernetes collects certificate requests after an hour: here everything is denser.
constexpr auto collection_period = 5min;

std::string cluster_name(std::size_t agent) {
  return "cluster" + std::to_string(agent);
}

}  // namespace

/// The wall clock of one machine.
class MachineClock final : public async::Clock {
 public:
  explicit MachineClock(async::Clock& inner) : inner_(inner) {}
  [[nodiscard]] async::TimePoint now() const override { return inner_.now(); }
  [[nodiscard]] async::WallTime wall_now() const override { return inner_.wall_now() + skew_; }
  Awaitable<> sleep_until(async::TimePoint when) override { return inner_.sleep_until(when); }
  void set(Duration skew) { skew_ = skew; }

 private:
  async::Clock& inner_;
  Duration skew_{0};
};

struct Machine {
  Machine(std::size_t which, std::vector<BootstrapConfig> list, const kube::Env& env)
      : index(which), configured(list), store(std::move(list)), clock(env.clock), random(env.random.fork()) {}

  std::size_t index;
  std::vector<BootstrapConfig> configured;  // as the administrator wants it
  std::map<std::size_t, int> removed;       // hubs that are out of the list, by how many steps
  std::map<std::size_t, int> broken;        // entries that are unparsable
  int full = 0;
  int dead = 0;
  int killed = 0;
  async::TimePoint started{};
  test::FlakyStore store;
  MachineClock clock;
  async::Random random;
  async::Event kill;
  async::Event revive;
};

struct SimulatedHub {
  SimulatedHub(const std::string& name, const kube::Env& env)
      : server(
            [&] {
              sim::Options options;
              options.name = name;
              // Nothing here depends on them, and they are most of what an idle world does.
              options.bookmark_interval = 1h;
              return options;
            }(),
            env),
        url("https://" + name + ".example:6443") {}

  /// All faults at once: they are told apart by how many steps want them.
  void apply_faults();

  sim::Server server;
  std::string url;
  BootstrapConfig bootstrap;
  std::optional<sim::HubControllers> controllers;
  int outages = 0;
  int revocations = 0;
  std::map<std::size_t, int> faults;
  std::map<std::size_t, int> denials;  // by agent
  std::vector<kube::Object> bindings;  // of the bootstrap account, while they are revoked
};

void SimulatedHub::apply_faults() {
  auto& script = server.faults();
  script.clear();
  for (const auto& [detail, count] : faults) {
    if (count == 0) continue;
    switch (detail) {
      case 0:
        script.on({"write"}).rate(0.2).fail(500);
        break;
      case 1:
        script.on({}).rate(0.8).fail(500);
        break;
      case 2:
        script.on({"update"}).rate(0.3).fail(409);
        break;
      case 3:
        script.on({}).rate(0.3).fail(429, 5);
        break;
      case 4:
        script.on({}).rate(0.2).reset_before();
        break;
      case 5:
        script.on({"write"}).rate(0.2).reset_after();
        break;
      case 6:
        script.on({}).always().delay(sim::Latency::uniform(0s, 2s));
        break;
      case 7:
        script.on({}).always().delay(sim::Latency::fixed(12s));
        break;
      case 8:
        script.on({}).rate(0.5).delay(sim::Latency::fixed(24h));
        break;
      default:
        script.on({"watch"}).rate(0.1).cut_watch();
        script.on({"watch"}).rate(0.5).delay_event(sim::Latency::uniform(0s, 20s));
        break;
    }
  }
  script.outage(outages > 0);
}

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
  auto install = [&]() -> Awaitable<> {
    co_await sim::install_crds(hub.server.api(), env_);
    auto installed = co_await sim::install_hub(hub.server.api(), options);
    if (!installed) throw std::runtime_error(installed.error().describe());
    auto text = co_await sim::make_bootstrap_kubeconfig(hub.server.api(), network_.address_of(hub.server), 365 * 24h);
    hub.bootstrap = {name, text.value(), std::nullopt};
  };
  loop_.run(install());
  // In half of the worlds the hubs send their agents fresh credentials.
  if (plan_.seed % 2 == 0) options.bootstrap_kubeconfig = hub.bootstrap.kubeconfig;
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
    auto process = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(agent.run());
      co_await machine.kill.wait();
      scope.stop();
    };
    co_await async::with_scope(process);
    co_await machine.revive.wait();
  }
}

void AgentWorld::edit_list(std::size_t agent) {
  auto& machine = *machines_[agent];
  std::vector<BootstrapConfig> list;
  for (auto entry : machine.configured) {
    const auto hub = static_cast<std::size_t>(
        std::ranges::find(hubs_, entry.name, [](const auto& candidate) { return candidate->server.name(); }) -
        hubs_.begin());
    if (machine.removed[hub] > 0) continue;
    if (machine.broken[hub] > 0) entry.kubeconfig = obs::Secret{"{ no yaml"};
    list.push_back(std::move(entry));
  }
  machine.store.set_bootstraps(std::move(list));
}

Awaitable<> AgentWorld::administrate(std::size_t index, Step step, bool begins) {
  // Around the faults, as with direct access: what an administrator does is done.
  auto& api = hubs_[index]->server.api();
  const kube::Key key{{}, cluster_name(step.agent)};
  // Faults concern this client too, so repeat: what an administrator wants he gets in the end.
  for (int attempt = 0; attempt < 60; ++attempt) {
    kube::Result<kube::Object> done = kube::Object{};
    if (step.act == Act::deny) {
      const bool accepts = hubs_[index]->denials[step.agent] == 0;
      done = co_await api.merge_patch(ocm::managed_clusters, key, {{"spec", object{{"hubAcceptsClient", accepts}}}});
    } else if (step.act == Act::lease_duration) {
      done = co_await api.merge_patch(ocm::managed_clusters, key,
                                      {{"spec", object{{"leaseDurationSeconds", step.number}}}});
    } else if (step.act == Act::delete_cluster) {
      done = co_await api.remove(ocm::managed_clusters, key);
    } else if (step.act == Act::delete_lease) {
      done = co_await api.remove(kube::resources::leases, ocm::lease_key(key.name));
    } else if (step.act == Act::revoke) {
      // All bindings of the account, and all of them back.
      auto& saved = hubs_[index]->bindings;
      if (begins && saved.empty())
        for (const auto& binding : hubs_[index]->server.objects(kube::resources::cluster_role_bindings))
          if (boost::json::serialize(binding.json()).find(sim::hub_names::bootstrap_account) != std::string::npos)
            saved.push_back(binding);
      for (const auto& binding : saved) {
        if (begins) {
          done = co_await api.remove(kube::resources::cluster_role_bindings, binding.key());
        } else {
          auto body = binding.json();
          body["metadata"] = object{{"name", binding.key().name}};
          done = co_await api.create(kube::resources::cluster_role_bindings, std::move(body));
          if (!done && done.error().kind == kube::ErrorKind::already_exists) done = kube::Object{};
        }
        if (!done && done.error().kind != kube::ErrorKind::not_found) break;
      }
    }
    if (done || done.error().kind == kube::ErrorKind::not_found) co_return;
    co_await env_.clock.sleep_for(2s);
  }
}

void AgentWorld::begin(const Step& step) {
  auto& hub = *hubs_[step.hub];
  auto& machine = *machines_[step.agent];
  switch (step.act) {
    case Act::outage:
      ++hub.outages;
      hub.server.outage(true);
      break;
    case Act::fault:
      ++hub.faults[step.detail];
      hub.apply_faults();
      break;
    case Act::revoke:
      if (++hub.revocations == 1) scope_.spawn(administrate(step.hub, step, true));
      break;
    case Act::forget:
      for (std::size_t agent = 0; agent < plan_.agents; ++agent) {
        auto one = step;
        one.act = Act::delete_cluster;
        one.agent = agent;
        scope_.spawn(administrate(step.hub, one, true));
      }
      break;
    case Act::cut_watches:
      hub.server.cut_watches();
      break;
    case Act::compact:
      hub.server.compact();
      break;
    case Act::deny:
      ++hub.denials[step.agent];
      scope_.spawn(administrate(step.hub, step, true));
      break;
    case Act::delete_cluster:
    case Act::delete_lease:
    case Act::lease_duration:
      scope_.spawn(administrate(step.hub, step, true));
      break;
    case Act::kill:
      if (++machine.killed == 1) {
        machine.revive.reset();
        machine.kill.set();
      }
      break;
    case Act::clock:
      machine.clock.set(std::chrono::seconds{step.number});
      break;
    case Act::reorder:
      std::ranges::reverse(machine.configured);
      edit_list(step.agent);
      break;
    case Act::remove_hub:
      // At least one stays: an empty list is no list.
      ++machine.removed[step.hub];
      edit_list(step.agent);
      break;
    case Act::break_list:
      ++machine.broken[step.hub];
      edit_list(step.agent);
      break;
    case Act::fresh_token:
      for (auto& entry : machine.configured) {
        // The same account, another text.
        auto config = entry.parse();
        config.name = "fresh" + std::to_string(step.at.count());
        entry.kubeconfig = obs::Secret{kube::to_kubeconfig(config)};
      }
      edit_list(step.agent);
      break;
    case Act::full_disk:
      ++machine.full;
      machine.store.full = true;
      break;
    case Act::dead_disk:
      ++machine.dead;
      machine.store.full = machine.store.unreadable = true;
      break;
    case Act::freeze:
      machine.kill.set();
      break;
  }
}

void AgentWorld::end(const Step& step) {
  auto& hub = *hubs_[step.hub];
  auto& machine = *machines_[step.agent];
  switch (step.act) {
    case Act::outage:
      if (--hub.outages == 0) hub.server.outage(false);
      break;
    case Act::fault:
      --hub.faults[step.detail];
      hub.apply_faults();
      break;
    case Act::revoke:
      if (--hub.revocations == 0) scope_.spawn(administrate(step.hub, step, false));
      break;
    case Act::deny:
      --hub.denials[step.agent];
      scope_.spawn(administrate(step.hub, step, false));
      break;
    case Act::kill:
      if (--machine.killed == 0) {
        machine.kill.reset();
        machine.revive.set();
      }
      break;
    case Act::remove_hub:
      --machine.removed[step.hub];
      edit_list(step.agent);
      break;
    case Act::break_list:
      --machine.broken[step.hub];
      edit_list(step.agent);
      break;
    case Act::full_disk:
    case Act::dead_disk:
      (step.act == Act::full_disk ? machine.full : machine.dead) -= 1;
      machine.store.full = machine.full + machine.dead > 0;
      machine.store.unreadable = machine.dead > 0;
      break;
    default:
      break;
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

void AgentWorld::check() {
  for (std::size_t hub = 0; hub < hubs_.size(); ++hub) see_requests(hub);
  for (std::size_t agent = 0; agent < machines_.size(); ++agent) {
    check_hunger(agent);
    check_overlap(agent);
  }
}

/// Heartbeats as they arrive at a hub.
void AgentWorld::see_requests(std::size_t hub) {
  constexpr std::string_view prefix = "cluster";
  for (const auto& request : hubs_[hub]->server.requests()) {
    if (request.verb != "update" || !request.resource.starts_with("leases") || !request.key.ns.starts_with(prefix))
      continue;
    if (!request.user.starts_with("system:open-cluster-management:") || !request.outcome.starts_with("ok")) continue;
    const auto agent = std::stoul(request.key.ns.substr(prefix.size()));
    watched_.at(agent).renewed[hub] = request.at;
    ++heartbeats_;
  }
  hubs_[hub]->server.forget_requests();
}

bool AgentWorld::would_take(std::size_t index, std::size_t agent) const {
  const auto& hub = *hubs_[index];
  const auto& machine = *machines_[agent];
  if (hub.outages > 0 || hub.revocations > 0) return false;
  for (const auto& [detail, count] : hub.faults)
    if (count > 0 && is_severe(detail)) return false;
  const auto list = machine.store.bootstraps();
  const auto listed = std::ranges::find(list, hub.server.name(), &BootstrapConfig::name);
  if (listed == list.end() || why_unparsable(*listed)) return false;
  const auto cluster = hub.server.object(ocm::managed_clusters, {{}, cluster_name(agent)});
  if (!cluster) return true;
  const auto* accepts = cluster->find({"spec", "hubAcceptsClient"});
  return !cluster->is_being_deleted() && accepts != nullptr && accepts->is_bool() && accepts->get_bool();
}

void AgentWorld::check_hunger(std::size_t agent) {
  auto& watched = watched_[agent];
  const auto& machine = *machines_[agent];
  const auto now = loop_.clock().now();
  const bool alive = machine.killed == 0;
  const bool fed = std::ranges::any_of(watched.renewed,
                                       [&](const auto& entry) { return now - entry.second <= longest_period + tick; });
  for (std::size_t hub = 0; hub < hubs_.size(); ++hub) {
    if (!alive || fed || !would_take(hub, agent)) {
      watched.starving.erase(hub);
      continue;
    }
    const auto since = watched.starving.try_emplace(hub, now).first->second;
    if (now - std::max(since, machine.started) > stated_time(plan_.hubs))
      violation(agent, "is without a hub although " + hubs_[hub]->server.name() + " would take it since " +
                           async::format_duration(now - since));
  }
}

void AgentWorld::check_overlap(std::size_t agent) {
  auto& watched = watched_[agent];
  const auto now = loop_.clock().now();
  const auto fresh =
      std::ranges::count_if(watched.renewed, [&](const auto& entry) { return now - entry.second <= longest_period; });
  if (fresh < 2) {
    watched.doubled.reset();
    return;
  }
  if (!watched.doubled) watched.doubled = now;
  if (now - *watched.doubled > longest_overlap)
    violation(agent, "has fresh Leases on two hubs for " + async::format_duration(now - *watched.doubled));
}

void AgentWorld::violation(std::size_t agent, const std::string& text) {
  if (std::exchange(watched_[agent].reported, true)) return;
  violations_ +=
      async::format_duration(std::chrono::duration_cast<std::chrono::seconds>(loop_.clock().now().time_since_epoch())) +
      ": " + cluster_name(agent) + " " + text + "\n";
}

std::string AgentWorld::fingerprint() const {
  std::string text = std::to_string(loop_.steps()) + " steps, " + std::to_string(heartbeats_) + " heartbeats";
  for (const auto& hub : hubs_) text += ", " + std::to_string(hub->server.resource_version());
  return text;
}

}  // namespace hubferry::klusterlet::worlds
