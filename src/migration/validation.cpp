#include "hubferry/migration/validation.hpp"

#include <algorithm>

#include "hubferry/kube/names.hpp"
#include "migration/ledger.hpp"
#include "migration/status_report.hpp"

namespace hubferry::migration {

namespace {

std::string hub_text(const std::string& hub) {
  return "hub '" + hub + "'";
}

std::optional<Problem> find_problem(const hubs::HubInfo& hub) {
  const auto problem = [&](const std::string& message) {
    return Problem{hub.name, {}, reasons::hub_invalid, hub_text(hub.name) + " " + message};
  };
  if (!hub.exists) return problem("does not exist: the global hub has no ManagedCluster of that name");
  if (!hub.is_hub) return problem("is a managed cluster, but not a hub");
  if (!hub.available) return problem("is not Available: see the conditions of ManagedCluster " + hub.name);
  return std::nullopt;
}

std::vector<Problem> problems_of(const std::string& hub, const OperationResult<hubagent::Outcome>& outcome) {
  if (!outcome) return {{hub, {}, outcome.error().reason(), operation_failed(hub_text(hub), outcome.error())}};
  std::vector<Problem> problems;
  for (const auto& error : outcome->of_hub)
    problems.push_back({hub, {}, std::string{to_string(error.reason())}, error.message()});
  for (const auto& failed : outcome->failed)
    problems.push_back({hub, failed.cluster, std::string{to_string(failed.reason)}, failed.message});
  return problems;
}

void append(std::vector<Problem>& problems, std::vector<Problem> more) {
  std::ranges::move(more, std::back_inserter(problems));
}

}  // namespace

std::vector<Problem> check_spec(const MigrationSpec& spec) {
  std::vector<Problem> problems;
  const auto add = [&](const char* reason, std::string message) {
    problems.push_back({{}, {}, reason, std::move(message)});
  };
  if (spec.from.empty()) add(reasons::hub_invalid, "spec.from names no hub");
  if (spec.to.empty()) add(reasons::hub_invalid, "spec.to names no hub");
  if (!spec.from.empty() && spec.from == spec.to)
    add(reasons::hub_invalid,
        "spec.from and spec.to are both '" + spec.from + "': clusters can only move to another hub");
  if (spec.clusters.has_value() == spec.placement.has_value())
    add(reasons::spec_invalid,
        "exactly one of spec.includedManagedClusters and spec.includedManagedClustersPlacementRef must be given");
  else if (spec.clusters && spec.clusters->empty())
    add(reasons::spec_invalid, "spec.includedManagedClusters names no cluster");
  else if (spec.placement && spec.placement->empty())
    add(reasons::spec_invalid, "spec.includedManagedClustersPlacementRef names no placement");
  if (spec.stage_timeout_problem) add(reasons::spec_invalid, *spec.stage_timeout_problem);
  return problems;
}

async::Awaitable<std::vector<Problem>> check_hub(ValidationReads& reads, std::string hub) {
  std::vector<Problem> problems;
  auto found = co_await reads.find_hub(hub);
  if (!found)
    problems.push_back({hub, {}, found.error().reason(), operation_failed("the global hub", found.error())});
  else if (auto problem = find_problem(*found))
    problems.push_back(std::move(*problem));
  co_return problems;
}

async::Awaitable<SelectedClusters> select_clusters(ValidationReads& reads, const MigrationSpec& spec) {
  SelectedClusters selected;
  const auto find_excess = [&] {
    if (fits_ledger(selected.clusters)) return;
    selected.problem = {{},
                        {},
                        reasons::error,
                        count_clusters(selected.clusters.size()) +
                            " are too many for one migration: their names do not fit into its ledger, a ConfigMap, "
                            "which is limited to 1 MiB. Move them in several migrations."};
  };
  if (spec.clusters) {
    selected.clusters = *spec.clusters;
    find_excess();
    co_return selected;
  }
  const auto placement = spec.placement.value_or(std::string{});
  auto resolved = co_await reads.resolve_placement(placement);
  if (!resolved) {
    const auto& error = resolved.error();
    selected.problem = {
        spec.from,
        {},
        error.reason(),
        "placement '" + placement + "' cannot be resolved on " + hub_text(spec.from) + ": " + error.message()};
    co_return selected;
  }
  selected.clusters = std::move(*resolved);
  std::ranges::sort(selected.clusters);
  selected.clusters.erase(std::unique(selected.clusters.begin(), selected.clusters.end()), selected.clusters.end());
  if (selected.clusters.empty())
    selected.problem = {spec.from,
                        {},
                        std::string{to_string(hubagent::FailureReason::cluster_not_found)},
                        "placement '" + placement + "' selects no cluster of " + hub_text(spec.from)};
  find_excess();
  co_return selected;
}

std::vector<Problem> check_names(const MigrationSpec& spec, const hubagent::ClusterNames& clusters) {
  std::vector<Problem> problems;
  for (const auto& name : clusters)
    if (!kube::is_dns_subdomain(name))
      problems.push_back({spec.from, name, std::string{to_string(hubagent::FailureReason::cluster_not_found)},
                          "no cluster can have the name '" + name + "'"});
  return problems;
}

async::Awaitable<std::vector<Problem>> check_on_source(ValidationReads& reads, const MigrationSpec& spec,
                                                       hubagent::ClusterNames clusters) {
  auto outcome = co_await reads.validate_on_source(std::move(clusters));
  co_return problems_of(spec.from, outcome);
}

async::Awaitable<std::vector<Problem>> check_on_target(ValidationReads& reads, const MigrationSpec& spec,
                                                       hubagent::ClusterNames clusters) {
  auto outcome = co_await reads.validate_on_target(std::move(clusters));
  co_return problems_of(spec.to, outcome);
}

async::Awaitable<std::vector<Problem>> check_klusterlet_configs(ValidationReads& reads, const MigrationSpec& spec,
                                                                hubagent::ClusterNames clusters) {
  auto outcome = co_await reads.check_klusterlet_configs(std::move(clusters));
  co_return problems_of(spec.to, outcome);
}

async::Awaitable<Validation> validate(ValidationReads& reads, MigrationSpec spec) {
  Validation result;
  result.problems = check_spec(spec);
  if (!result.problems.empty()) co_return result;
  auto source_problems = co_await check_hub(reads, spec.from);
  auto target_problems = co_await check_hub(reads, spec.to);
  const bool has_source = source_problems.empty();
  const bool has_target = target_problems.empty();
  append(result.problems, std::move(source_problems));
  append(result.problems, std::move(target_problems));
  if (spec.clusters || has_source) {
    auto selected = co_await select_clusters(reads, spec);
    result.clusters = std::move(selected.clusters);
    if (selected.problem) result.problems.push_back(std::move(*selected.problem));
  }
  append(result.problems, check_names(spec, result.clusters));
  auto clusters = result.clusters;
  std::erase_if(clusters, [](const std::string& name) { return !kube::is_dns_subdomain(name); });
  if (clusters.empty()) co_return result;
  if (has_source) append(result.problems, co_await check_on_source(reads, spec, clusters));
  if (has_target) append(result.problems, co_await check_on_target(reads, spec, clusters));
  if (has_source && has_target) append(result.problems, co_await check_klusterlet_configs(reads, spec, clusters));
  co_return result;
}

std::string joined(const std::vector<Problem>& problems) {
  std::string text;
  for (const auto& problem : problems) text += (text.empty() ? "" : ". ") + problem.message;
  return text;
}

}  // namespace hubferry::migration
