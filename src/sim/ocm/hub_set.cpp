#include "hubferry/sim/hub_set.hpp"

#include <algorithm>
#include <stdexcept>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/fleet.hpp"
#include "hubferry/sim/hub_controllers.hpp"
#include "hubferry/sim/managed_service_accounts.hpp"
#include "sim/ocm/ensure.hpp"
#include "sim/ocm/hub_registration.hpp"

namespace hubferry::sim {

namespace json = kube::json;

namespace {

// As long as the hubs may run: nobody renews it.
constexpr std::chrono::hours bootstrap_lifetime{24 * 3650};
constexpr const char* manager_namespace = "hubferry-system";

struct Place {
  HubSite site;
  obs::Secret bootstrap;
  std::unique_ptr<HubControllers> controllers;

  [[nodiscard]] bool is_global() const { return site.name == global_hub; }
};

[[noreturn]] void fail(const Place& place, const kube::Error& error) {
  throw std::runtime_error("cannot make a hub of " + place.site.name + ": " + error.describe());
}

}  // namespace

class HubSet::State {
 public:
  State(std::vector<HubSite> sites, HubSetOptions options, kube::Env env) : options_(options), env_(std::move(env)) {
    for (auto& site : sites) {
      if (std::ranges::any_of(places_, [&](const auto& other) { return other.site.name == site.name; }))
        throw std::runtime_error("two servers have the name " + site.name);
      Place place;
      place.site = std::move(site);
      places_.push_back(std::move(place));
    }
    if (options_.clusters > 0 && first_hub().empty()) throw std::runtime_error("clusters need a hub");
  }

  async::Awaitable<> build() {
    for (auto& place : places_) co_await build_hub(place);
    if (auto* global = find(global_hub)) co_await build_global(*global);
    if (auto* first = find(first_hub()); first != nullptr && options_.clusters > 0)
      co_await create_fleet(*first->site.api, plan(), env_);
  }

  async::Awaitable<> run() {
    auto body = [this](async::TaskScope& scope) -> async::Awaitable<> {
      const auto* global = find(global_hub);
      for (auto& place : places_) {
        scope.spawn(place.controllers->run());
        if (global != nullptr && !place.is_global())
          scope.spawn(represent_hub(*global->site.api, *place.site.api, place.site.name, env_));
      }
      if (accounts_ != nullptr) scope.spawn(accounts_->run());
      co_return;
    };
    co_await async::with_scope(body);
  }

  async::Awaitable<> wait_settled() {
    for (auto& place : places_) co_await place.controllers->wait_settled();
  }

  Place* find(const std::string& name) {
    for (auto& place : places_)
      if (place.site.name == name) return &place;
    return nullptr;
  }

  [[nodiscard]] std::string first_hub() const {
    for (const auto& place : places_)
      if (!place.is_global()) return place.site.name;
    return {};
  }

  [[nodiscard]] FleetPlan plan() const {
    FleetPlan made;
    made.clusters = options_.clusters;
    made.seed = options_.seed;
    return made;
  }

 private:
  async::Awaitable<> build_hub(Place& place) {
    auto& api = *place.site.api;
    CrdSelection kinds;
    if (place.is_global() && !options_.managed_service_accounts) kinds.without = {"ManagedServiceAccount"};
    co_await install_crds(api, kinds, env_);
    HubOptions hub;
    hub.name = place.site.name;
    hub.auto_approval = options_.auto_approval;
    hub.hub_connection_timeout = options_.hub_connection_timeout;
    auto installed = co_await install_hub(api, hub);
    if (!installed) fail(place, installed.error());
    auto kubeconfig = co_await make_bootstrap_kubeconfig(api, place.site.admin, bootstrap_lifetime);
    if (!kubeconfig) fail(place, kubeconfig.error());
    place.bootstrap = *kubeconfig;
    // Hubs on the global hub have no agent that could take anything over.
    if (!place.is_global()) hub.bootstrap_kubeconfig = place.bootstrap;
    place.controllers = std::make_unique<HubControllers>(api, hub, env_);
  }

  async::Awaitable<> build_global(Place& global) {
    // A manager that is not told otherwise elects its leader there.
    json::object space{{"metadata", json::object{{"name", manager_namespace}}}};
    auto made = co_await ensure_exists(*global.site.api, kube::resources::namespaces, std::move(space));
    if (!made) fail(global, made.error());
    std::map<std::string, ManagedServiceAccounts::Hub> hubs;
    for (const auto& place : places_) {
      if (place.is_global()) continue;
      co_await register_hub(*global.site.api, place.site.name, place.site.admin, options_.hub_kubeconfigs, env_);
      if (options_.managed_service_accounts) co_await announce_account_addon(*global.site.api, place.site.name);
      hubs[place.site.name] = {place.site.api, place.site.admin.ca_pem};
    }
    if (options_.managed_service_accounts)
      accounts_ = std::make_unique<ManagedServiceAccounts>(*global.site.api, std::move(hubs), env_);
  }

  HubSetOptions options_;
  kube::Env env_;
  std::vector<Place> places_;
  std::unique_ptr<ManagedServiceAccounts> accounts_;
};

HubSet::HubSet(std::vector<HubSite> sites, HubSetOptions options, kube::Env env)
    : state_(std::make_unique<State>(std::move(sites), options, std::move(env))) {}

HubSet::~HubSet() = default;

async::Awaitable<> HubSet::build() {
  return state_->build();
}

async::Awaitable<> HubSet::run() {
  return state_->run();
}

async::Awaitable<> HubSet::wait_settled() {
  return state_->wait_settled();
}

const obs::Secret& HubSet::bootstrap_kubeconfig(const std::string& hub) const {
  const auto* place = state_->find(hub);
  if (place == nullptr) throw std::out_of_range("there is no hub " + hub);
  return place->bootstrap;
}

std::vector<std::string> HubSet::clusters() const {
  return fleet_names(state_->plan());
}

std::string HubSet::first_hub() const {
  return state_->first_hub();
}

}  // namespace hubferry::sim
