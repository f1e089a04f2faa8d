#include "hubagent/self_registration.hpp"

#include <algorithm>

#include "hubagent/annotations.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/agent_request.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// By the clock of the API server, to the second. Unknown: not since then.
bool is_created_since(const Object& object, async::WallTime since) {
  try {
    return async::parse_time(object.string_at({"metadata", "creationTimestamp"})) >= since;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

/// True if the cluster's agent has requested a certificate with the migration's credential. Requests of a previous
/// migration with an account of the same name do not count.
Awaitable<Result<bool>> has_requested(const Hub& hub, RegistrationRight right, std::string cluster) {
  const std::string of_cluster = std::string{ocm::names::cluster_name_label} + "=" + cluster;
  auto requests = co_await list(hub, kube::resources::certificate_signing_requests, {}, of_cluster);
  if (!requests && requests.error().is(ErrorKind::forbidden)) co_return false;
  if (!requests) co_return requests.error();
  co_return std::ranges::any_of(*requests, [&](const Object& request) {
    return request.string_at({"spec", "username"}) == right.user && is_created_since(request, right.since) &&
           ocm::read_agent_request(request).has_value();
  });
}

/// Accepts it as a copy would be, unless an administrator has denied it.
void accept_new(json::object& object) {
  const Object cluster{object};
  const bool was_accepted = kube::find_condition(cluster, ocm::names::accepted) != nullptr ||
                            !cluster.annotation(ocm::names::accepted_on_annotation).empty();
  if (!was_accepted) kube::object_in(object, "spec")["hubAcceptsClient"] = true;
}

}  // namespace

Awaitable<Result<bool>> adopt_registered(const Hub& hub, MigrationRef migration, std::string cluster) {
  auto present = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!present) co_return present.error();
  if (!*present) co_return false;
  const Object& found = **present;
  if (!found.label(migration_label).empty() || found.is_being_deleted()) co_return false;
  auto right = co_await registration_right(hub, migration);
  if (!right) co_return right.error();
  if (right->user.empty() || !is_created_since(found, right->since)) co_return false;
  auto proven = co_await has_requested(hub, *right, cluster);
  if (!proven) co_return proven.error();
  if (!*proven) co_return false;
  auto take = [&](json::object& object) {
    const Object current{object};
    if (current.uid() != found.uid() || current.is_being_deleted() || !current.label(migration_label).empty())
      return false;
    accept_new(object);
    return set_label(object, migration_label, migration.uid);
  };
  auto adopted = co_await edit(hub, ocm::managed_clusters, found, take);
  if (!adopted && adopted.error().is(ErrorKind::not_found)) co_return false;
  if (!adopted) co_return adopted.error();
  if (!is_ours(migration, *adopted)) co_return false;
  hub.env().log.info("cluster registered by itself, adopted",
                     {{"cluster", cluster}, {"migration", migration.name}, {"user", right->user}});
  co_return true;
}

Error just_adopted(const Hub& hub, const std::string& cluster) {
  return {FailureReason::resource_differs,
          "cluster " + cluster + " had registered on hub " + hub.name() +
              " by itself, without the copy of this migration; it is the migration's own from now on"};
}

}  // namespace hubferry::hubagent
