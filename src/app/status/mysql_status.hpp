#pragma once

#include <string>
#include <vector>

#include "app/cli/terminal.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::app {

/// MySQLClusters, one per line; then the MySQLBackups, if there are any.
std::vector<std::string> mysql_table(const std::vector<kube::Object>& clusters,
                                     const std::vector<kube::Object>& backups, const Terminal& terminal);
/// One MySQLCluster: its conditions, servers, last failover and backups. `backups` may have those of others.
std::vector<std::string> mysql_details(const kube::Object& cluster, const std::vector<kube::Object>& backups,
                                       const Terminal& terminal);

}  // namespace hubferry::app
