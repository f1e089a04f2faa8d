#include "app/plan/plan.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <stdexcept>
#include <tuple>

#include "app/cli/table.hpp"
#include "hubferry/migration/phases.hpp"

namespace hubferry::app {

namespace json = kube::json;

namespace {

/// A migration that owns no object on any hub: every claim belongs to another one.
hubagent::MigrationRef unknown_migration() {
  return {"", "plan", "00000000-0000-0000-0000-000000000000"};
}

class Planner {
 public:
  Planner(hubs::Hubs& hubs, PlanRequest request, Serves serves, async::Clock& clock,
          const hubagent::CarriedResources& carried)
      : hubs_(hubs), serves_(std::move(serves)), clock_(clock), carried_(carried) {
    plan_.request = std::move(request);
  }

  async::Awaitable<Plan> run() {
    check_request();
    if (!plan_.problems.empty()) co_return std::move(plan_);
    const bool is_source_there = co_await check_hub(plan_.request.from);
    const bool is_target_there = co_await check_hub(plan_.request.to);
    if (plan_.request.clusters) take_names(*plan_.request.clusters);
    if (is_source_there) co_await look_at_source();
    if (is_target_there) co_await look_at_target();
    if (plan_.problems.empty() && plan_.clusters.empty())
      add({plan_.request.from, "", "NoClusters", "placement " + plan_.request.placement + " selects no cluster"});
    std::sort(plan_.problems.begin(), plan_.problems.end(), [](const PlanProblem& one, const PlanProblem& other) {
      if (one.cluster != other.cluster) return natural_less(one.cluster, other.cluster);
      return std::tie(one.hub, one.reason, one.message) < std::tie(other.hub, other.reason, other.message);
    });
    co_return std::move(plan_);
  }

 private:
  void add(PlanProblem problem) { plan_.problems.push_back(std::move(problem)); }

  void check_request() {
    const auto& request = plan_.request;
    const auto refuse = [&](std::string message) { add({"", "", "Invalid", std::move(message)}); };
    if (request.from.empty()) refuse("spec.from, the source hub, is missing");
    if (request.to.empty()) refuse("spec.to, the target hub, is missing");
    if (!request.from.empty() && request.from == request.to) refuse("source and target hub are both " + request.from);
    if (request.clusters.has_value() == !request.placement.empty()) refuse("give either clusters or a placement");
    if (request.clusters && request.clusters->empty()) refuse("the list of clusters is empty");
    if (!request.timeout_problem.empty()) refuse(request.timeout_problem);
  }

  /// Returns whether the hub can be queried.
  async::Awaitable<bool> check_hub(std::string name) {
    const auto hub = co_await hubs_.find(name);
    std::string wrong;
    if (!hub.exists)
      wrong = "the global hub has no ManagedCluster " + name;
    else if (!hub.is_hub)
      wrong = "ManagedCluster " + name + " is not a hub";
    else if (!hub.available)
      wrong = "hub " + name + " is not Available";
    const bool fine = wrong.empty();
    if (!fine) add({name, "", "HubClusterInvalid", wrong});
    co_return fine;
  }

  /// Duplicate names count once.
  void take_names(hubagent::ClusterNames names) {
    std::sort(names.begin(), names.end(), natural_less);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (auto& name : names) plan_.clusters.push_back({std::move(name), {}});
  }

  [[nodiscard]] hubagent::ClusterNames names() const {
    hubagent::ClusterNames all;
    for (const auto& cluster : plan_.clusters) all.push_back(cluster.name);
    return all;
  }

  async::Awaitable<> look_at_source() {
    const auto& hub = plan_.request.from;
    if (const auto source = hubs_.connection(hub); !source) {
      add({hub, "", "HubClusterInvalid", source.error().message()});
      co_return;
    }
    if (!plan_.request.clusters) co_await resolve_placement();
    if (plan_.clusters.empty()) co_return;
    auto validate = [&](hubagent::SourceHub& source) { return source.validate(unknown_migration(), names()); };
    auto leaving = co_await hubs::on_source(hubs_, hub, validate);
    take(hub, leaving);
    if (leaving) co_await collect(leaving->done);
  }

  async::Awaitable<> look_at_target() {
    const auto& hub = plan_.request.to;
    if (const auto target = hubs_.connection(hub); !target) {
      add({hub, "", "HubClusterInvalid", target.error().message()});
      co_return;
    }
    if (plan_.clusters.empty()) co_return;
    auto validate = [&](hubagent::TargetHub& target) { return target.validate(unknown_migration(), names()); };
    auto coming = co_await hubs::on_target(hubs_, hub, validate);
    take(hub, coming);
    co_await check_kinds();
  }

  async::Awaitable<> resolve_placement() {
    const auto& request = plan_.request;
    auto resolve = [&](hubagent::SourceHub& source) { return source.resolve_placement(request.placement); };
    auto resolved = co_await hubs::on_source(hubs_, request.from, resolve);
    if (resolved) {
      take_names(*resolved);
      co_return;
    }
    const auto error = resolved.error();
    add({request.from, "", reason_of(error), error.message()});
  }

  /// The API server's reason for a failed request, else our own.
  static std::string reason_of(const hubagent::Error& error) {
    if (const auto* request = error.request()) return request->reason.empty() ? "Error" : request->reason;
    return std::string{hubagent::to_string(error.reason())};
  }

  void take(const std::string& hub, const hubagent::Result<hubagent::Outcome>& outcome) {
    if (!outcome) {
      const auto error = outcome.error();
      add({hub, "", reason_of(error), error.message()});
      return;
    }
    for (const auto& failure : outcome->failed)
      add({hub, failure.cluster, std::string{hubagent::to_string(failure.reason)}, failure.message});
  }

  async::Awaitable<> collect(hubagent::ClusterNames names) {
    const auto start = clock_.now();
    hubagent::BundleSink sink = [this](hubagent::Bundle bundle) -> async::Awaitable<> {
      for (const auto& cluster : bundle.clusters) take(cluster);
      co_return;
    };
    auto operation = [&](hubagent::SourceHub& source) { return source.collect(unknown_migration(), names, sink); };
    auto collected = co_await hubs::on_source(hubs_, plan_.request.from, operation);
    plan_.reading = clock_.now() - start;
    take(plan_.request.from, collected);
  }

  void take(const hubagent::ClusterResources& resources) {
    const auto is_it = [&](const PlannedCluster& cluster) { return cluster.name == resources.cluster; };
    const auto cluster = std::find_if(plan_.clusters.begin(), plan_.clusters.end(), is_it);
    if (cluster == plan_.clusters.end()) return;
    for (const auto& carried : resources.objects) {
      const auto text = [&](std::initializer_list<std::string_view> path) {
        return std::string{kube::string_at(carried.object, path)};
      };
      cluster->objects.push_back({text({"apiVersion"}), text({"kind"}), text({"metadata", "namespace"}),
                                  text({"metadata", "name"}), json::serialize(carried.object).size(),
                                  carried.with_status});
    }
  }

  /// Checks only the kinds of objects that would be copied.
  async::Awaitable<> check_kinds() {
    for (const auto& kind : carried_) {
      std::size_t objects = 0;
      for (const auto& cluster : plan_.clusters)
        objects += static_cast<std::size_t>(
            std::count_if(cluster.objects.begin(), cluster.objects.end(), [&](const PlannedObject& object) {
              return object.kind == kind.resource.kind && object.api_version == kind.resource.api_version();
            }));
      if (objects == 0) continue;
      auto served = co_await serves_(kind.resource);
      if (!served)
        add({plan_.request.to, "", "Error", served.error().message});
      else if (!*served)
        add({plan_.request.to, "", "KindNotServed",
             "hub " + plan_.request.to + " does not serve " + kind.resource.display_name() + ", of which " +
                 std::to_string(objects) + " would be copied: install its CRD there"});
    }
  }

  hubs::Hubs& hubs_;
  Serves serves_;
  async::Clock& clock_;
  const hubagent::CarriedResources& carried_;
  Plan plan_;
};

}  // namespace

PlanRequest plan_request_of(const json::object& object) {
  const auto& kind = migration::managed_cluster_migrations;
  if (kube::string_at(object, {"kind"}) != kind.kind || kube::string_at(object, {"apiVersion"}) != kind.api_version())
    throw std::runtime_error("it does not contain a " + kind.kind + " of " + kind.api_version());
  PlanRequest request;
  request.from = kube::string_at(object, {"spec", "from"});
  request.to = kube::string_at(object, {"spec", "to"});
  request.placement = kube::string_at(object, {"spec", "includedManagedClustersPlacementRef"});
  const auto spec = migration::read_spec(object);
  request.timeout_problem = spec.stage_timeout_problem.value_or(std::string{});
  request.stage_timeout = spec.stage_timeout;
  const auto* listed = kube::find(object, {"spec", "includedManagedClusters"});
  if (listed == nullptr) return request;
  if (!listed->is_array()) throw std::runtime_error("spec.includedManagedClusters is not a list");
  request.clusters.emplace();
  for (const auto& name : listed->get_array()) {
    if (!name.is_string())
      throw std::runtime_error("spec.includedManagedClusters contains an item that is not a string");
    request.clusters->emplace_back(name.get_string());
  }
  return request;
}

std::size_t Plan::objects() const {
  std::size_t count = 0;
  for (const auto& cluster : clusters) count += cluster.objects.size();
  return count;
}

std::size_t Plan::bytes() const {
  std::size_t sum = 0;
  for (const auto& cluster : clusters)
    for (const auto& object : cluster.objects) sum += object.bytes;
  return sum;
}

std::map<std::string, std::size_t> Plan::kinds() const {
  std::map<std::string, std::size_t> counts;
  for (const auto& cluster : clusters)
    for (const auto& object : cluster.objects) ++counts[object.kind + " (" + object.api_version + ")"];
  return counts;
}

std::vector<const PlanProblem*> Plan::problems_of(const std::string& cluster) const {
  std::vector<const PlanProblem*> found;
  for (const auto& problem : problems)
    if (problem.cluster == cluster) found.push_back(&problem);
  return found;
}

async::Awaitable<Plan> make_plan(hubs::Hubs& hubs, PlanRequest request, Serves target_serves, async::Clock& clock,
                                 const hubagent::CarriedResources& carried) {
  Planner planner{hubs, std::move(request), std::move(target_serves), clock, carried};
  co_return co_await planner.run();
}

}  // namespace hubferry::app
