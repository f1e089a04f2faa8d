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
  if (!requests) co_return requests.error();
  co_return std::ranges::any_of(*requests, [&](const Object& request) {
    return request.string_at({"spec", "username"}) == right.user && is_created_since(request, right.since) &&
           ocm::read_agent_request(request).has_value();
  });
}

/// True if nobody else has anything to do with it, as far as it shows.
bool may_be_adopted(const Object& cluster) {
  const auto* owners = cluster.find({"metadata", "ownerReferences"});
  const bool has_owner = owners != nullptr && owners->is_array() && !owners->get_array().empty();
  return cluster.label(migration_label).empty() && cluster.annotation(ocm::names::migrating_annotation).empty() &&
         !has_owner && !cluster.is_being_deleted();
}

/// Accepts it as a copy would be, unless an administrator has denied it.
void accept_new(json::object& object) {
  const Object cluster{object};
  const bool was_accepted = kube::find_condition(cluster, ocm::names::accepted) != nullptr ||
                            !cluster.annotation(ocm::names::accepted_on_annotation).empty();
  if (!was_accepted) kube::object_in(object, "spec")["hubAcceptsClient"] = true;
}

}  // namespace

Awaitable<Result<bool>> is_registered(const Hub& hub, MigrationRef migration, RegistrationRight right,
                                      std::string cluster) {
  auto found = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  const bool has_copy = *found && is_ours(migration, **found);
  // Only an agent sets it; it stays when the agent is gone.
  if (has_copy && kube::find_condition(**found, ocm::names::joined) != nullptr) co_return true;
  if (right.user.empty()) co_return false;
  auto requested = co_await has_requested(hub, std::move(right), cluster);
  if (!requested && requested.error().is(ErrorKind::forbidden)) co_return has_copy;
  co_return requested;
}

Awaitable<Result<bool>> adopt_registered(const Hub& hub, MigrationRef migration, std::string cluster) {
  auto present = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!present) co_return present.error();
  if (!*present) co_return false;
  const Object& found = **present;
  if (!may_be_adopted(found)) co_return false;
  auto right = co_await registration_right(hub, migration);
  if (!right) co_return right.error();
  if (right->user.empty() || !is_created_since(found, right->since)) co_return false;
  auto proven = co_await has_requested(hub, *right, cluster);
  if (!proven && proven.error().is(ErrorKind::forbidden)) co_return false;
  if (!proven) co_return proven.error();
  if (!*proven) co_return false;
  auto take = [&](json::object& object) {
    const Object current{object};
    if (current.uid() != found.uid() || !may_be_adopted(current)) return false;
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

}  // namespace hubferry::hubagent
