#include "hubagent/source_operations.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

Awaitable<Result<>> see_clusters(Hub& hub) {
  // A cache does not tell why it is silent: one live request does.
  kube::ListOptions options;
  options.limit = 1;
  auto attempt = [&] { return hub.api().list(ocm::managed_clusters, options, ocm::managed_cluster_decoder()); };
  auto page = co_await retried(hub, attempt);
  if (!page) co_return in_context(page.error(), "cannot list managed clusters on hub " + hub.name());
  co_await hub.clusters().wait_synced();
  co_return Result<>{};
}

bool is_in_our_hands(const MigrationRef& migration, const Object& cluster) {
  return cluster.annotation(ocm::names::migrating_annotation) == migration.uid;
}

Error no_such_cluster(const Hub& hub, const std::string& cluster) {
  return failure(reasons::not_found, "there is no managed cluster " + cluster + " on hub " + hub.name());
}

Error not_in_our_hands(const Hub& hub, const std::string& cluster, const Object& object) {
  const std::string holder{object.annotation(ocm::names::migrating_annotation)};
  return failure(reasons::conflict,
                 "cluster " + cluster + " on hub " + hub.name() + " is not in this migration's hands, " +
                     (holder.empty() ? "nor in any other's" : "but in those of migration " + holder));
}

}  // namespace hubferry::hubagent
