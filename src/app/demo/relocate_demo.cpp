#include "app/demo/relocate_demo.hpp"

#include <boost/asio/this_coro.hpp>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "app/cli/output.hpp"
#include "app/cli/terminal.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/relocator/controller.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/hive_controllers.hpp"
#include "hubferry/sim/http_frontend.hpp"

namespace hubferry::app {

namespace {

using namespace std::chrono_literals;
namespace json = kube::json;

constexpr auto relocate_demo_limit = 2min;

/// A simulated hub with Hive, on a local socket.
struct DemoHive {
  DemoHive(const std::string& name, const async::Executor& executor, const kube::Env& env)
      : server(options(name), env), frontend(server, executor, {}), hive(server.api(), {.name = name}, env) {}

  static sim::Options options(const std::string& name) {
    sim::Options made;
    made.name = name;
    made.record_requests = false;
    return made;
  }

  sim::Server server;
  sim::HttpFrontend frontend;
  sim::HiveControllers hive;
};

json::object named(const std::string& name, const std::string& ns) {
  json::object metadata{{"name", name}};
  if (!ns.empty()) metadata["namespace"] = ns;
  return json::object{{"metadata", std::move(metadata)}};
}

async::Awaitable<> put(kube::Api& api, kube::Resource kind, json::object object) {
  auto made = co_await api.create(kind, std::move(object));
  if (!made) throw std::runtime_error(made.error().describe());
}

/// A cluster with its Secrets and a MachinePool; every second one with managed DNS.
async::Awaitable<> create_deployment(kube::Api& api, std::string name, bool with_dns) {
  co_await put(api, kube::resources::namespaces, named(name, ""));
  for (const char* secret : {"-admin-kubeconfig", "-pull-secret"})
    co_await put(api, kube::resources::secrets, named(name + secret, name));
  auto pool = named(name + "-worker", name);
  pool["spec"] =
      json::object{{"name", "worker"}, {"replicas", 3}, {"clusterDeploymentRef", json::object{{"name", name}}}};
  co_await put(api, ocm::machine_pools, std::move(pool));
  auto deployment = named(name, name);
  kube::object_in(deployment, "metadata")["labels"] = json::object{{"hive-instance", "hub2"}};
  json::object kubeconfig{{"name", name + "-admin-kubeconfig"}};
  json::object cluster{{"infraID", name + "-x7k2p"}, {"adminKubeconfigSecretRef", std::move(kubeconfig)}};
  deployment["spec"] = json::object{{"baseDomain", "example.com"},
                                    {"clusterName", name},
                                    {"installed", true},
                                    {"manageDNS", with_dns},
                                    {"pullSecretRef", json::object{{"name", name + "-pull-secret"}}},
                                    {"clusterMetadata", std::move(cluster)}};
  co_await put(api, ocm::cluster_deployments, std::move(deployment));
}

async::Awaitable<> create_relocator(kube::Api& api, std::string kubeconfig) {
  auto secret = named("hub2", "default");
  secret["data"] = json::object{{"kubeconfig", kube::encode_base64(kubeconfig)}};
  co_await put(api, kube::resources::secrets, std::move(secret));
  auto relocator = named("to-hub2", "");
  json::object labels{{"hive-instance", "hub2"}};
  json::object reference{{"name", "hub2"}, {"namespace", "default"}};
  relocator["spec"] = json::object{{"kubeconfigSecretRef", std::move(reference)},
                                   {"clusterDeploymentSelector", json::object{{"matchLabels", std::move(labels)}}}};
  co_await put(api, relocator::cluster_relocators, std::move(relocator));
}

/// What a watcher of the source sees of one ClusterDeployment.
std::string state_of(const kube::Object* deployment) {
  if (deployment == nullptr) return "deleted from hub1";
  if (!deployment->annotation(relocator::names::relocated).empty()) return "relocated: hub2 has it";
  if (!deployment->annotation(relocator::names::relocating).empty()) return "relocating: Hive is paused on hub1";
  return "";
}

}  // namespace

async::Awaitable<int> run_relocate_demo(int count, async::Event& stop, kube::Env env, std::ostream& out) {
  const async::Executor executor = co_await async::asio::this_coro::executor;
  obs::Metrics world_metrics;
  const kube::Env world{env.clock, env.random, world_metrics, env.log.named("world")};
  DemoHive hub1{"hub1", executor, world};
  DemoHive hub2{"hub2", executor, world};
  async::LoopPool loops{1};
  const auto open = [&](const std::string& name, const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
    kube::HttpApiOptions options;
    options.name = name;
    return kube::make_http_api(config, options, loops.next(), env);
  };
  const auto api = open("hub1", hub1.frontend.config_for(sim::admin()));
  relocator::Controller controller{*api, open, {}, env};
  kube::Cache<kube::Object> deployments{hub1.server.api(), ocm::cluster_deployments, {}, kube::object_decoder(), world};
  const auto wanted = static_cast<std::size_t>(count);
  int code = 1;

  auto steps = [&](async::TaskScope& scope) -> async::Awaitable<> {
    out << "Starting two simulated hubs with Hive, and " << plural(wanted, "ClusterDeployment") << " on hub1 …\n";
    flush(out);
    for (auto* hub : {&hub1, &hub2}) {
      co_await sim::install_crds(hub->server.api(), world);
      scope.spawn(hub->frontend.serve());
      scope.spawn(hub->hive.run());
    }
    for (int i = 1; i <= count; ++i)
      co_await create_deployment(hub1.server.api(), "cluster-" + std::to_string(i), i % 2 == 0);
    std::map<std::string, std::string> states;
    const auto subscription = deployments.subscribe([&](const kube::Key& key, const auto&, const auto& now) {
      auto state = state_of(now.get());
      if (state.empty() || states[key.name] == state) return;
      out << key.name << ": " << state << "\n";
      flush(out);
      states[key.name] = std::move(state);
    });
    scope.spawn(deployments.run());
    scope.spawn(controller.run());
    const auto start = env.clock.now();
    co_await create_relocator(hub1.server.api(), hub2.frontend.kubeconfig_for(sim::admin()));
    const auto limit = async::later(start, relocate_demo_limit);
    while (hub1.server.count(ocm::cluster_deployments) > 0 && env.clock.now() < limit)
      co_await env.clock.sleep_for(50ms);
    const auto there = hub2.server.count(ocm::cluster_deployments);
    const auto here = hub1.server.count(ocm::cluster_deployments);
    const auto destroyed = hub1.hive.count("deprovision") + hub2.hive.count("deprovision");
    code = there == wanted && here == 0 && destroyed == 0 ? 0 : 1;
    std::ostringstream seconds;
    seconds << std::fixed << std::setprecision(1) << std::chrono::duration<double>(env.clock.now() - start).count();
    out << "\n"
        << (code == 0 ? "Success: " : "Failure: ") << there << " of " << count << " ClusterDeployments are on hub2, "
        << here << " on hub1, " << destroyed << " clusters were deprovisioned, after " << seconds.str() << "s.\n";
    scope.stop();
  };
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    auto stopped = [&]() -> async::Awaitable<> {
      co_await stop.wait();
      code = 130;
      scope.stop();
    };
    scope.spawn(stopped());
    co_await async::with_scope(steps);
    scope.stop();
  };
  co_await async::with_scope(body);
  co_return code;
}

}  // namespace hubferry::app
