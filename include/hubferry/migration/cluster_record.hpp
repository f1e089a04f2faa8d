#pragma once

#include <string>
#include <vector>

#include "hubferry/kube/object.hpp"

namespace hubferry::migration {

/// What became of one cluster of a migration.
struct ClusterRecord {
  std::string name;
  bool arrived = false;      // Available on the target
  bool failed = false;       // for the reason below
  bool rolled_back = false;  // of the failed ones: attached to the source again
  std::string stage;         // the phase in which it failed
  std::string reason;
  std::string message;
  std::string waiting;  // what its pending rollback or cleanup waits for
};

/// All clusters, from the ledger: the ConfigMap beside the migration. By name.
std::vector<ClusterRecord> read_clusters(const kube::Object& config_map);

}  // namespace hubferry::migration
