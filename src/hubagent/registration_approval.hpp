#pragma once

#include <set>

#include "hubagent/requests.hpp"

namespace hubferry::hubagent {

/// The ClusterRoleBinding by which a migration lets its bootstrap identity register clusters.
std::string registration_name(const MigrationRef& migration);

/// What it says.
struct RegistrationRight {
  std::string user;         // the clusters' account; empty: there is no binding, or it is not the migration's own
  async::WallTime since{};  // nobody registered by it before, by the clock of the hub's API server
};
Awaitable<Result<RegistrationRight>> registration_right(const Hub& hub, MigrationRef migration);

/// Approves the certificate requests by which `clusters` register here with the migration's bootstrap identity, until
/// cancelled. Nothing else is approved: the request comes from the account that the migration's own ClusterRoleBinding
/// names, asks for the client certificate of exactly that cluster, and the ManagedCluster is the migration's own copy.
/// Any other request is left for the hub's administrators and controllers. A copy that is denied gets its certificate
/// too. It gives no access; but an agent whose request is not answered waits for ever, while one that has a certificate
/// finds itself denied and returns to the source.
/// Errors: the approvals cannot go on at all (hub unreachable, forbidden). Needs Hub::run() beside it.
Awaitable<Result<>> approve_registrations(Hub& hub, MigrationRef migration, std::set<std::string> clusters);

}  // namespace hubferry::hubagent
