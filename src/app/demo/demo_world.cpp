#include "app/demo/demo_world.hpp"

#include <algorithm>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/faults.hpp"
#include "hubferry/ui/feed.hpp"

namespace hubferry::app {

using namespace std::chrono_literals;
namespace json = kube::json;

namespace {

// Real stages have minutes; nobody wants to wait that long for an injected failure. It also covers the time that the
// agents need to return to the source.
constexpr const char* stage_timeout = "15s";
// And for the agents to turn away from a hub on which they cannot register.
constexpr auto agent_timeout = 10s;
constexpr auto ready_timeout = 60s;

sim::WorldOptions world_options(const DemoOptions& options) {
  sim::WorldOptions world;
  world.hubs = {DemoWorld::source, DemoWorld::target};
  world.clusters = static_cast<std::size_t>(options.clusters);
  world.seed = static_cast<std::uint64_t>(options.seed);
  if (!options.fail.empty()) world.hub_connection_timeout = agent_timeout;
  // The agent of Open Cluster Management would try to register for ever on a target that never lets it.
  world.upstream_agents = options.fail != "registering";
  world.http.emplace();
  world.server.record_requests = false;
  return world;
}

/// The clusters of migration `index` of `count`: the numbers differ by at most one.
std::vector<std::string> share(const std::vector<std::string>& clusters, std::size_t index, std::size_t count) {
  const auto from = clusters.size() * index / count;
  const auto to = clusters.size() * (index + 1) / count;
  return {clusters.begin() + static_cast<std::ptrdiff_t>(from), clusters.begin() + static_cast<std::ptrdiff_t>(to)};
}

json::object migration_object(std::size_t number, const std::vector<std::string>& clusters, bool will_fail) {
  json::array names;
  for (const auto& cluster : clusters) names.emplace_back(cluster);
  json::object spec{
      {"from", DemoWorld::source}, {"to", DemoWorld::target}, {"includedManagedClusters", std::move(names)}};
  if (will_fail) spec["supportedConfigs"] = json::object{{"stageTimeout", stage_timeout}};
  return {{"metadata", json::object{{"name", "move-" + std::to_string(number)}, {"namespace", DemoWorld::ns}}},
          {"spec", std::move(spec)}};
}

}  // namespace

const std::vector<std::string>& demo_failures() {
  static const std::vector<std::string> names{"validating", "initializing", "deploying", "registering"};
  return names;
}

DemoWorld::DemoWorld(const DemoOptions& options, async::LoopPool& loops, kube::Env env)
    : options_(options),
      loops_(loops),
      world_loop_(loops.next()),
      env_(env),
      world_random_(static_cast<std::uint64_t>(options.seed)),
      world_(
          std::make_unique<sim::World>(world_options(options), world_loop_,
                                       kube::Env{env.clock, world_random_, world_metrics_, env.log.named("world")})) {
  global_ = connect(sim::global_hub, world_->admin_config(sim::global_hub));
}

std::shared_ptr<kube::Api> DemoWorld::connect(const std::string& name, const kube::ClientConfig& config) {
  kube::HttpApiOptions options;
  options.name = name;
  return kube::make_http_api(config, options, loops_.next(), env_);
}

std::string DemoWorld::kubeconfig(const std::string& server) const {
  return kube::to_kubeconfig(world_->admin_config(server));
}

async::Awaitable<> DemoWorld::build() {
  auto work = [this]() -> async::Awaitable<> {
    co_await world_->build();
    clusters_ = world_->clusters();
    prepare_failure();
  };
  co_await async::run_on(world_loop_, work);
}

void DemoWorld::prepare_failure() {
  auto& faults = world_->server(target).faults();
  if (options_.fail == "initializing")
    faults.on({.verb = "create", .resource = "clusterrolebindings"}).always().fail(422);
  if (options_.fail == "deploying") faults.on({.verb = "create", .resource = "managedclusters"}).always().fail(422);
  if (options_.fail == "registering")
    faults.on({.verb = "create", .resource = "certificatesigningrequests"}).always().fail(422);
}

async::Awaitable<> DemoWorld::world_run() {
  auto work = [this] { return world_->run(); };
  co_await async::run_on(world_loop_, work);
}

async::Awaitable<> DemoWorld::wait_ready() {
  kube::Cache<kube::Object> hubs{*global_, ocm::managed_clusters, {}, kube::object_decoder(), env_};
  const auto deadline = async::later(env_.clock.now(), ready_timeout);
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(hubs.run());
    auto is_available = [](const kube::Object* hub) {
      return hub != nullptr && kube::is_condition_true(*hub, ocm::names::available);
    };
    for (const auto* name : {source, target}) {
      kube::Key key{"", name};
      co_await hubs.wait_for(key, is_available, deadline);
    }
    scope.stop();
  };
  co_await async::with_scope(body);
}

async::Awaitable<> DemoWorld::manager_run(ui::Console& console) {
  console.put_hub_server(sim::global_hub, world_->admin_config(sim::global_hub).server);
  hubs::Connect opener = [this, &console](const std::string& hub, const kube::ClientConfig& config) {
    console.put_hub_server(hub, config.server);
    return connect(hub, config);
  };
  hubs::HubDirectory directory{*global_, opener, {}, env_};
  migration::ControllerOptions options;
  options.instance = "demo";
  options.progress_interval = 250ms;
  options.on_arrival = [&console](const kube::Key& migration, const std::string& cluster) {
    console.arrive(migration, cluster);
  };
  migration::Controller controller{*global_, directory, options, env_};
  ui::Feed feed{*global_, console, {}, env_};
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(directory.run());
    scope.spawn(feed.run());
    co_await controller.run();
  };
  co_await async::with_scope(body);
}

async::Awaitable<> DemoWorld::create_migrations() {
  const auto count = static_cast<std::size_t>(options_.migrations);
  for (std::size_t index = 0; index < count; ++index) {
    auto clusters = share(clusters_, index, count);
    if (options_.fail == "validating") clusters.emplace_back("no-such-cluster");
    auto object = migration_object(index + 1, clusters, !options_.fail.empty());
    auto created = co_await global_->create(migration::managed_cluster_migrations, std::move(object));
    if (!created) throw std::runtime_error("cannot create a migration: " + created.error().describe());
  }
}

async::Awaitable<std::size_t> DemoWorld::count_available(std::string hub) {
  const auto api = connect(hub, world_->admin_config(hub));
  kube::ListOptions all;
  auto listed = co_await api->list_all(ocm::managed_clusters, all);
  if (!listed) throw std::runtime_error("cannot list the clusters of " + hub + ": " + listed.error().describe());
  std::size_t count = 0;
  for (const auto& cluster : *listed) count += kube::is_condition_true(cluster, ocm::names::available) ? 1U : 0U;
  co_return count;
}

}  // namespace hubferry::app
