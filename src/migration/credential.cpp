#include "migration/credential.hpp"

#include <algorithm>

#include "hubferry/hubagent/hub.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/wait_for_object.hpp"
#include "hubferry/ocm/resources.hpp"
#include "migration/retry.hpp"

namespace hubferry::migration {

namespace {

constexpr const char* addon_name = "managed-serviceaccount";
constexpr const char* owner_label = "owner";
constexpr const char* owner_value = "managedclustermigration";
/// Of the ServiceAccounts that we create on the target. A namespace with no other accounts, so that the permission to
/// issue tokens there is no permission to become anyone else.
constexpr const char* bootstrap_namespace = "hubferry-bootstrap";

/// Where the ManagedServiceAccount and its token Secret are.
kube::Key account_key(const Migration& migration) {
  return {migration.to(), std::string{migration.object.name()}};
}

bool is_ours(const kube::Object& object, const Migration& migration) {
  return object.label(hubagent::migration_label) == migration.object.uid();
}

OperationError foreign_account(const Migration& migration) {
  return OperationError::rejected("ManagedServiceAccount " + kube::to_string(account_key(migration)) +
                                  " exists and does not belong to this migration: delete it, or give the migration "
                                  "another name");
}

/// The namespace of the add-on's ServiceAccounts on the target; absent if the add-on is not installed.
Awaitable<OperationResult<std::optional<std::string>>> find_addon_namespace(Step& step) {
  const auto wanted = step.migration.object.annotation(names::install_namespace_annotation);
  if (!wanted.empty()) co_return std::optional<std::string>{wanted};
  auto serves_addons = co_await step->global.serves(ocm::managed_cluster_addons);
  if (!serves_addons) co_return OperationError{serves_addons.error()};
  if (!*serves_addons) co_return std::optional<std::string>{};
  kube::Key key{step.migration.to(), addon_name};
  auto addon = co_await step->global.get(ocm::managed_cluster_addons, key);
  if (!addon && addon.error().kind == kube::ErrorKind::not_found) co_return std::optional<std::string>{};
  if (!addon) co_return OperationError{addon.error()};
  const auto reported = addon->string_at({"status", "namespace"});
  co_return std::optional<std::string>{reported.empty() ? ocm::names::addon_namespace : reported};
}

/// What the token Secret holds.
struct Token {
  obs::Secret token;
  std::string ca_pem;
};

std::optional<Token> read_token(const kube::Object* secret) {
  if (secret == nullptr) return std::nullopt;
  const auto encoded = secret->string_at({"data", "token"});
  if (encoded.empty()) return std::nullopt;
  auto token = kube::decode_base64(encoded);
  if (!token || token->empty()) return std::nullopt;
  auto ca = kube::decode_base64(secret->string_at({"data", "ca.crt"}));
  return Token{obs::Secret{std::move(*token)}, ca ? std::move(*ca) : std::string{}};
}

/// Watches the Secret until it holds a token.
Awaitable<OperationResult<Token>> await_token(Step& step) {
  const auto key = account_key(step.migration);
  std::optional<Token> token;
  kube::ObjectPredicate has_token = [&token](const kube::Object* secret) {
    token = read_token(secret);
    return token.has_value();
  };
  // At least one look, also if the time was over before this process began.
  const auto deadline = std::max(step.time().deadline(), step.time().guaranteed_until());
  const Step::Wait waiting{step, "Secret " + kube::to_string(key) +
                                     " of the global hub with the token of ManagedServiceAccount " +
                                     kube::to_string(key) + " is not there yet"};
  const bool found =
      co_await kube::wait_for_object(step->global, kube::resources::secrets, key, has_token, deadline, step->env);
  if (found) co_return std::move(*token);
  co_return OperationError::timed_out("Secret " + kube::to_string(key) +
                                      " with the token of the ManagedServiceAccount did not appear within " +
                                      async::format_duration(step.time().timeout()));
}

Awaitable<OperationResult<Token>> obtain_token(Step& step, Credential credential) {
  if (credential.kind == Credential::managed_service_account) co_return co_await await_token(step);
  auto issue = [&](hubagent::TargetHub& hub) { return hub.issue_token(step.migration.ref(), credential.identity); };
  auto issued = co_await on_target(step, issue);
  if (!issued) co_return OperationError{issued.error()};
  co_return Token{std::move(*issued), {}};
}

/// Remembers until when a creation without an answer may take effect: delete_credential() waits for that.
Awaitable<kube::Result<kube::Object>> create_account(Step& step) {
  const auto may_take_effect = [&step] {
    step->open_credentials[std::string{step.migration.object.uid()}] =
        async::later(step.clock().now(), hubagent::longest_request);
  };
  std::optional<kube::Result<kube::Object>> created;
  try {
    created = co_await step->global.create(ocm::managed_service_accounts, managed_service_account(step.migration));
  } catch (...) {
    may_take_effect();
    throw;
  }
  if (!*created && created->error().kind == kube::ErrorKind::ambiguous) may_take_effect();
  co_return std::move(*created);
}

}  // namespace

json::object managed_service_account(const Migration& migration) {
  const auto key = account_key(migration);
  json::object labels{{owner_label, owner_value}, {hubagent::migration_label, migration.object.uid()}};
  return {{"apiVersion", ocm::managed_service_accounts.api_version()},
          {"kind", ocm::managed_service_accounts.kind},
          {"metadata", json::object{{"name", key.name}, {"namespace", key.ns}, {"labels", std::move(labels)}}},
          {"spec", json::object{{"rotation", json::object{{"enabled", true}, {"validity", "24h0m0s"}}}}}};
}

Awaitable<OperationResult<Credential>> choose_credential(Step& step) {
  auto served = co_await step->global.serves(ocm::managed_service_accounts);
  if (!served) co_return OperationError{served.error()};
  if (*served) {
    auto addon_namespace = co_await find_addon_namespace(step);
    if (!addon_namespace) co_return OperationError{addon_namespace.error()};
    if (*addon_namespace)
      co_return Credential{Credential::managed_service_account,
                           {**addon_namespace, std::string{step.migration.object.name()}}};
    step.log().info("target hub runs no managed-serviceaccount add-on, requesting a token directly");
  }
  co_return Credential{Credential::service_account, {bootstrap_namespace, step.migration.ref().bootstrap_secret()}};
}

Awaitable<OperationResult<>> create_credential(Step& step, Credential credential) {
  if (credential.kind != Credential::managed_service_account) co_return OperationResult<>{};
  auto created = co_await create_account(step);
  if (created) co_return OperationResult<>{};
  // A write without an answer may have happened: read.
  if (created.error().kind != kube::ErrorKind::already_exists && created.error().kind != kube::ErrorKind::ambiguous)
    co_return OperationError{created.error()};
  auto present = co_await step->global.get(ocm::managed_service_accounts, account_key(step.migration));
  if (!present && present.error().kind == kube::ErrorKind::not_found) co_return OperationError{created.error()};
  if (!present) co_return OperationError{present.error()};
  if (!is_ours(*present, step.migration)) co_return foreign_account(step.migration);
  co_return OperationResult<>{};
}

Awaitable<OperationResult<obs::Secret>> make_bootstrap_kubeconfig(Step& step, Credential credential) {
  auto find = [&]() -> Awaitable<OperationResult<hubs::HubInfo>> {
    auto info = co_await step->hubs.find(step.migration.to());
    if (info.ca_error) co_return OperationError{*info.ca_error};
    co_return info;
  };
  auto found = co_await retry(step, step.time(), find);
  if (!found) co_return found.error();
  const auto& hub = *found;
  if (hub.server_url.empty()) {
    co_return OperationError::rejected("the URL of " + step.target_name() +
                                       " is not known: its ManagedCluster has no spec.managedClusterClientConfigs");
  }
  auto token = co_await obtain_token(step, std::move(credential));
  if (!token) co_return OperationError{token.error()};
  kube::ClientConfig config;
  config.name = hub.name;
  config.cluster_name = hub.name;
  config.server = hub.server_url;
  config.ca_pem = token->ca_pem.empty() ? hub.ca_pem : token->ca_pem;
  config.token = token->token.reveal();
  co_return obs::Secret{kube::to_kubeconfig(config)};
}

Awaitable<OperationResult<>> delete_credential(Step& step, Credential credential) {
  if (credential.kind != Credential::managed_service_account) co_return OperationResult<>{};
  const auto key = account_key(step.migration);
  const auto open = step->open_credentials.find(std::string{step.migration.object.uid()});
  if (open != step->open_credentials.end()) {
    const auto settled = open->second;
    const Step::Wait waiting{step, "the creation of ManagedServiceAccount " + kube::to_string(key) +
                                       " was not answered and may still take effect, for a minute at most"};
    co_await step.clock().sleep_until(settled);
  }
  auto account = co_await step->global.get(ocm::managed_service_accounts, key);
  if (!account && account.error().kind != kube::ErrorKind::not_found) co_return OperationError{account.error()};
  if (!account || !is_ours(*account, step.migration)) co_return OperationResult<>{};
  // Its token goes with it: the ManagedServiceAccount owns the Secret.
  kube::Request removal;
  removal.verb = kube::Verb::remove;
  removal.resource = ocm::managed_service_accounts;
  removal.key = key;
  removal.propagation = kube::Propagation::background;
  removal.precondition_uid = account->uid();
  auto removed = co_await step->global.call(removal);
  if (!removed && removed.error().kind != kube::ErrorKind::not_found) co_return OperationError{removed.error()};
  co_return OperationResult<>{};
}

}  // namespace hubferry::migration
