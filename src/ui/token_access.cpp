#include "ui/token_access.hpp"

#include <openssl/sha.h>

#include <array>

#include "hubferry/migration/resource.hpp"

namespace hubferry::ui {

using namespace std::chrono_literals;
namespace json = kube::json;

namespace {

constexpr auto allowed_for = 60s;
constexpr auto refused_for = 5s;
constexpr std::size_t most_verdicts = 256;
constexpr int most_reviews_per_second = 10;
constexpr std::size_t longest_token = 8UL * 1024;

std::string hash_of(const std::string& token) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return {digest.begin(), digest.end()};
}

/// Empty: there is none.
std::string bearer_token(const std::string& authorization) {
  constexpr std::string_view scheme = "bearer ";
  if (authorization.size() <= scheme.size() || authorization.size() > longest_token) return {};
  for (std::size_t at = 0; at < scheme.size(); ++at)
    if ((authorization[at] | 0x20) != (scheme[at] | 0x20)) return {};
  return authorization.substr(scheme.size());
}

bool is_true(const kube::Object& object, std::initializer_list<std::string_view> path) {
  const auto* value = object.find(path);
  return value != nullptr && value->is_bool() && value->get_bool();
}

}  // namespace

bool TokenAccess::may_review() {
  if (clock_.now() >= second_ + 1s) {
    second_ = clock_.now();
    reviews_ = 0;
  }
  return ++reviews_ <= most_reviews_per_second;
}

async::Awaitable<Access> TokenAccess::check(std::string authorization) {
  auto token = bearer_token(authorization);
  if (token.empty()) co_return Access::unauthenticated;
  const auto hash = hash_of(token);
  if (const auto known = verdicts_.find(hash); known != verdicts_.end() && clock_.now() < known->second.until)
    co_return known->second.access;
  if (!may_review()) co_return Access::too_many;
  const auto access = co_await review(std::move(token));
  if (access == Access::unavailable) co_return access;
  // Those of made-up tokens expire soon: they do not displace the users that are known.
  if (verdicts_.size() >= most_verdicts)
    std::erase_if(verdicts_, [now = clock_.now()](const auto& known) { return now >= known.second.until; });
  if (verdicts_.size() >= most_verdicts) verdicts_.clear();
  const auto kept = access == Access::allowed ? async::Duration{allowed_for} : async::Duration{refused_for};
  verdicts_[hash] = {access, async::later(clock_.now(), kept)};
  co_return access;
}

async::Awaitable<Access> TokenAccess::review(std::string token) {
  json::object spec{{"token", token}};
  json::object token_review{{"spec", std::move(spec)}};
  const auto reviewed = co_await api_.create(kube::resources::token_reviews, std::move(token_review));
  if (!reviewed) {
    log_.warn("cannot review a token for the page", {{"error", reviewed.error().describe()}});
    co_return Access::unavailable;
  }
  const auto* user = reviewed->find({"status", "user"});
  if (!is_true(*reviewed, {"status", "authenticated"}) || user == nullptr || !user->is_object())
    co_return Access::unauthenticated;

  const auto& resource = migration::managed_cluster_migrations;
  json::object attributes{{"group", resource.group}, {"resource", resource.plural}, {"verb", "list"}};
  if (!ns_.empty()) attributes["namespace"] = ns_;
  const auto& who = user->get_object();
  json::object question{{"user", kube::string_at(who, {"username"})}, {"resourceAttributes", std::move(attributes)}};
  for (const auto* field : {"uid", "groups", "extra"})
    if (const auto* value = who.if_contains(field)) question[field] = *value;
  json::object access_review{{"spec", std::move(question)}};
  const auto allowed = co_await api_.create(kube::resources::subject_access_reviews, std::move(access_review));
  if (!allowed) {
    log_.warn("cannot review access to the page", {{"error", allowed.error().describe()}});
    co_return Access::unavailable;
  }
  co_return is_true(*allowed, {"status", "allowed"}) ? Access::allowed : Access::forbidden;
}

}  // namespace hubferry::ui
