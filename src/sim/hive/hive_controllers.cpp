#include "hubferry/sim/hive_controllers.hpp"

#include <algorithm>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/hive/hive_context.hpp"

namespace hubferry::sim {

namespace {

kube::WorkQueueOptions hive_queue_options(const HiveContext& hive, const std::string& name) {
  kube::WorkQueueOptions options;
  options.name = hive.options.name + "/" + name;
  options.controller = name;
  options.most_delay = std::chrono::seconds{30};
  return options;
}

kube::Key key_itself(const kube::Object& object) {
  return object.key();
}

kube::Key deployment_of_pool(const kube::Object& object) {
  return {std::string{object.ns()}, std::string{object.string_at({"spec", "clusterDeploymentRef", "name"})}};
}

/// A SyncSet may name several; the simulation follows the first.
kube::Key deployment_of_sync_set(const kube::Object& object) {
  const auto* references = object.find({"spec", "clusterDeploymentRefs"});
  if (references == nullptr || !references->is_array() || references->get_array().empty()) return {};
  const auto& first = references->get_array().front();
  return {std::string{object.ns()},
          first.is_object() ? std::string{kube::string_at(first.get_object(), {"name"})} : std::string{}};
}

}  // namespace

HiveContext::HiveContext(kube::Api& server, HiveOptions given, kube::Env environment)
    : api(server),
      options(std::move(given)),
      env{environment.clock, environment.random, environment.metrics, environment.log.named("hive")},
      deployments(server, ocm::cluster_deployments, {}, kube::object_decoder(), env),
      zones(server, ocm::dns_zones, {}, kube::object_decoder(), env),
      pools(server, ocm::machine_pools, {}, kube::object_decoder(), env),
      sync_sets(server, ocm::sync_sets, {}, kube::object_decoder(), env),
      provisions(server, ocm::cluster_provisions, {}, kube::object_decoder(), env) {}

kube::Awaitable<> HiveContext::follow() {
  auto body = [this](async::TaskScope& scope) -> kube::Awaitable<> {
    for (auto* cache : {&deployments, &zones, &pools, &sync_sets, &provisions}) scope.spawn(cache->run());
    co_return;
  };
  co_await async::with_scope(body);
}

kube::Awaitable<> HiveContext::wait_synced() {
  for (auto* cache : {&deployments, &zones, &pools, &sync_sets, &provisions}) co_await cache->wait_synced();
}

void HiveContext::record(const std::string& action, const kube::Key& key) {
  actions.push_back(action + " " + kube::to_string(key));
}

HiveController::HiveController(HiveContext& of, const std::string& name, Reconcile how)
    : hive(of), queue(hive_queue_options(of, name), of.env), reconcile(std::move(how)) {}

void HiveController::follow(HiveContext::Cache& cache, std::function<kube::Key(const kube::Object&)> map) {
  const auto add = [this, map](const kube::Key&, const auto& old, const auto& now) {
    auto key = map(now != nullptr ? *now : *old);
    if (!key.name.empty()) queue.add(std::move(key));
  };
  subscriptions.push_back(cache.subscribe(add, kube::Replay::existing));
}

kube::Awaitable<> HiveController::run() {
  auto body = [this](async::TaskScope& scope) -> kube::Awaitable<> {
    scope.spawn(queue.run());
    while (auto key = co_await queue.get()) {
      auto done = co_await reconcile(hive, *key);
      if (done) {
        queue.forget(*key);
      } else {
        queue.add_rate_limited(*key);
      }
      queue.done(*key);
    }
  };
  co_await async::with_scope(body);
}

class HiveControllers::State {
 public:
  State(kube::Api& hub, HiveOptions options, kube::Env env) : hive(hub, std::move(options), std::move(env)) {}

  kube::Awaitable<> run() {
    auto body = [this](async::TaskScope& scope) -> kube::Awaitable<> {
      scope.spawn(hive.follow());
      co_await hive.wait_synced();
      std::vector<std::unique_ptr<HiveController>> controllers;
      const auto add = [&](const char* name, HiveController::Reconcile how) -> HiveController& {
        return *controllers.emplace_back(std::make_unique<HiveController>(hive, name, std::move(how)));
      };
      auto& deployment = add("clusterdeployment", reconcile_deployment);
      deployment.follow(hive.deployments, key_itself);
      deployment.follow(hive.provisions, deployment_of_pool);
      auto& sync = add("clustersync", reconcile_sync);
      sync.follow(hive.deployments, key_itself);
      sync.follow(hive.sync_sets, deployment_of_sync_set);
      auto& pool = add("machinepool", reconcile_pool);
      pool.follow(hive.pools, key_itself);
      // A pool's controller looks again when its ClusterDeployment changes.
      pool.subscriptions.push_back(
          hive.deployments.subscribe([&pool, this](const kube::Key& key, const auto&, const auto&) {
            hive.pools.for_each([&](const kube::Key& of, const auto& object) {
              if (deployment_of_pool(*object) == key) pool.queue.add(of);
            });
          }));
      add("dnszone", reconcile_zone).follow(hive.zones, key_itself);
      add("dnsendpoint", reconcile_endpoint).follow(hive.zones, key_itself);
      if (hive.options.relocate_controller)
        add("clusterrelocate", reconcile_relocate).follow(hive.deployments, key_itself);
      auto working = [&](async::TaskScope& workers) -> kube::Awaitable<> {
        for (const auto& controller : controllers) workers.spawn(controller->run());
        co_return;
      };
      co_await async::with_scope(working);
    };
    co_await async::with_scope(body);
  }

  HiveContext hive;
};

HiveControllers::HiveControllers(kube::Api& hub, HiveOptions options, kube::Env env)
    : state_(std::make_unique<State>(hub, std::move(options), std::move(env))) {}

HiveControllers::~HiveControllers() = default;

kube::Awaitable<> HiveControllers::run() {
  return state_->run();
}

const std::vector<std::string>& HiveControllers::actions() const {
  return state_->hive.actions;
}

std::size_t HiveControllers::count(const std::string& text) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(state_->hive.actions, [&](const std::string& one) { return one.starts_with(text); }));
}

void HiveControllers::forget_actions() {
  state_->hive.actions.clear();
}

}  // namespace hubferry::sim
