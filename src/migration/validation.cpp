#include "migration/validation.hpp"

#include "migration/timeouts.hpp"

namespace hubferry::migration {

namespace {

constexpr const char* bad_hub = "HubClusterInvalid";
constexpr const char* bad_request = "ResourceInvalid";

bool is_given(const Migration& migration, std::string_view field) {
  const auto* value = migration.object.find({"spec", field});
  return value != nullptr && !value->is_null();
}

}  // namespace

std::vector<Problem> request_problems(const Migration& migration) {
  std::vector<Problem> problems;
  const auto from = migration.from();
  const auto to = migration.to();
  if (from.empty()) problems.push_back({bad_hub, "spec.from names no hub"});
  if (to.empty()) problems.push_back({bad_hub, "spec.to names no hub"});
  if (!from.empty() && from == to)
    problems.push_back(
        {bad_hub, "spec.from and spec.to are both '" + from + "': clusters can only move to another hub"});
  const bool lists = is_given(migration, "includedManagedClusters");
  const bool places = is_given(migration, "includedManagedClustersPlacementRef");
  if (lists == places) {
    problems.push_back({bad_request,
                        "exactly one of spec.includedManagedClusters and spec.includedManagedClustersPlacementRef must "
                        "be given"});
  } else if (lists && migration.listed_clusters().value_or(ClusterNames{}).empty()) {
    problems.push_back({bad_request, "spec.includedManagedClusters names no cluster"});
  } else if (places && !migration.placement()) {
    problems.push_back({bad_request, "spec.includedManagedClustersPlacementRef names no placement"});
  }
  if (auto sentence = timeout_problem(migration)) problems.push_back({bad_request, std::move(*sentence)});
  return problems;
}

std::optional<Problem> hub_problem(const hubs::HubInfo& hub) {
  const auto name = "hub '" + hub.name + "' ";
  if (!hub.exists) return Problem{bad_hub, name + "does not exist: the global hub has no ManagedCluster of that name"};
  if (!hub.is_hub) return Problem{bad_hub, name + "is a cluster, but no hub"};
  if (!hub.available)
    return Problem{bad_hub, name + "is not Available: see the conditions of ManagedCluster " + hub.name};
  return std::nullopt;
}

std::string joined(const std::vector<Problem>& problems) {
  std::string text;
  for (const auto& problem : problems) text += (text.empty() ? "" : ". ") + problem.message;
  return text;
}

std::map<std::string, Failure> problems_of_clusters(std::map<std::string, Failure> on_source,
                                                    const std::map<std::string, Failure>& on_target) {
  for (const auto& [cluster, failure] : on_target) {
    auto [entry, is_new] = on_source.try_emplace(cluster, failure);
    if (!is_new) entry->second.message += "; " + failure.message;
  }
  return on_source;
}

}  // namespace hubferry::migration
