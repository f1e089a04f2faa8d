#include <set>

#include "hubagent/annotations.hpp"
#include "hubagent/direct_hubs.hpp"
#include "hubagent/permission_review.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using ocm::ManagedCluster;

void add_clusters(std::set<std::string>& names, const Object& decision) {
  const auto* selected = decision.find({"status", "decisions"});
  if (selected == nullptr || !selected->is_array()) return;
  for (const auto& entry : selected->get_array()) {
    if (!entry.is_object()) continue;
    const auto name = kube::string_at(entry.get_object(), {"clusterName"});
    if (!name.empty()) names.emplace(name);
  }
}

/// The first reason why a cluster cannot be moved, in the order in which a person would fix them.
std::optional<Error> find_problem(const Hub& hub, const MigrationRef& migration, const std::string& name,
                                  const ManagedCluster* cluster) {
  if (cluster == nullptr) return no_such_cluster(hub, name);
  const std::string who = "cluster " + name + " on hub " + hub.name();
  if (cluster->annotation(ocm::names::import_mode_annotation) == "Hosted")
    return Error{FailureReason::cluster_is_hosted, who + " is imported in hosted mode, which cannot be moved"};
  if (cluster->label(ocm::names::local_cluster_label) == "true")
    return Error{FailureReason::cluster_is_local, who + " is the hub itself (local-cluster)"};
  if (cluster->annotation(ocm::names::on_hub_annotation) == "true" ||
      cluster->label(ocm::names::deploy_mode_label).has_value())
    return Error{FailureReason::cluster_is_hub, who + " is a hub itself"};
  if (cluster->is_being_deleted()) return Error{FailureReason::cluster_not_available, who + " is being deleted"};
  if (const auto holder = cluster->annotation(ocm::names::migrating_annotation); holder && *holder != migration.uid)
    return Error{FailureReason::cluster_conflict,
                 who + " is being moved by " +
                     (holder->empty() ? "another tool (it carries the annotation " +
                                            std::string{ocm::names::migrating_annotation} + ")"
                                      : "migration " + std::string{*holder})};
  // The condition Available of a detached cluster is outdated.
  if (!cluster->hub_accepts_client())
    return Error{FailureReason::cluster_not_available, who + " is not accepted by that hub (spec.hubAcceptsClient)"};
  if (!cluster->is_true(ocm::names::available))
    return Error{FailureReason::cluster_not_available,
                 who + " is not Available: repair it, or leave it out of the migration"};
  return std::nullopt;
}

/// Empty: none. While the migration has claimed the cluster, the annotation names a config of the migration.
std::string users_klusterlet_config(const ManagedCluster& cluster, const MigrationRef& migration) {
  const bool claimed = cluster.annotation(ocm::names::migrating_annotation) == migration.uid;
  const auto name =
      cluster.annotation(claimed ? annotations::klusterlet_config_before : ocm::names::klusterlet_config_annotation);
  return std::string{name.value_or(std::string_view{})};
}

}  // namespace

Awaitable<Result<ClusterNames>> DirectSourceHub::resolve_placement(std::string placement) {
  const auto slash = placement.find('/');
  const std::string ns = slash == std::string::npos ? std::string{} : placement.substr(0, slash);
  const std::string name = slash == std::string::npos ? placement : placement.substr(slash + 1);
  if (name.empty() || (slash != std::string::npos && ns.empty()) || name.find('/') != std::string::npos)
    co_return Error{FailureReason::error, "the placement must be given as NAME or NAMESPACE/NAME"};
  std::string selector = std::string{ocm::names::placement_label} + "=" + name;
  auto decisions = co_await list(*hub_, ocm::placement_decisions, ns, std::move(selector));
  if (!decisions) co_return decisions.error();
  std::set<std::string_view> namespaces;
  for (const auto& decision : *decisions) namespaces.insert(decision.ns());
  if (namespaces.size() > 1) {
    std::string found;
    for (const auto one : namespaces) found += (found.empty() ? "" : ", ") + std::string{one} + "/" + name;
    co_return Error{FailureReason::error, "there are several placements " + name + " on hub " + hub_->name() + " (" +
                                              found + "): name one of them as NAMESPACE/NAME"};
  }

  std::set<std::string> names;
  for (const auto& decision : *decisions) add_clusters(names, decision);
  if (decisions->empty())
    co_return Error{FailureReason::placement_not_found, "placement " + placement + " has no decisions on hub " +
                                                            hub_->name() +
                                                            ": does it exist there, and does it select anything?"};
  if (names.empty())
    co_return Error{FailureReason::placement_empty,
                    "placement " + placement + " on hub " + hub_->name() + " selects no cluster"};
  co_return ClusterNames{names.begin(), names.end()};
}

Awaitable<Result<Outcome>> DirectSourceHub::validate(MigrationRef migration, ClusterNames clusters) {
  auto validate_all = [&](ClusterNames all) -> Awaitable<Result<Outcome>> {
    auto synced = co_await wait_for_cluster_cache(*hub_);
    if (!synced) co_return synced.error();
    Outcome outcome;
    for (const auto& name : all) {
      const auto cluster = hub_->clusters().get(cluster_scoped(name));
      if (const auto error = find_problem(*hub_, migration, name, cluster.get()))
        outcome.failed.push_back({name, error->reason(), error->message()});
      else
        outcome.done.push_back(name);
    }
    co_return outcome;
  };
  co_return co_await with_permissions(*hub_, HubRole::source, std::move(clusters), validate_all);
}

Awaitable<Result<KlusterletConfigUses>> DirectSourceHub::klusterlet_configs(MigrationRef migration,
                                                                            ClusterNames clusters) {
  auto synced = co_await wait_for_cluster_cache(*hub_);
  if (!synced) co_return synced.error();
  KlusterletConfigUses uses;
  for (const auto& name : clusters) {
    const auto cluster = hub_->clusters().get(cluster_scoped(name));
    if (cluster == nullptr) continue;
    if (auto config = users_klusterlet_config(*cluster, migration); !config.empty()) uses[config].push_back(name);
  }
  co_return uses;
}

}  // namespace hubferry::hubagent
