#include "app/plan/plan.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "app/cli/flag_values.hpp"
#include "app/cli/terminal.hpp"
#include "hubferry/sim/crds.hpp"

namespace hubferry::app {

namespace json = kube::json;

namespace {

/// A migration that owns no object on any hub: every claim belongs to another one.
hubagent::MigrationRef unknown_migration() {
  return {"", "plan", "00000000-0000-0000-0000-000000000000"};
}

/// Reads for the validation, each once.
class PlanReads final : public migration::ValidationReads {
 public:
  PlanReads(hubs::Hubs& hubs, const migration::MigrationSpec& spec) : hubs_(hubs), spec_(spec) {}

  async::Awaitable<migration::OperationResult<hubs::HubInfo>> find_hub(std::string hub) override {
    co_return co_await hubs_.find(std::move(hub));
  }
  async::Awaitable<migration::OperationResult<hubagent::ClusterNames>> resolve_placement(
      std::string placement) override {
    auto resolve = [&](hubagent::SourceHub& source) { return source.resolve_placement(placement); };
    co_return converted(co_await hubs::on_source(hubs_, spec_.from, resolve));
  }
  async::Awaitable<migration::OperationResult<hubagent::Outcome>> validate_on_source(
      hubagent::ClusterNames clusters) override {
    auto validate = [&](hubagent::SourceHub& source) { return source.validate(unknown_migration(), clusters); };
    co_return converted(co_await hubs::on_source(hubs_, spec_.from, validate));
  }
  async::Awaitable<migration::OperationResult<hubagent::Outcome>> validate_on_target(
      hubagent::ClusterNames clusters) override {
    auto validate = [&](hubagent::TargetHub& target) { return target.validate(unknown_migration(), clusters); };
    co_return converted(co_await hubs::on_target(hubs_, spec_.to, validate));
  }
  async::Awaitable<migration::OperationResult<hubagent::Outcome>> check_klusterlet_configs(
      hubagent::ClusterNames clusters) override {
    auto find = [&](hubagent::SourceHub& source) { return source.klusterlet_configs(unknown_migration(), clusters); };
    auto uses = converted(co_await hubs::on_source(hubs_, spec_.from, find));
    if (!uses) co_return uses.error();
    if (uses->empty()) co_return hubagent::Outcome{};
    auto check = [&](hubagent::TargetHub& target) { return target.check_klusterlet_configs(*uses); };
    co_return converted(co_await hubs::on_target(hubs_, spec_.to, check));
  }

 private:
  template <typename T>
  static migration::OperationResult<T> converted(hubagent::Result<T> result) {
    if (!result) return migration::OperationError{result.error()};
    return std::move(*result);
  }

  hubs::Hubs& hubs_;
  const migration::MigrationSpec& spec_;
};

class Planner {
 public:
  Planner(hubs::Hubs& hubs, migration::MigrationSpec spec, Serves serves, async::Clock& clock,
          const hubagent::CarriedResources& carried)
      : hubs_(hubs), serves_(std::move(serves)), clock_(clock), carried_(carried) {
    plan_.spec = std::move(spec);
  }

  async::Awaitable<Plan> run() {
    PlanReads reads{hubs_, plan_.spec};
    auto validation = co_await migration::validate(reads, plan_.spec);
    plan_.problems = std::move(validation.problems);
    std::ranges::sort(validation.clusters, natural_less);
    for (auto& name : validation.clusters) plan_.clusters.push_back({std::move(name), {}});
    if (is_usable(plan_.spec.from)) co_await collect(clusters_without_problem(plan_.spec.from));
    if (is_usable(plan_.spec.to)) co_await check_kinds();
    std::ranges::sort(plan_.problems, [](const migration::Problem& one, const migration::Problem& other) {
      if (one.cluster != other.cluster) return natural_less(one.cluster, other.cluster);
      return std::tie(one.hub, one.reason, one.message) < std::tie(other.hub, other.reason, other.message);
    });
    co_return std::move(plan_);
  }

 private:
  void add(migration::Problem problem) { plan_.problems.push_back(std::move(problem)); }

  /// False if the hub as a whole has a problem; those of single clusters do not count.
  [[nodiscard]] bool is_usable(const std::string& hub) const {
    return std::ranges::none_of(plan_.problems, [&](const migration::Problem& problem) {
      return problem.cluster.empty() && (problem.hub.empty() || problem.hub == hub);
    });
  }

  [[nodiscard]] hubagent::ClusterNames clusters_without_problem(const std::string& hub) const {
    std::unordered_set<std::string_view> with_problem;
    for (const auto& problem : plan_.problems)
      if (problem.hub == hub) with_problem.insert(problem.cluster);
    hubagent::ClusterNames names;
    for (const auto& cluster : plan_.clusters)
      if (!with_problem.contains(cluster.name)) names.push_back(cluster.name);
    return names;
  }

  async::Awaitable<> collect(hubagent::ClusterNames names) {
    if (names.empty()) co_return;
    const auto& hub = plan_.spec.from;
    const auto start = clock_.now();
    hubagent::BundleSink sink = [this](hubagent::Bundle bundle) -> async::Awaitable<> {
      for (const auto& cluster : bundle.clusters) take(cluster);
      co_return;
    };
    auto operation = [&](hubagent::SourceHub& source) { return source.collect(unknown_migration(), names, sink); };
    auto collected = co_await hubs::on_source(hubs_, hub, operation);
    plan_.reading = clock_.now() - start;
    if (!collected) {
      const migration::OperationError error{collected.error()};
      add({hub, "", error.reason(), migration::operation_failed("hub '" + hub + "'", error)});
      co_return;
    }
    for (const auto& failure : collected->failed)
      add({hub, failure.cluster, std::string{hubagent::to_string(failure.reason)}, failure.message});
  }

  void take(const hubagent::ClusterResources& resources) {
    const auto cluster =
        std::ranges::lower_bound(plan_.clusters, resources.cluster, natural_less, &PlannedCluster::name);
    if (cluster == plan_.clusters.end() || cluster->name != resources.cluster) return;
    cluster->staying = resources.staying;
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
        add({plan_.spec.to, "", "Error", served.error().message});
      else if (!*served)
        add({plan_.spec.to, "", "KindNotServed",
             "hub " + plan_.spec.to + " does not serve " + kind.resource.display_name() + ", of which " +
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

namespace {

/// The schema of migrations, from the CRD that is part of the binary.
const json::object* migration_schema() {
  const auto& kind = migration::managed_cluster_migrations;
  for (const auto& crd : sim::crds()) {
    if (kube::string_at(crd, {"spec", "names", "kind"}) != kind.kind) continue;
    const auto* versions = kube::find(crd, {"spec", "versions"});
    if (versions == nullptr || !versions->is_array()) return nullptr;
    for (const auto& version : versions->get_array())
      if (const auto* schema = kube::find(version, {"schema", "openAPIV3Schema"});
          schema != nullptr && schema->is_object())
        return &schema->get_object();
  }
  return nullptr;
}

/// The API server prunes what the CRD does not have: a misspelled field would silently mean its default. A name with
/// control characters is never valid, and must not reach a terminal.
void check_value(const json::value& value, const json::object& schema, const std::string& path) {
  if (value.is_string() &&
      std::ranges::any_of(value.get_string(), [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    throw std::runtime_error(path + " contains a control character: " + json::serialize(value));
  if (const auto* items = schema.if_contains("items"); items != nullptr && items->is_object() && value.is_array())
    for (std::size_t at = 0; at < value.get_array().size(); ++at)
      check_value(value.get_array()[at], items->get_object(), path + "[" + std::to_string(at) + "]");
  const auto* properties = schema.if_contains("properties");
  if (properties == nullptr || !properties->is_object() || !value.is_object()) return;
  std::vector<std::string> known;
  for (const auto& property : properties->get_object()) known.emplace_back(property.key());
  for (const auto& [name, field] : value.get_object()) {
    const auto* property = properties->get_object().if_contains(name);
    const std::string where = path.empty() ? std::string{name} : path + "." + std::string{name};
    if (property == nullptr || !property->is_object()) {
      const auto meant = nearest(name, known);
      throw std::runtime_error("unknown field " + json::serialize(json::value(where)) +
                               (meant ? " (did you mean " + *meant + "?)" : ""));
    }
    check_value(field, property->get_object(), where);
  }
}

/// Throws std::runtime_error that names the first field which migrations do not have.
void check_fields(const json::object& migration) {
  const auto* schema = migration_schema();
  const auto* spec = migration.if_contains("spec");
  const auto* spec_schema = schema == nullptr ? nullptr : kube::find(*schema, {"properties", "spec"});
  if (spec != nullptr && spec_schema != nullptr && spec_schema->is_object())
    check_value(*spec, spec_schema->get_object(), "spec");
  for (const auto& field : migration)
    if (const std::string_view name = field.key();
        name != "apiVersion" && name != "kind" && name != "metadata" && name != "spec" && name != "status")
      throw std::runtime_error("unknown field " + json::serialize(json::value(field.key())));
}

}  // namespace

migration::MigrationSpec plan_spec_of(const json::object& object) {
  const auto& kind = migration::managed_cluster_migrations;
  if (kube::string_at(object, {"kind"}) != kind.kind || kube::string_at(object, {"apiVersion"}) != kind.api_version())
    throw std::runtime_error("it does not contain a " + kind.kind + " of " + kind.api_version());
  if (const auto* listed = kube::find(object, {"spec", "includedManagedClusters"})) {
    if (!listed->is_array()) throw std::runtime_error("spec.includedManagedClusters is not a list");
    if (!std::ranges::all_of(listed->get_array(), [](const json::value& name) { return name.is_string(); }))
      throw std::runtime_error("spec.includedManagedClusters contains an item that is not a string");
  }
  check_fields(object);
  return migration::read_spec(object);
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

async::Awaitable<Plan> make_plan(hubs::Hubs& hubs, migration::MigrationSpec spec, Serves target_serves,
                                 async::Clock& clock, const hubagent::CarriedResources& carried) {
  Planner planner{hubs, std::move(spec), std::move(target_serves), clock, carried};
  co_return co_await planner.run();
}

}  // namespace hubferry::app
