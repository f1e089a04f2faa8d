#include "hubferry/sim/world.hpp"

#include <stdexcept>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/fleet_agents.hpp"
#include "hubferry/sim/hub_controllers.hpp"
#include "hubferry/sim/machine_clock.hpp"
#include "sim/ocm/ensure.hpp"

namespace hubferry::sim {

namespace {

/// One server, its HTTP frontend, and the config of its admin.
struct WorldServer {
  std::string name;
  std::unique_ptr<MachineClock> clock;  // of the server and its controllers
  std::unique_ptr<Server> server;
  std::unique_ptr<HttpFrontend> frontend;
  kube::ClientConfig admin;
};

HubSetOptions hub_options(const WorldOptions& world) {
  HubSetOptions options;
  options.clusters = world.clusters;
  options.fleet = world.fleet;
  options.secrets = world.secrets;
  options.seed = world.seed;
  options.managed_service_accounts = world.managed_service_accounts;
  options.hub_kubeconfigs = world.hub_kubeconfigs;
  options.auto_approval = world.auto_approval;
  options.import_controller = world.import_controller;
  options.hub_connection_timeout = world.hub_connection_timeout;
  return options;
}

FleetOptions agent_options(const WorldOptions& world) {
  FleetOptions options;
  options.connection_timeout = world.hub_connection_timeout;
  options.upstream = world.upstream_agents;
  options.eviction_grace = world.eviction_grace;
  // A few milliseconds each, so that the loop is not blocked. Well below the duration of a lease.
  options.start_spread =
      std::min<async::Duration>(world.clusters * std::chrono::milliseconds{10}, std::chrono::minutes{2});
  return options;
}

}  // namespace

class World::State {
 public:
  State(WorldOptions settings, const async::Executor& executor, kube::Env env)
      : options(std::move(settings)), env_(std::move(env)) {
    async::Random random{options.seed};
    std::vector<std::string> names{global_hub};
    names.insert(names.end(), options.hubs.begin(), options.hubs.end());
    std::vector<HubSite> sites;
    for (const auto& name : names) {
      WorldServer entry;
      entry.name = name;
      entry.clock = std::make_unique<MachineClock>(env_.clock);
      Options server = options.server;
      server.name = name;
      server.seed = random.next();
      const kube::Env machine{*entry.clock, env_.random, env_.metrics, env_.log};
      entry.server = std::make_unique<Server>(std::move(server), machine);
      guard_acceptance(*entry.server);
      if (options.http) entry.frontend = open_frontend(*entry.server, executor);
      network.add(entry.frontend != nullptr ? entry.frontend->url() : "https://" + name + ".sim", *entry.server);
      entry.admin = network.config_for(*entry.server, admin());
      sites.push_back({name, &entry.server->api(), entry.admin, entry.clock.get()});
      servers.push_back(std::move(entry));
    }
    hubs = std::make_unique<HubSet>(std::move(sites), hub_options(options), env_);
    // The logs of thousands of agents would hide everything else.
    const kube::Env quiet{env_.clock, env_.random, env_.metrics, obs::Logger{}};
    agents = std::make_unique<FleetAgents>(network, agent_options(options), quiet);
  }

  async::Awaitable<> build() {
    co_await hubs->build();
    if (options.cluster_servers)
      for (const auto& cluster : hubs->clusters()) co_await build_cluster_server(cluster);
    if (options.agents) add_agents();
  }

  async::Awaitable<> run() {
    auto body = [this](async::TaskScope& scope) -> async::Awaitable<> {
      for (auto& entry : servers)
        if (entry.frontend != nullptr) scope.spawn(entry.frontend->serve());
      scope.spawn(hubs->run());
      // Agents of clusters that the hub has not processed yet would be rejected.
      co_await hubs->wait_settled();
      // Not before: hub controllers that are refused half of all requests take minutes to process their first clusters.
      for (auto& entry : servers) options.faults.apply(entry.name, entry.server->faults());
      scope.spawn(agents->run());
    };
    co_await async::with_scope(body);
  }

  WorldServer& find(const std::string& name) {
    for (auto* list : {&servers, &cluster_servers})
      for (auto& entry : *list)
        if (entry.name == name) return entry;
    throw std::out_of_range("unknown server " + name);
  }

  WorldOptions options;
  Network network;
  std::vector<WorldServer> servers;  // the global hub first
  std::vector<WorldServer> cluster_servers;
  std::unique_ptr<HubSet> hubs;
  std::unique_ptr<FleetAgents> agents;

 private:
  std::unique_ptr<HttpFrontend> open_frontend(Server& server, const async::Executor& executor) {
    HttpOptions frontend = *options.http;
    if (frontend.port != 0) frontend.port = static_cast<std::uint16_t>(frontend.port + servers.size());
    if (!frontend.tls) frontend.anonymous = admin();
    return std::make_unique<HttpFrontend>(server, executor, std::move(frontend));
  }

  async::Awaitable<> build_cluster_server(std::string cluster) {
    WorldServer entry;
    entry.name = cluster;
    entry.clock = std::make_unique<MachineClock>(env_.clock);
    Options server = options.server;
    server.name = cluster;
    server.seed = options.seed + cluster_servers.size();
    const kube::Env machine{*entry.clock, env_.random, env_.metrics, env_.log};
    entry.server = std::make_unique<Server>(std::move(server), machine);
    network.add("https://" + cluster + ".sim", *entry.server);
    entry.admin = network.config_for(*entry.server, admin());
    auto& api = entry.server->api();
    cluster_servers.push_back(std::move(entry));
    co_await install_crds(api, env_);
    for (const char* name : {ocm::names::agent_namespace, "default"}) {
      kube::json::object space{{"metadata", kube::json::object{{"name", name}}}};
      auto made = co_await ensure_exists(api, kube::resources::namespaces, std::move(space));
      if (!made) throw std::runtime_error("cannot set up cluster " + cluster + ": " + made.error().describe());
    }
  }

  void add_agents() {
    const auto clusters = hubs->clusters();
    if (clusters.empty()) return;
    const auto& hub = *find(hubs->first_hub()).server;
    const auto bootstrap = hubs->bootstrap_kubeconfig(hub.name());
    const auto config = kube::parse_kubeconfig(bootstrap.reveal(), "the hub's bootstrap kubeconfig", std::nullopt);
    for (const auto& cluster : clusters) {
      FleetMember member;
      member.cluster = cluster;
      member.bootstraps.push_back({hub.name(), bootstrap, std::nullopt});
      member.secret = issue_hub_secret(network, hub, cluster, config);
      if (options.cluster_servers) member.own_cluster = &find(cluster).server->api();
      agents->add(std::move(member));
    }
  }

  kube::Env env_;
};

World::World(WorldOptions options, async::Executor executor, kube::Env env)
    : state_(std::make_unique<State>(std::move(options), executor, std::move(env))) {}

World::~World() = default;

async::Awaitable<> World::build() {
  return state_->build();
}

async::Awaitable<> World::run() {
  return state_->run();
}

Server& World::server(const std::string& name) {
  return *state_->find(name).server;
}

void World::set_clock(const std::string& name, async::Duration ahead) {
  state_->find(name).clock->set_ahead(ahead);
}

Network& World::network() {
  return state_->network;
}

HubSet& World::hubs() {
  return *state_->hubs;
}

FleetAgents& World::agents() {
  return *state_->agents;
}

const kube::ClientConfig& World::admin_config(const std::string& name) const {
  return state_->find(name).admin;
}

const WorldOptions& World::options() const {
  return state_->options;
}

std::vector<std::string> World::servers() const {
  std::vector<std::string> names;
  for (const auto& entry : state_->servers) names.push_back(entry.name);
  return names;
}

std::string World::timeline() const {
  std::vector<const Server*> servers;
  for (const auto& entry : state_->servers) servers.push_back(entry.server.get());
  return "seed " + std::to_string(state_->options.seed) + "\n" + merged_timeline(servers);
}

}  // namespace hubferry::sim
