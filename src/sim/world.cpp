#include "hubferry/sim/world.hpp"

#include <algorithm>
#include <stdexcept>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/fleet.hpp"
#include "hubferry/sim/hub_behaviours.hpp"
#include "hubferry/sim/managed_service_accounts.hpp"
#include "sim/hub_registration.hpp"

namespace hubferry::sim {

namespace {

// As long as the world may run: nobody renews it.
constexpr std::chrono::hours bootstrap_lifetime{24 * 3650};

/// One server with all that makes it a hub.
struct Place {
  std::string name;
  std::unique_ptr<Server> server;
  std::unique_ptr<HttpDoor> door;
  obs::Secret bootstrap;
  std::unique_ptr<HubBehaviours> behaviours;
};

}  // namespace

class World::State {
 public:
  State(WorldOptions settings, async::Executor executor, kube::Env env)
      : options(std::move(settings)), env_(std::move(env)) {
    async::Random random{options.seed};
    std::vector<std::string> names{global_hub};
    names.insert(names.end(), options.hubs.begin(), options.hubs.end());
    for (const auto& name : names) {
      if (std::ranges::any_of(places, [&](const auto& other) { return other.name == name; }))
        throw std::runtime_error("two servers have the name " + name);
      Options server = options.server;
      server.name = name;
      server.seed = random.next();
      Place place;
      place.name = name;
      place.server = std::make_unique<Server>(std::move(server), env_);
      if (options.http) place.door = open_door(*place.server, executor);
      network.add(place.door != nullptr ? place.door->url() : "https://" + name + ".sim", *place.server);
      places.push_back(std::move(place));
    }
  }

  async::Awaitable<> build() {
    for (auto& place : places) co_await build_hub(place);
    for (auto& place : places)
      if (place.name != global_hub) co_await enlist(place);
    if (options.clusters > 0) co_await create_fleet(first_hub().server->api(), plan(), env_);
    if (options.managed_service_accounts) {
      std::map<std::string, ManagedServiceAccounts::Hub> hubs;
      for (const auto& place : places)
        if (place.name != global_hub)
          hubs[place.name] = {&place.server->api(), network.address_of(*place.server).ca_pem};
      accounts_ = std::make_unique<ManagedServiceAccounts>(places.front().server->api(), std::move(hubs), env_);
    }
    for (auto& place : places) options.faults.apply(place.name, place.server->faults());
  }

  async::Awaitable<> run() {
    auto body = [this](async::TaskScope& scope) -> async::Awaitable<> {
      auto& global = places.front().server->api();
      for (auto& place : places) {
        if (place.door != nullptr) scope.spawn(place.door->serve());
        scope.spawn(place.behaviours->run());
        if (place.name != global_hub) scope.spawn(represent_hub(global, place.server->api(), place.name, env_));
      }
      if (accounts_ != nullptr) scope.spawn(accounts_->run());
      co_return;
    };
    co_await async::with_scope(body);
  }

  async::Awaitable<> wait_settled() {
    for (auto& place : places) co_await place.behaviours->wait_settled();
  }

  Place& find(const std::string& name) {
    for (auto& place : places)
      if (place.name == name) return place;
    throw std::out_of_range("there is no server " + name);
  }

  [[nodiscard]] FleetPlan plan() const {
    FleetPlan made;
    made.clusters = options.clusters;
    made.seed = options.seed;
    return made;
  }

  WorldOptions options;
  Network network;
  std::vector<Place> places;  // the global hub first

 private:
  std::unique_ptr<HttpDoor> open_door(Server& server, const async::Executor& executor) {
    HttpOptions door = *options.http;
    if (door.port != 0) door.port = static_cast<std::uint16_t>(door.port + places.size());
    if (!door.tls) door.anonymous = admin();
    return std::make_unique<HttpDoor>(server, executor, std::move(door));
  }

  Place& first_hub() {
    if (options.hubs.empty()) throw std::runtime_error("clusters need a hub");
    return find(options.hubs.front());
  }

  async::Awaitable<> build_hub(Place& place) {
    auto& api = place.server->api();
    const bool is_global = place.name == global_hub;
    CrdSelection kinds;
    if (is_global && !options.managed_service_accounts) kinds.without = {"ManagedServiceAccount"};
    co_await install_crds(api, kinds, env_);
    HubOptions hub;
    hub.name = place.name;
    hub.auto_approval = options.auto_approval;
    hub.hub_connection_timeout = options.hub_connection_timeout;
    auto installed = co_await install_hub(api, hub);
    if (!installed) throw std::runtime_error("cannot build " + place.name + ": " + installed.error().describe());
    auto where = network.address_of(*place.server);
    auto kubeconfig = co_await make_bootstrap_kubeconfig(api, where, bootstrap_lifetime);
    if (!kubeconfig) throw std::runtime_error("cannot build " + place.name + ": " + kubeconfig.error().describe());
    place.bootstrap = *kubeconfig;
    // Hubs on the global hub have no agent that could take anything over.
    if (!is_global) hub.bootstrap_kubeconfig = place.bootstrap;
    place.behaviours = std::make_unique<HubBehaviours>(api, hub, env_);
  }

  async::Awaitable<> enlist(Place& place) {
    auto config = network.config_for(*place.server, admin());
    co_await register_hub(places.front().server->api(), place.name, config, options.hub_kubeconfigs, env_);
  }

  kube::Env env_;
  std::unique_ptr<ManagedServiceAccounts> accounts_;
};

World::World(WorldOptions options, async::Executor executor, kube::Env env)
    : state_(std::make_unique<State>(std::move(options), std::move(executor), std::move(env))) {}

World::~World() = default;

async::Awaitable<> World::build() {
  return state_->build();
}

async::Awaitable<> World::run() {
  return state_->run();
}

async::Awaitable<> World::wait_settled() {
  return state_->wait_settled();
}

Server& World::server(const std::string& name) {
  return *state_->find(name).server;
}

Network& World::network() {
  return state_->network;
}

kube::ClientConfig World::admin_config(const std::string& name) {
  return state_->network.config_for(server(name), admin());
}

const obs::Secret& World::bootstrap_kubeconfig(const std::string& hub) const {
  return state_->find(hub).bootstrap;
}

const WorldOptions& World::options() const {
  return state_->options;
}

std::vector<std::string> World::servers() const {
  std::vector<std::string> names;
  for (const auto& place : state_->places) names.push_back(place.name);
  return names;
}

std::vector<std::string> World::clusters() const {
  return fleet_names(state_->plan());
}

std::string World::timeline() const {
  std::vector<const Server*> servers;
  for (const auto& place : state_->places) servers.push_back(place.server.get());
  return "seed " + std::to_string(state_->options.seed) + "\n" + merged_timeline(servers);
}

}  // namespace hubferry::sim
