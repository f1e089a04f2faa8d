#include "hubagent/direct_hubs.hpp"
#include "hubagent/own_objects.hpp"
#include "hubagent/registration_approval.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using kube::resources::cluster_role_bindings;
using kube::resources::cluster_roles;
using kube::resources::service_accounts;

constexpr std::int64_t token_lifetime_seconds = 24 * 3600;

kube::Request token_request(const Key& account) {
  json::object spec;
  spec["expirationSeconds"] = token_lifetime_seconds;
  json::object body;
  body["apiVersion"] = "authentication.k8s.io/v1";
  body["kind"] = "TokenRequest";
  body["spec"] = std::move(spec);
  kube::Request request;
  request.verb = kube::Verb::create;
  request.resource = service_accounts;
  request.key = account;
  request.subresource = "token";
  request.body = std::move(body);
  return request;
}

std::string review_name(const MigrationRef& migration) {
  return "global-hub-migration-" + migration.name + "-sar";
}

/// The agent reviews its own access before it selects a hub.
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

/// The role of a binding is immutable: one of ours with another role is deleted and created again.
Awaitable<Result<>> put_binding(const Hub& hub, MigrationRef migration, std::string name, std::string role,
                                BootstrapIdentity identity) {
  const Key key = cluster_scoped(name);
  auto found = co_await get_if_exists(hub, cluster_role_bindings, key);
  if (!found) co_return found.error();
  if (*found && is_ours(migration, **found) && (*found)->string_at({"roleRef", "name"}) != role) {
    auto deleted = co_await delete_object(hub, cluster_role_bindings, **found);
    if (!deleted) co_return deleted.error();
  }
  auto wanted = binding_to(role, identity);
  auto written = co_await put_own_object(hub, migration, cluster_role_bindings, key, std::move(wanted));
  if (!written) co_return written.error();
  co_return Result<>{};
}

/// The role for a bootstrap identity on this hub: ACM's, or plain OCM's.
Awaitable<Result<std::string>> bootstrap_role(const Hub& hub) {
  for (const char* name : {ocm::names::acm_bootstrap_role, ocm::names::ocm_bootstrap_role}) {
    auto role = co_await get_if_exists(hub, cluster_roles, cluster_scoped(name));
    if (!role) co_return role.error();
    if (*role) co_return std::string{name};
  }
  co_return Error{FailureReason::error, "hub " + hub.name() + " has neither ClusterRole " +
                                            ocm::names::acm_bootstrap_role + " nor " + ocm::names::ocm_bootstrap_role +
                                            ": is Open Cluster Management installed there?"};
}

}  // namespace

Awaitable<Result<obs::Secret>> DirectTargetHub::issue_token(MigrationRef migration, BootstrapIdentity identity) {
  auto& hub = *hub_;
  auto space = co_await acquire_namespace(hub, migration, identity.ns);
  if (!space) co_return space.error();
  const Key key{identity.ns, identity.name};
  json::object wanted;
  auto account = co_await put_own_object(hub, migration, service_accounts, key, std::move(wanted));
  if (!account) co_return account.error();
  auto attempt = [&] { return hub.api().call(token_request(key)); };
  auto answer = co_await with_retry(hub, attempt);
  if (!answer)
    co_return Error{answer.error()}.in_context("cannot get a token for " + identity.user() + " on hub " + hub.name());
  std::string token{answer->string_at({"status", "token"})};
  if (token.empty())
    co_return Error{FailureReason::error, "hub " + hub.name() + " issued no token for " + identity.user()};
  co_return obs::Secret{std::move(token)};
}

Awaitable<Result<>> DirectTargetHub::initialize(MigrationRef migration, BootstrapIdentity identity) {
  auto& hub = *hub_;
  auto role = co_await bootstrap_role(hub);
  if (!role) co_return role.error();
  auto review_key = cluster_scoped(review_name(migration));
  auto review = co_await put_own_object(hub, migration, cluster_roles, review_key, review_role());
  if (!review) co_return review.error();
  auto may_review = co_await put_binding(hub, migration, review_name(migration), review_name(migration), identity);
  if (!may_review) co_return may_review.error();
  co_return Result<>{};
}

Awaitable<Result<>> DirectTargetHub::permit_registration(MigrationRef migration, BootstrapIdentity identity) {
  auto& hub = *hub_;
  auto role = co_await bootstrap_role(hub);
  if (!role) co_return role.error();
  auto may_register = co_await put_binding(hub, migration, registration_name(migration), *role, identity);
  if (!may_register) co_return may_register.error();
  co_return Result<>{};
}

Awaitable<Result<>> DirectTargetHub::delete_migration_objects(MigrationRef migration, BootstrapIdentity identity) {
  auto& hub = *hub_;
  co_await hub.settle_own_objects(migration.uid, identity.ns);
  for (const auto& name : {registration_name(migration), review_name(migration)}) {
    auto binding = co_await delete_own_object(hub, migration, cluster_role_bindings, cluster_scoped(name));
    if (!binding) co_return binding.error();
  }
  auto role = co_await delete_own_object(hub, migration, cluster_roles, cluster_scoped(review_name(migration)));
  if (!role) co_return role.error();
  Key account_key{identity.ns, identity.name};
  auto account = co_await delete_own_object(hub, migration, service_accounts, account_key);
  if (!account) co_return account.error();
  co_return co_await release_namespace(hub, migration, identity.ns);
}

}  // namespace hubferry::hubagent
