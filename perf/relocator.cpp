// What the move of 1,000 ClusterDeployments with 10 objects each costs: requests, CPU and memory. Two simulated hubs
// that take 10 ms for a request, on virtual time and one core: first without Hive, then beside Hive as it is installed.
#include <boost/json/parse.hpp>
#include <map>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/relocator/controller.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/hive_controllers.hpp"
#include "hubferry/sim/network.hpp"
#include "report.hpp"

namespace {

using namespace hubferry;
using namespace std::chrono_literals;
using async::Awaitable;
namespace json = boost::json;

constexpr int deployments = 1000;
constexpr int secrets = 6;
constexpr int objects = secrets + 4;  // and two ConfigMaps, a MachinePool, a SyncSet
const sim::User manager{"manager", {"system:masters"}, ""};

Awaitable<> put(kube::Api& api, kube::Resource kind, std::string text) {
  auto made = co_await api.create(kind, json::parse(text).as_object());
  if (!made) throw std::runtime_error(made.error().describe());
}

std::string named(const std::string& name, const std::string& ns, const std::string& rest) {
  return R"({"metadata": {"name": ")" + name + R"(", "namespace": ")" + ns +
         R"(", "labels": {"hive-instance": "hive2", "hive.openshift.io/cluster-deployment-name": "cluster"}}, )" +
         rest + "}";
}

Awaitable<> fill(kube::Api& api) {
  const std::string payload = R"("data": {"content": ")" + std::string(2000, 'A') + R"("})";
  const std::string reference = R"({"name": "cluster"})";
  for (int i = 0; i < deployments; ++i) {
    const auto ns = "ns-" + std::to_string(i);
    co_await put(api, kube::resources::namespaces, R"({"metadata": {"name": ")" + ns + R"("}})");
    for (int s = 0; s < secrets; ++s)
      co_await put(api, kube::resources::secrets, named("secret-" + std::to_string(s), ns, payload));
    for (int c = 0; c < 2; ++c)
      co_await put(api, kube::resources::config_maps, named("map-" + std::to_string(c), ns, payload));
    co_await put(api, ocm::machine_pools, named("pool", ns, R"("spec": {"clusterDeploymentRef": )" + reference + "}"));
    co_await put(api, ocm::sync_sets, named("set", ns, R"("spec": {"clusterDeploymentRefs": [)" + reference + "]}"));
    co_await put(api, ocm::cluster_deployments,
                 named("cluster", ns, R"("spec": {"baseDomain": "example.com", "installed": true})"));
  }
}

struct Requests {
  std::size_t all = 0;
  std::map<std::string, std::size_t> by_kind;
};

Requests requests_of_manager(const sim::Server& server) {
  Requests found;
  for (const auto& request : server.requests()) {
    if (request.user != manager.name || request.verb == "watch") continue;
    ++found.all;
    ++found.by_kind[server.name() + ": " + request.verb + " " + request.resource +
                    (request.subresource.empty() ? "" : "/" + request.subresource)];
  }
  return found;
}

/// Two hubs, and the manager on the first.
struct Hubs {
  Hubs() {
    options.name = "source";
    source.emplace(options, env);
    options.name = "destination";
    destination.emplace(options, env);
    network.add("https://destination.sim", *destination);
    loop.run(sim::install_crds(source->api(), env));
    loop.run(sim::install_crds(destination->api(), env));
    before_fill = perf::allocated_bytes();
    loop.run(fill(source->api()));
    source->forget_requests();
    on_server = perf::allocated_bytes() - before_fill;
    const auto kubeconfig = kube::encode_base64(kube::to_kubeconfig(network.config_for(*destination, manager)));
    loop.run(put(source->api(), kube::resources::secrets,
                 R"({"metadata": {"name": "destination", "namespace": "default"}, "data": {"kubeconfig": ")" +
                     kubeconfig + R"("}})"));
  }

  Awaitable<> begin() {
    source->forget_requests();
    destination->forget_requests();
    for (auto* server : {&*source, &*destination}) server->faults().on({}).always().delay(sim::Latency::fixed(10ms));
    return put(source->api(), relocator::cluster_relocators,
               R"({"metadata": {"name": "all"}, "spec": {"kubeconfigSecretRef": {"namespace": "default", "name":
                   "destination"}, "clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
  }

  void report_requests(perf::Report& report, async::TimePoint start) {
    const double virtual_seconds = std::chrono::duration<double>(loop.clock().now() - start).count();
    const auto there = requests_of_manager(*destination);
    const auto here = requests_of_manager(*source);
    report.line("moved", static_cast<double>(destination->count(ocm::cluster_deployments)), "ClusterDeployments");
    report.line("rate, 10 at once, 10 ms for a request", deployments / virtual_seconds, "per second");
    report.line("requests per ClusterDeployment", static_cast<double>(there.all + here.all) / deployments, "",
                "at most 3 + 1.2 per object: " + std::to_string(3 + 1.2 * objects));
    report.line("objects per ClusterDeployment, with namespace and itself", objects + 2, "");
    for (const auto& requests : {here, there})
      for (const auto& [kind, count] : requests.by_kind)
        report.line("  " + kind, static_cast<double>(count) / deployments, "per ClusterDeployment");
  }

  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  const kube::Env env{loop.clock(), random, metrics, obs::Logger{}};
  sim::Options options;
  std::optional<sim::Server> source;
  std::optional<sim::Server> destination;
  sim::Network network;
  const hubs::Connect connect = [this](const std::string&, const kube::ClientConfig& config) {
    return network.connect(config);
  };
  double before_fill = 0;
  double on_server = 0;
};

/// Requests, CPU and memory of the manager alone.
void measure_alone(perf::Report& report) {
  Hubs hubs;
  const auto api = hubs.source->api_as(manager);
  relocator::Controller controller{*api, hubs.connect, {}, hubs.env};
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(controller.run());
    // Until each has its condition: that happens once, long before a move.
    co_await hubs.loop.clock().sleep_for(1min);
    const double at_rest = perf::allocated_bytes() - hubs.before_fill - hubs.on_server;
    const double memory = perf::allocated_bytes();
    const perf::Stopwatch watch;
    const auto start = hubs.loop.clock().now();
    co_await hubs.begin();
    double peak = 0;
    while (hubs.source->count(ocm::cluster_deployments) > 0) {
      co_await hubs.loop.clock().sleep_for(100ms);
      const auto copied = static_cast<double>(hubs.destination->count(ocm::cluster_deployments)) / deployments;
      peak = std::max(peak, perf::allocated_bytes() - memory - copied * hubs.on_server);
    }
    hubs.report_requests(report, start);
    report.line("CPU, simulated servers included", watch.cpu() * 1000 / deployments, "ms per ClusterDeployment");
    report.line("memory of its objects on a simulated server", hubs.on_server / deployments / 1024,
                "KiB per ClusterDeployment");
    report.line("memory of the manager at rest", at_rest / deployments / 1024, "KiB per ClusterDeployment",
                "objects that it shares with the server not included");
    report.line("more while they move, at its peak", peak / deployments / 1024, "KiB per ClusterDeployment",
                "the servers' records of requests included");
    scope.stop();
  };
  hubs.loop.run(async::with_scope(body));
}

/// Requests of the manager beside Hive as it is installed on both hubs, which writes to the ClusterDeployments, too.
void measure_beside_hive(perf::Report& report) {
  Hubs hubs;
  const auto api = hubs.source->api_as(manager);
  relocator::Controller controller{*api, hubs.connect, {}, hubs.env};
  sim::HiveControllers here{hubs.source->api(), {}, hubs.env};
  sim::HiveControllers there{hubs.destination->api(), {}, hubs.env};
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(here.run());
    scope.spawn(there.run());
    scope.spawn(controller.run());
    co_await hubs.loop.clock().sleep_for(1min);
    const auto start = hubs.loop.clock().now();
    co_await hubs.begin();
    while (hubs.source->count(ocm::cluster_deployments) > 0) co_await hubs.loop.clock().sleep_for(100ms);
    report.line("beside Hive:", 0, "");
    hubs.report_requests(report, start);
    report.line("deprovisioned", static_cast<double>(here.count("deprovision") + there.count("deprovision")), "", "0");
    scope.stop();
  };
  hubs.loop.run(async::with_scope(body));
}

}  // namespace

int main(int argc, char** argv) {
  perf::Report report{"relocator: 1,000 ClusterDeployments with 10 objects each", argc, argv};
  measure_alone(report);
  measure_beside_hive(report);
}
