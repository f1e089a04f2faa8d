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

// Longer than the hubs run: it is not renewed.
constexpr std::chrono::hours bootstrap_lifetime{24 * 3650};
constexpr const char* manager_namespace = "hubferry-system";

struct HubEntry {
  HubSite site;
  obs::Secret bootstrap;
  std::unique_ptr<HubControllers> controllers;

  [[nodiscard]] bool is_global() const { return site.name == global_hub; }
};

[[noreturn]] void fail(const HubEntry& entry, const kube::Error& error) {
  throw std::runtime_error("cannot set up hub " + entry.site.name + ": " + error.describe());
}

}  // namespace

class HubSet::State {
 public:
  State(std::vector<HubSite> sites, HubSetOptions options, kube::Env env) : options_(options), env_(std::move(env)) {
    for (auto& site : sites) {
      if (std::ranges::any_of(entries_, [&](const auto& other) { return other.site.name == site.name; }))
        throw std::runtime_error("duplicate server name " + site.name);
      HubEntry entry;
      entry.site = std::move(site);
      entries_.push_back(std::move(entry));
    }
    if (options_.clusters > 0 && first_hub().empty())
      throw std::runtime_error("clusters need a hub besides the global one");
  }

  async::Awaitable<> build() {
    for (auto& entry : entries_) co_await build_hub(entry);
    if (auto* global = find(global_hub)) co_await build_global(*global);
    if (auto* first = find(first_hub()); first != nullptr && options_.clusters > 0)
      co_await create_fleet(*first->site.api, plan(), env_);
  }

  async::Awaitable<> run() {
    auto body = [this](async::TaskScope& scope) -> async::Awaitable<> {
      const auto* global = find(global_hub);
      for (auto& entry : entries_) {
        scope.spawn(entry.controllers->run());
        if (global != nullptr && !entry.is_global())
          scope.spawn(send_hub_heartbeats(*global->site.api, *entry.site.api, entry.site.name, env_));
      }
      if (accounts_ != nullptr) scope.spawn(accounts_->run());
      co_return;
    };
    co_await async::with_scope(body);
  }

  async::Awaitable<> wait_settled() {
    for (auto& entry : entries_) co_await entry.controllers->wait_settled();
  }

  HubEntry* find(const std::string& name) {
    for (auto& entry : entries_)
      if (entry.site.name == name) return &entry;
    return nullptr;
  }

  [[nodiscard]] std::string first_hub() const {
    for (const auto& entry : entries_)
      if (!entry.is_global()) return entry.site.name;
    return {};
  }

  [[nodiscard]] FleetPlan plan() const {
    FleetPlan made;
    made.clusters = options_.clusters;
    made.kind = options_.fleet;
    made.secrets = options_.secrets;
    made.seed = options_.seed;
    return made;
  }

 private:
  async::Awaitable<> build_hub(HubEntry& entry) {
    auto& api = *entry.site.api;
    CrdSelection kinds;
    if (entry.is_global() && !options_.managed_service_accounts) kinds.without = {"ManagedServiceAccount"};
    if (!entry.is_global() && options_.import_controller == ImportController::none)
      kinds.without = {"KlusterletConfig"};
    co_await install_crds(api, kinds, env_);
    HubOptions hub;
    hub.name = entry.site.name;
    hub.auto_approval = options_.auto_approval;
    hub.import_controller = options_.import_controller;
    hub.hub_connection_timeout = options_.hub_connection_timeout;
    auto installed = co_await install_hub(api, hub);
    if (!installed) fail(entry, installed.error());
    auto kubeconfig = co_await make_bootstrap_kubeconfig(api, entry.site.admin, bootstrap_lifetime);
    if (!kubeconfig) fail(entry, kubeconfig.error());
    entry.bootstrap = *kubeconfig;
    // Hubs on the global hub have no agent that could process an import.
    if (!entry.is_global() && options_.import_controller != ImportController::none)
      hub.bootstrap_kubeconfig = entry.bootstrap;
    auto& clock = entry.site.clock != nullptr ? *entry.site.clock : env_.clock;
    entry.controllers =
        std::make_unique<HubControllers>(api, hub, kube::Env{clock, env_.random, env_.metrics, env_.log});
  }

  async::Awaitable<> build_global(HubEntry& global) {
    // The default namespace for a manager's leader election.
    json::object space{{"metadata", json::object{{"name", manager_namespace}}}};
    auto made = co_await ensure_exists(*global.site.api, kube::resources::namespaces, std::move(space));
    if (!made) fail(global, made.error());
    std::map<std::string, ManagedServiceAccounts::Hub> hubs;
    for (const auto& entry : entries_) {
      if (entry.is_global()) continue;
      co_await register_hub(*global.site.api, entry.site.name, entry.site.admin, options_.hub_kubeconfigs, env_);
      if (options_.managed_service_accounts) co_await create_account_addon(*global.site.api, entry.site.name);
      hubs[entry.site.name] = {entry.site.api, entry.site.admin.ca_pem};
    }
    if (options_.managed_service_accounts)
      accounts_ = std::make_unique<ManagedServiceAccounts>(*global.site.api, std::move(hubs), env_);
  }

  HubSetOptions options_;
  kube::Env env_;
  std::vector<HubEntry> entries_;
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
  const auto* entry = state_->find(hub);
  if (entry == nullptr) throw std::out_of_range("unknown hub " + hub);
  return entry->bootstrap;
}

std::vector<std::string> HubSet::clusters() const {
  return fleet_names(state_->plan());
}

std::string HubSet::first_hub() const {
  return state_->first_hub();
}

}  // namespace hubferry::sim
