#include <set>

#include "hubagent/source_operations.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

void add_clusters(std::set<std::string>& names, const Object& decision) {
  const auto* chosen = decision.find({"status", "decisions"});
  if (chosen == nullptr || !chosen->is_array()) return;
  for (const auto& entry : chosen->get_array()) {
    if (!entry.is_object()) continue;
    const auto name = kube::string_at(entry.get_object(), {"clusterName"});
    if (!name.empty()) names.emplace(name);
  }
}

}  // namespace

Awaitable<Result<ClusterNames>> resolve_placement(Hub& hub, std::string placement) {
  if (placement.empty()) co_return failure(reasons::other, "the name of the placement is empty");
  std::string selector = std::string{ocm::names::placement_label} + "=" + placement;
  auto decisions = co_await list(hub, ocm::placement_decisions, {}, std::move(selector));
  if (!decisions) co_return decisions.error();

  std::set<std::string> names;
  for (const auto& decision : *decisions) add_clusters(names, decision);
  if (decisions->empty())
    co_return Error{ErrorKind::not_found, 0, "PlacementNotFound",
                    "placement " + placement + " has no decisions on hub " + hub.name() +
                        ": does it exist there, and does it select anything?",
                    std::nullopt};
  if (names.empty())
    co_return failure("PlacementEmpty", "placement " + placement + " on hub " + hub.name() + " selects no cluster");
  co_return ClusterNames{names.begin(), names.end()};
}

}  // namespace hubferry::hubagent
