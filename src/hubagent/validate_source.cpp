#include "hubagent/source_operations.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using ocm::ManagedCluster;

/// The first reason why a cluster cannot be moved, in the order in which a person would fix them.
std::optional<Error> objection(const Hub& hub, const MigrationRef& migration, const std::string& name,
                               const ManagedCluster* cluster) {
  if (cluster == nullptr) return no_such_cluster(hub, name);
  const std::string who = "cluster " + name + " on hub " + hub.name();
  if (cluster->annotation(ocm::names::import_mode_annotation) == "Hosted")
    return failure(reasons::hosted, who + " is imported in hosted mode, which cannot be moved");
  if (cluster->label(ocm::names::local_cluster_label) == "true")
    return failure(reasons::local_cluster, who + " is the hub itself (local-cluster)");
  if (cluster->annotation(ocm::names::on_hub_annotation) == "true" ||
      cluster->label(ocm::names::deploy_mode_label).has_value())
    return failure(reasons::is_hub, who + " is a hub itself");
  if (cluster->is_being_deleted()) return failure(reasons::not_available, who + " is being deleted");
  if (const auto holder = cluster->annotation(ocm::names::migrating_annotation); holder && *holder != migration.uid)
    return failure(reasons::conflict, who + " is being moved by " +
                                          (holder->empty() ? "another tool (it carries the annotation " +
                                                                 std::string{ocm::names::migrating_annotation} + ")"
                                                           : "migration " + std::string{*holder}));
  // Available may be left from before: of a cluster that was let go it says nothing.
  if (!cluster->hub_accepts_client())
    return failure(reasons::not_available, who + " is not accepted by that hub (spec.hubAcceptsClient)");
  if (!cluster->is_true(ocm::names::available))
    return failure(reasons::not_available, who + " is not Available: bring it back, or leave it out");
  return std::nullopt;
}

}  // namespace

Awaitable<Result<Outcome>> validate_on_source(Hub& hub, MigrationRef migration, ClusterNames clusters) {
  auto seen = co_await see_clusters(hub);
  if (!seen) co_return seen.error();
  Outcome outcome;
  for (const auto& name : clusters) {
    const auto cluster = hub.clusters().get(cluster_scoped(name));
    if (const auto error = objection(hub, migration, name, cluster.get()))
      outcome.failed.push_back(failure_of(name, *error));
    else
      outcome.done.push_back(name);
  }
  co_return outcome;
}

}  // namespace hubferry::hubagent
