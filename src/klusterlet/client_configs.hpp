#pragma once

#include <vector>

#include "hubferry/klusterlet/local_store.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::klusterlet {

/// Adds the servers that a ManagedCluster's managedClusterClientConfigs does not have yet; true if there were any. None
/// is removed: administrators and other agents add theirs.
bool add_client_configs(kube::json::object& cluster, const std::vector<ExternalServer>& servers);

}  // namespace hubferry::klusterlet
