#include "hubagent/helpers.hpp"
#include "hubagent/target_operations.hpp"

namespace hubferry::hubagent {

namespace {

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

}  // namespace

Awaitable<Result<obs::Secret>> issue_token(Hub& hub, MigrationRef migration, BootstrapIdentity identity) {
  auto space = co_await use_namespace(hub, migration, identity.ns);
  if (!space) co_return space.error();
  const Key key{identity.ns, identity.name};
  json::object wanted;
  auto account = co_await put_helper(hub, migration, service_accounts, key, std::move(wanted));
  if (!account) co_return account.error();
  auto attempt = [&] { return hub.api().call(token_request(key)); };
  auto answer = co_await retried(hub, attempt);
  if (!answer)
    co_return in_context(answer.error(), "cannot get a token for " + identity.user() + " on hub " + hub.name());
  std::string token{answer->string_at({"status", "token"})};
  if (token.empty()) co_return failure(reasons::other, "hub " + hub.name() + " gave no token for " + identity.user());
  co_return obs::Secret{std::move(token)};
}

}  // namespace hubferry::hubagent
