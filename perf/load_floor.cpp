#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "load_run.hpp"
#include "report.hpp"

namespace hubferry::perf {

namespace {

namespace json = boost::json;
using kube::Key;

/// The writes of one cluster, in their order.
class FloorCluster {
 public:
  FloorCluster(kube::Api& source, kube::Api& target, std::string name, FloorResult& result)
      : source_(source), target_(target), name_(std::move(name)), result_(result) {}

  async::Awaitable<> run(std::vector<sim::FleetObject> objects) {
    co_await annotate(source_, ocm::managed_clusters, Key{"", name_}, "load/claimed");
    for (const auto& object : objects)
      if (is_paused(object.resource)) co_await annotate(source_, object.resource, key_of(object), "load/paused");
    for (auto& object : objects)
      if (moves(object)) co_await copy(std::move(object));
    json::object denied{{"spec", json::object{{"hubAcceptsClient", false}}}};
    auto detached = co_await source_.merge_patch(ocm::managed_clusters, Key{"", name_}, std::move(denied));
    count(detached);
    co_await annotate(target_, ocm::managed_clusters, Key{"", name_}, "load/arrived");
    auto deleted = co_await source_.remove(ocm::managed_clusters, Key{"", name_});
    count(deleted);
  }

 private:
  static bool is_paused(const kube::Resource& resource) {
    return resource == ocm::cluster_deployments || resource == ocm::bare_metal_hosts;
  }
  static Key key_of(const sim::FleetObject& object) {
    return {std::string{kube::string_at(object.object, {"metadata", "namespace"})},
            std::string{kube::string_at(object.object, {"metadata", "name"})}};
  }

  async::Awaitable<> annotate(kube::Api& hub, kube::Resource resource, Key key, std::string annotation) {
    json::object patch{{"metadata", json::object{{"annotations", json::object{{annotation, "true"}}}}}};
    auto patched = co_await hub.merge_patch(resource, key, std::move(patch));
    count(patched);
  }

  async::Awaitable<> copy(sim::FleetObject object) {
    const auto key = key_of(object);
    const auto resource = object.resource;
    // The status of a ManagedCluster comes from its agent.
    auto status = resource == ocm::managed_clusters ? json::object{} : std::move(object.status);
    // A hub deletes the namespace of a cluster that it does not have: it knows them by this label.
    auto& metadata = object.object["metadata"].as_object();
    if (resource == kube::resources::namespaces) metadata.erase("labels");
    metadata.erase("finalizers");
    auto created = co_await target_.create(resource, std::move(object.object));
    count(created);
    if (status.empty()) co_return;
    json::object patch{{"status", std::move(status)}};
    auto patched = co_await target_.merge_patch(resource, key, std::move(patch), "status");
    count(patched);
  }

  void count(const kube::Result<kube::Object>& answer) {
    ++result_.writes;
    if (!answer) throw std::runtime_error("the floor's write failed, of " + name_ + ": " + answer.error().describe());
  }

  kube::Api& source_;
  kube::Api& target_;
  std::string name_;
  FloorResult& result_;
};

async::Awaitable<> work(const LoadOptions& options, Simulator& simulator, int& next, FloorResult& result) {
  const auto plan = options.plan();
  const auto names = sim::fleet_names(plan);
  while (next < options.clusters) {
    const int cluster = next++;
    const auto index = static_cast<std::size_t>(cluster);
    auto& target = simulator.api(options.target_of(options.migration_of(cluster)));
    FloorCluster one{simulator.api(options.hub(1)), target, names[index], result};
    auto objects = sim::fleet_objects(plan, index, {});
    co_await one.run(std::move(objects));
  }
}

}  // namespace

async::Awaitable<FloorResult> run_floor(const LoadOptions& options, Simulator& simulator, LoadEnv&) {
  FloorResult result;
  int next = 0;
  const auto before = figures_of(simulator.pid());
  const Stopwatch watch;
  auto all = [&](async::TaskScope& scope) -> async::Awaitable<> {
    for (int worker = 0; worker < options.in_flight; ++worker) scope.spawn(work(options, simulator, next, result));
    co_return;
  };
  co_await async::with_scope(all);
  result.seconds = watch.seconds();
  result.client_cpu = watch.cpu();
  result.simulator_cpu = figures_of(simulator.pid()).cpu_seconds - before.cpu_seconds;
  co_return result;
}

}  // namespace hubferry::perf
