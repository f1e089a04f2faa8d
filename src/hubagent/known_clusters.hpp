#pragma once

#include <map>
#include <optional>
#include <string>

#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/object.hpp"
#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::hubagent {

/// The ManagedClusters of a source as we claimed them, so that they need not be read again for the first copy, which
/// is compared with the source before anything is deleted there. Never for a comparison: only accepted clusters are
/// kept like that, and in Cleaning the source accepts none any more.
///
/// Of those that the source denies, the version that was read to be compared: a deletion of that very version needs no
/// look before it, since the API server refuses it if anybody has changed the cluster since.
/// Executor: one loop.
class KnownClusters {
 public:
  explicit KnownClusters(const kube::Cache<ocm::ManagedCluster>& watched) : watched_(watched) {}

  void remember(const kube::Object& cluster);
  /// It was claimed, and not copied since; somebody may have changed it meanwhile. False for every cluster that is
  /// compared.
  [[nodiscard]] bool is_to_be_copied(const std::string& cluster) const;
  /// Absent unless the hub's watch shows no other version. Forgets it.
  [[nodiscard]] std::optional<kube::Object> take(const std::string& cluster);

  /// Nothing, if the source accepts the cluster or deletes it.
  void remember_denied(const kube::Object& cluster);
  /// With who has claimed it, and for a deletion only. Forgets it.
  [[nodiscard]] std::optional<kube::Object> take_denied(const std::string& cluster);

 private:
  struct Known {
    std::string resource_version;
    std::string text;  // JSON: a tree would take several times as much
  };

  void forget(const std::string& cluster);

  const kube::Cache<ocm::ManagedCluster>& watched_;
  std::map<std::string, Known> clusters_;
  std::size_t bytes_ = 0;
  std::map<std::string, kube::Object> denied_;
};

}  // namespace hubferry::hubagent
