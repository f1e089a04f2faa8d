#include "hubagent/helpers.hpp"
#include "hubagent/target_operations.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using kube::resources::cluster_role_bindings;
using kube::resources::cluster_roles;

std::string review_name(const MigrationRef& migration) {
  return "global-hub-migration-" + migration.name + "-sar";
}

std::string registration_name(const MigrationRef& migration) {
  return "global-hub-migration-" + migration.name + "-registration";
}

/// The agent asks whether it may, before it decides which hub to go to.
json::object review_role() {
  json::object rule;
  rule["apiGroups"] = json::array{"authorization.k8s.io"};
  rule["resources"] = json::array{"subjectaccessreviews"};
  rule["verbs"] = json::array{"create"};
  json::object role;
  role["rules"] = json::array{std::move(rule)};
  return role;
}

json::object binding_to(const std::string& role, const BootstrapIdentity& identity) {
  json::object subject;
  subject["kind"] = "ServiceAccount";
  subject["name"] = identity.name;
  subject["namespace"] = identity.ns;
  json::object reference;
  reference["apiGroup"] = "rbac.authorization.k8s.io";
  reference["kind"] = "ClusterRole";
  reference["name"] = role;
  json::object binding;
  binding["roleRef"] = std::move(reference);
  binding["subjects"] = json::array{std::move(subject)};
  return binding;
}

/// A binding's role cannot be changed: one of ours with another role is made anew.
Awaitable<Result<>> put_binding(const Hub& hub, MigrationRef migration, std::string name, std::string role,
                                BootstrapIdentity identity) {
  const Key key = cluster_scoped(name);
  auto found = co_await read_if_there(hub, cluster_role_bindings, key);
  if (!found) co_return found.error();
  if (*found && is_ours(migration, **found) && (*found)->string_at({"roleRef", "name"}) != role) {
    auto removed = co_await remove(hub, cluster_role_bindings, **found);
    if (!removed) co_return removed.error();
  }
  auto wanted = binding_to(role, identity);
  auto written = co_await put_helper(hub, migration, cluster_role_bindings, key, std::move(wanted));
  if (!written) co_return written.error();
  co_return Result<>{};
}

/// What a bootstrap identity is allowed on this hub: ACM's role, or plain OCM's.
Awaitable<Result<std::string>> bootstrap_role(const Hub& hub) {
  for (const char* name : {ocm::names::acm_bootstrap_role, ocm::names::ocm_bootstrap_role}) {
    auto role = co_await read_if_there(hub, cluster_roles, cluster_scoped(name));
    if (!role) co_return role.error();
    if (*role) co_return std::string{name};
  }
  co_return failure(reasons::other, "hub " + hub.name() + " has neither ClusterRole " + ocm::names::acm_bootstrap_role +
                                        " nor " + ocm::names::ocm_bootstrap_role +
                                        ": is Open Cluster Management installed there?");
}

}  // namespace

Awaitable<Result<>> initialize_on_target(Hub& hub, MigrationRef migration, BootstrapIdentity identity) {
  auto role = co_await bootstrap_role(hub);
  if (!role) co_return role.error();
  auto review_key = cluster_scoped(review_name(migration));
  auto review = co_await put_helper(hub, migration, cluster_roles, review_key, review_role());
  if (!review) co_return review.error();
  auto may_ask = co_await put_binding(hub, migration, review_name(migration), review_name(migration), identity);
  if (!may_ask) co_return may_ask.error();
  auto may_register = co_await put_binding(hub, migration, registration_name(migration), *role, identity);
  if (!may_register) co_return may_register.error();
  co_return co_await approve_automatically(hub, identity.user());
}

Awaitable<Result<>> delete_target_objects(Hub& hub, MigrationRef migration, BootstrapIdentity identity) {
  auto unapproved = co_await end_automatic_approval(hub, identity.user());
  if (!unapproved) co_return unapproved.error();
  for (const auto& name : {registration_name(migration), review_name(migration)}) {
    auto unbound = co_await remove_helper(hub, migration, cluster_role_bindings, cluster_scoped(name));
    if (!unbound) co_return unbound.error();
  }
  auto role = co_await remove_helper(hub, migration, cluster_roles, cluster_scoped(review_name(migration)));
  if (!role) co_return role.error();
  Key account_key{identity.ns, identity.name};
  auto account = co_await remove_helper(hub, migration, kube::resources::service_accounts, account_key);
  if (!account) co_return account.error();
  co_return co_await leave_namespace(hub, migration, identity.ns);
}

}  // namespace hubferry::hubagent
