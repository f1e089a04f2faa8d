#include "hubferry/relocator/plan.hpp"

#include <algorithm>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "relocator/definition.hpp"

namespace hubferry::relocator {

namespace {

/// The source's objects while a plan is made.
struct PlanCaches {
  PlanCaches(kube::Api& source, const kube::Env& env)
      : machine_pools(source, ocm::machine_pools, {}, kube::object_decoder(), env),
        sync_sets(source, ocm::sync_sets, {}, kube::object_decoder(), env),
        identity_providers(source, ocm::sync_identity_providers, {}, kube::object_decoder(), env),
        selector_sync_sets(source, ocm::selector_sync_sets, {}, kube::object_decoder(), env),
        relocators(source, cluster_relocators, {}, kube::object_decoder(), env) {}

  std::vector<ObjectCache*> all() {
    return {&machine_pools, &sync_sets, &identity_providers, &selector_sync_sets, &relocators};
  }

  ObjectCache machine_pools;
  ObjectCache sync_sets;
  ObjectCache identity_providers;
  ObjectCache selector_sync_sets;
  ObjectCache relocators;
};

/// Why the ClusterDeployment does not move, before the destination is looked at.
Awaitable<std::optional<Problem>> problem_here(Services& services, const RelocatorSpec& spec,
                                               const Object& deployment) {
  auto others = matching_relocators(*services.relocators, deployment);
  std::erase_if(others, [&](const RelocatorSpec& one) { return one.name == spec.name; });
  if (!others.empty())
    co_return Problem{reasons::multiple_matches, "these ClusterRelocators match, too: " + names_of(others)};
  if (deployment.is_being_deleted()) co_return Problem{"Deleted", "it is being deleted"};
  if (is_paused_by_user(deployment)) co_return Problem{"Paused", "it is paused by hive.openshift.io/reconcile-pause"};
  if (is_moved_by_hive(deployment)) co_return Problem{reasons::hive_relocate, "Hive is moving it"};
  co_return co_await source_problem(services, deployment);
}

/// Compares what would be copied with what the destination has.
class Comparison {
 public:
  Comparison(std::shared_ptr<Destination> destination, const Object& deployment, const std::string& relocator,
             const std::string& source, PlannedRelocation& planned)
      : copier_(std::move(destination), deployment, relocator, source), planned_(planned) {}

  Awaitable<> add(InventoryItem item) {
    const auto name = item.resource.kind + " " + std::string{item.object.name()};
    note(name, co_await copier_.compare(std::move(item)));
  }
  Awaitable<> add_zone(Object zone) {
    const auto name = "DNSZone " + std::string{zone.name()};
    note(name, co_await copier_.compare_zone(std::move(zone)));
  }

 private:
  void note(const std::string& name, const OrProblem<Presence>& found) {
    if (!found) planned_.obstacles.push_back({name, found.error().message});
    if (found && *found == Presence::equal) planned_.present.push_back(name);
    if (found && *found == Presence::outdated) planned_.outdated.push_back(name);
  }

  Copier copier_;
  PlannedRelocation& planned_;
};

Awaitable<PlannedRelocation> plan_one(Services& services, const RelocatorSpec& spec, Object deployment,
                                      std::shared_ptr<Destination> destination) {
  PlannedRelocation planned;
  planned.deployment = deployment.key();
  auto items = co_await take_inventory(services.source, services.caches, spec, deployment);
  auto problem = co_await problem_here(services, spec, deployment);
  if (!items && !problem) problem = items.error();
  if (items)
    for (const auto& item : *items)
      planned.objects.push_back(item.resource.kind + " " + std::string{item.object.name()});
  const auto found = co_await find_zone(services.source, deployment);
  if (!found) throw std::runtime_error(found.error().describe());
  const auto& zone = *found;
  if (zone) planned.objects.push_back("DNSZone " + std::string{zone->name()});
  auto identity = co_await services.destinations.source_identity();
  if (!identity && !problem) problem = identity.error();
  if (destination != nullptr && !problem) problem = repointed(*destination, deployment);
  if (destination != nullptr && identity) {
    auto look = co_await look_at(*destination, deployment, *identity);
    if (look) {
      planned.on_destination = look->holding == Holding::ours;
      if (!problem && !planned.on_destination) problem = destination_problem(*look, *destination, deployment);
      if (!problem && !planned.on_destination) problem = onward_problem(*destination, deployment);
    } else if (!problem) {
      problem = Problem{reasons::no_connection, look.error().describe()};
    }
    if (look && !planned.on_destination) {
      Comparison comparison{destination, deployment, spec.name, *identity, planned};
      if (items)
        for (auto& item : *items) co_await comparison.add(std::move(item));
      if (zone) co_await comparison.add_zone(*zone);
    }
    auto missing = co_await missing_sync_sets(services, deployment, destination);
    if (missing) planned.missing_sync_sets = std::move(*missing);
  }
  if (!problem && !planned.obstacles.empty())
    problem = Problem{reasons::move_failed, planned.obstacles.front().message};
  if (problem) {
    planned.reason = problem->reason;
    planned.message = problem->message;
  }
  co_return planned;
}

Awaitable<> fill_plan(Services& services, const Object& relocator, RelocationPlan& plan) {
  const auto refuse = [&](const Problem& problem) {
    plan.reason = problem.reason;
    plan.message = problem.message;
  };
  const auto spec = read_spec(relocator);
  if (!spec) {
    refuse(spec.error());
    co_return;
  }
  auto destination = co_await services.destinations.connect(spec->secret);
  if (!destination) refuse(destination.error());
  kube::ListOptions matching;
  matching.label_selector = spec->selector.to_string();
  auto deployments = co_await services.source.list_all(ocm::cluster_deployments, matching);
  if (!deployments) throw std::runtime_error(deployments.error().describe());
  std::ranges::sort(*deployments, {}, [](const Object& one) { return one.key(); });
  const std::shared_ptr<Destination> there = destination ? *destination : nullptr;
  for (const auto& deployment : *deployments)
    plan.deployments.push_back(co_await plan_one(services, *spec, deployment, there));
}

}  // namespace

bool RelocationPlan::can_succeed() const {
  return reason.empty() && !deployments.empty() &&
         std::ranges::all_of(deployments, [](const PlannedRelocation& one) { return one.reason.empty(); });
}

async::Awaitable<RelocationPlan> make_plan(kube::Api& source, hubs::Connect connect, kube::Object relocator,
                                           kube::Env env) {
  for (const auto& kind : {ocm::cluster_deployments, cluster_relocators}) {
    const auto served = co_await source.serves(kind);
    if (!served) throw std::runtime_error(served.error().describe());
    if (!*served)
      throw std::runtime_error("API server " + std::string{source.name()} + " does not serve " + kind.display_name() +
                               ": select another with --kubeconfig");
  }
  Services services{source, std::move(connect), {}, env};
  PlanCaches caches{source, env};
  services.relocators = &caches.relocators;
  services.caches = {&caches.machine_pools, &caches.sync_sets, &caches.identity_providers, &caches.selector_sync_sets};
  RelocationPlan plan;
  plan.name = std::string{relocator.name()};
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (auto* cache : caches.all()) scope.spawn(cache->run());
    for (auto* cache : caches.all()) co_await cache->wait_synced();
    co_await fill_plan(services, relocator, plan);
    scope.stop();
  };
  co_await async::with_scope(body);
  co_return plan;
}

}  // namespace hubferry::relocator
