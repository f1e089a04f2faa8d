#pragma once

#include <set>

#include "hubagent/requests.hpp"

namespace hubferry::hubagent {

/// The ClusterRoleBinding by which a migration lets its bootstrap identity register clusters.
std::string registration_name(const MigrationRef& migration);

/// Approves the certificate requests by which `clusters` register here with the migration's bootstrap identity, until
/// cancelled. Nothing else is approved: the request comes from the account that the migration's own ClusterRoleBinding
/// names, asks for the client certificate of exactly that cluster, and the ManagedCluster is the migration's own copy
/// and accepted. Any other request is left for the hub's administrators and controllers. Errors: the approvals cannot
/// go on at all (hub unreachable, forbidden). Needs Hub::run() beside it.
Awaitable<Result<>> approve_registrations(Hub& hub, MigrationRef migration, std::set<std::string> clusters);

}  // namespace hubferry::hubagent
