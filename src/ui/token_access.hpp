#pragma once

#include <map>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::ui {

/// What a client may do with the credential that it sent.
enum class Access {
  allowed,
  unauthenticated,  // no token, or one that the API server does not know
  forbidden,        // a user that may not list migrations
  unavailable,      // the API server did not answer
  too_many,         // too many unknown tokens at once: an API server is not to be flooded through the page
};

/// Whether the bearer of a token may see the page: the API server reviews the token (TokenReview), and whether its user
/// may list migrations (SubjectAccessReview). Verdicts are kept for a short time under the token's hash.
/// Executor: one loop. Lifetime: `api` outlives it.
class TokenAccess {
 public:
  /// `ns`: the namespace whose migrations the page shows; empty: all.
  TokenAccess(kube::Api& api, std::string ns, async::Clock& clock, obs::Logger log)
      : api_(api), ns_(std::move(ns)), clock_(clock), log_(std::move(log)) {}

  /// `authorization`: the header of that name.
  async::Awaitable<Access> check(std::string authorization);

 private:
  struct Verdict {
    Access access = Access::unauthenticated;
    async::TimePoint until{};
  };

  async::Awaitable<Access> review(std::string token);
  bool may_review();

  kube::Api& api_;
  std::string ns_;
  async::Clock& clock_;
  obs::Logger log_;
  std::map<std::string, Verdict> verdicts_;  // by the token's hash
  async::TimePoint second_{};                // in which these reviews were started
  int reviews_ = 0;
};

}  // namespace hubferry::ui
