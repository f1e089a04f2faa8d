#include <algorithm>
#include <array>
#include <boost/json/array.hpp>

#include "hubferry/async/backoff.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/resources.hpp"
#include "klusterlet/hub_selection.hpp"

// Whether a hub would accept us: its permissions, and what it says about our cluster.
namespace hubferry::klusterlet {

using async::Awaitable;

namespace {

const kube::Resource rules_reviews{"authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview",
                                   false};

constexpr async::BackoffPolicy probe_retry{.first = std::chrono::milliseconds{200}, .most = std::chrono::seconds{2}};

bool lists(const kube::json::object& rule, std::string_view field, std::string_view wanted) {
  const auto* list = rule.if_contains(field);
  return list != nullptr && list->is_array() &&
         std::ranges::any_of(list->get_array(), [&](const kube::json::value& item) {
           return item.is_string() && (item.get_string() == "*" || item.get_string() == wanted);
         });
}

bool grants(const kube::json::value& rule, const Permission& permission) {
  if (!rule.is_object()) return false;
  const auto& fields = rule.get_object();
  const auto* names = fields.if_contains("resourceNames");
  if (names != nullptr && names->is_array() && !names->get_array().empty()) return false;  // not for all objects
  return lists(fields, "verbs", permission.verb) && lists(fields, "apiGroups", permission.resource->group) &&
         lists(fields, "resources", permission.resource->plural);
}

std::string refusal_of(const Permission& permission) {
  return std::string{"its credential is not allowed to "} + permission.verb + " " + permission.resource->display_name();
}

/// How long a request is repeated that the hub does not answer properly.
struct RetryUntil {
  explicit RetryUntil(async::TimePoint deadline) : busy(deadline), failed(deadline) {}

  async::TimePoint busy;    // 429
  async::TimePoint failed;  // 500 and above
};

template <typename Call>
auto with_retries(const kube::Env& env, RetryUntil until, Call call) -> decltype(call()) {
  async::Backoff backoff{probe_retry, env.clock, env.random};
  while (true) {
    auto answer = co_await call();
    if (answer || (answer.error().status != 429 && answer.error().status < 500)) co_return answer;
    const auto last = answer.error().status == 429 ? until.busy : until.failed;
    const auto pause = std::max(backoff.next(), answer.error().retry_after.value_or(async::Duration{0}));
    if (async::later(env.clock.now(), pause) >= last) co_return answer;
    co_await env.clock.sleep_for(pause);
  }
}

/// True if the hub has answered, and does not review rules for us. Also if it fails to: all its authorizers must be
/// able to list their rules, while a single permission needs only one that knows.
bool cannot_list_rules(const kube::Error& error) {
  using enum kube::ErrorKind;
  return error.kind == forbidden || error.kind == not_found || error.kind == unsupported || error.kind == invalid ||
         error.status >= 500;
}

Verdict verdict_on(kube::Object cluster, const std::string& name) {
  if (acceptance_of_object(cluster) != Acceptance::denied)
    return {.valid = true, .registered = true, .cluster = std::move(cluster)};
  return {.reason = "it denies the cluster: hubAcceptsClient is false in ManagedCluster " + name};
}

}  // namespace

std::span<const Permission> needed_permissions() {
  using kube::resources::certificate_signing_requests;
  static const std::array<Permission, 6> permissions{{{&ocm::managed_clusters, "create"},
                                                      {&ocm::managed_clusters, "get"},
                                                      {&certificate_signing_requests, "create"},
                                                      {&certificate_signing_requests, "get"},
                                                      {&certificate_signing_requests, "list"},
                                                      {&certificate_signing_requests, "watch"}}};
  return permissions;
}

ListedPermissions read_rules(const kube::Object& review) {
  ListedPermissions listed;
  const auto* incomplete = review.find({"status", "incomplete"});
  const auto* rules = review.find({"status", "resourceRules"});
  const bool has_rules = rules != nullptr && rules->is_array();
  listed.complete = has_rules && (incomplete == nullptr || *incomplete == false);
  for (const auto& permission : needed_permissions()) {
    const auto fits = [&](const kube::json::value& rule) { return grants(rule, permission); };
    if (!has_rules || std::ranges::none_of(rules->get_array(), fits)) listed.missing.push_back(permission);
  }
  return listed;
}

namespace {

/// Reviews the permissions one by one, at the same time; why one is missing, or empty.
Awaitable<std::string> review(kube::Api& api, std::vector<Permission> permissions, const kube::Env& env,
                              async::TimePoint deadline) {
  std::vector<std::string> refusals(permissions.size());
  auto one = [&](std::size_t index) -> Awaitable<> {
    const auto& permission = permissions[index];
    auto ask = [&] { return api.may(permission.verb, *permission.resource, kube::Key{}); };
    auto allowed = co_await with_retries(env, RetryUntil{deadline}, ask);
    if (!allowed)
      refusals[index] = allowed.error().describe();
    else if (!*allowed)
      refusals[index] = refusal_of(permission);
  };
  auto all = [&](async::TaskScope& scope) -> Awaitable<> {
    for (std::size_t index = 0; index < permissions.size(); ++index) scope.spawn(one(index));
    co_return;
  };
  co_await async::with_scope(all);
  for (auto& refusal : refusals)
    if (!refusal.empty()) co_return std::move(refusal);
  co_return std::string{};
}

/// Why a permission is missing, or that the hub does not answer; empty: none is.
Awaitable<std::string> check_permissions(kube::Api& api, const kube::Env& env, async::TimePoint deadline) {
  auto ask = [&] {
    // Any namespace will do: what we need is not in one.
    kube::json::object body{{"spec", kube::json::object{{"namespace", "default"}}}};
    return api.create(rules_reviews, std::move(body));
  };
  // The rest of the time is for the single reviews.
  RetryUntil until{deadline};
  until.failed -= (deadline - env.clock.now()) / 4 * 3;
  auto listed = co_await with_retries(env, until, ask);
  if (!listed && !cannot_list_rules(listed.error())) co_return listed.error().describe();
  ListedPermissions permissions;
  if (listed)
    permissions = read_rules(*listed);
  else
    permissions.missing.assign(needed_permissions().begin(), needed_permissions().end());
  if (permissions.missing.empty()) co_return std::string{};
  if (permissions.complete) co_return refusal_of(permissions.missing.front());
  co_return co_await review(api, std::move(permissions.missing), env, deadline);
}

}  // namespace

Awaitable<Verdict> probe(kube::Api& api, std::string cluster, const kube::Env& env, async::TimePoint deadline) {
  kube::Key key{{}, std::move(cluster)};
  auto refusal = co_await check_permissions(api, env, deadline);
  if (!refusal.empty()) co_return Verdict{.reason = std::move(refusal)};
  auto read = [&] { return api.get(ocm::managed_clusters, key); };
  auto found = co_await with_retries(env, RetryUntil{deadline}, read);
  if (found) co_return verdict_on(std::move(*found), key.name);
  if (found.error().kind == kube::ErrorKind::not_found) co_return Verdict{.valid = true};
  co_return Verdict{.reason = found.error().describe()};
}

Awaitable<kube::Result<Verdict>> probe_with_certificate(kube::Api& api, std::string cluster, const kube::Env& env,
                                                        async::TimePoint deadline) {
  kube::Key key{{}, std::move(cluster)};
  auto read = [&] { return api.get(ocm::managed_clusters, key); };
  auto found = co_await with_retries(env, RetryUntil{deadline}, read);
  if (!found) co_return found.error();
  co_return verdict_on(std::move(*found), key.name);
}

}  // namespace hubferry::klusterlet
