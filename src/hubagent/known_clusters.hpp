#pragma once

#include <map>
#include <optional>
#include <string>

#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/object.hpp"
#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::hubagent {

/// The ManagedClusters of a source as we claimed them, so that they need not be read again for the first copy, which
/// is compared with the source before anything is deleted there. Never for a comparison or a deletion: only accepted
/// clusters are kept, and in Cleaning the source accepts none any more.
/// Executor: one loop.
class KnownClusters {
 public:
  explicit KnownClusters(const kube::Cache<ocm::ManagedCluster>& watched) : watched_(watched) {}

  void remember(const kube::Object& cluster);
  /// Absent unless the hub's watch shows no other version. Forgets it.
  [[nodiscard]] std::optional<kube::Object> take(const std::string& cluster);

 private:
  struct Known {
    std::string resource_version;
    std::string text;  // JSON: a tree would take several times as much
  };

  void forget(const std::string& cluster);

  const kube::Cache<ocm::ManagedCluster>& watched_;
  std::map<std::string, Known> clusters_;
  std::size_t bytes_ = 0;
};

}  // namespace hubferry::hubagent
