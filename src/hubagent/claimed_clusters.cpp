#include "hubagent/annotations.hpp"
#include "hubagent/direct_hubs.hpp"
#include "hubferry/ocm/resources.hpp"

/// Which clusters a migration has touched, as the hubs themselves know it. Read from the API server: a cache may not
/// have seen the last write of a predecessor yet.
namespace hubferry::hubagent {

Awaitable<Result<ClusterNames>> DirectSourceHub::claimed(MigrationRef migration) {
  auto clusters = co_await list(*hub_, ocm::managed_clusters, {});
  if (!clusters) co_return clusters.error();
  ClusterNames names;
  for (const auto& cluster : *clusters)
    if (is_claimed_by(migration, cluster)) names.emplace_back(cluster.name());
  std::ranges::sort(names);
  co_return names;
}

Awaitable<Result<ClusterNames>> DirectTargetHub::copied(MigrationRef migration) {
  auto clusters = co_await list(*hub_, ocm::managed_clusters, {}, ours_selector(migration));
  if (!clusters) co_return clusters.error();
  ClusterNames names;
  for (const auto& cluster : *clusters) names.emplace_back(cluster.name());
  std::ranges::sort(names);
  co_return names;
}

}  // namespace hubferry::hubagent
