#include "kube/http/retry_rules.hpp"

#include <gtest/gtest.h>

#include "hubferry/kube/error.hpp"

namespace hubferry::kube::http {
namespace {

using namespace std::chrono_literals;

Attempt answered(int status, std::optional<async::Duration> retry_after = std::nullopt) {
  Attempt attempt;
  attempt.status = status;
  attempt.retry_after = retry_after;
  return attempt;
}

Attempt lost(Stage stage, bool reused = false) {
  Attempt attempt;
  attempt.lost_at = stage;
  attempt.reused_connection = reused;
  return attempt;
}

TEST(RetryRules, AReadIsRepeatedWhereverItGotLost) {
  for (const auto stage : {Stage::connecting, Stage::sending, Stage::waiting, Stage::answering}) {
    RetryRules rules{{}, true};
    EXPECT_EQ(rules.after(lost(stage)), NextStep::retry_after_backoff);
  }
}

// The whole point: a write that may have happened is never repeated.
TEST(RetryRules, AWriteIsRepeatedOnlyIfItWasNotSentInFull) {
  RetryRules rules{{}, false};
  EXPECT_EQ(rules.after(lost(Stage::connecting)), NextStep::retry_after_backoff);
  EXPECT_EQ(rules.after(lost(Stage::sending)), NextStep::retry_after_backoff);
  EXPECT_EQ(rules.after(lost(Stage::waiting)), NextStep::finish);
  EXPECT_EQ(rules.after(lost(Stage::answering)), NextStep::finish);
  EXPECT_EQ(rules.after(lost(Stage::waiting, true)), NextStep::finish);
}

TEST(RetryRules, AStalePooledConnectionCostsNoRetryButOnlyOnce) {
  RetryRules rules{{.max_retries = 0}, true};
  EXPECT_EQ(rules.after(lost(Stage::waiting, true)), NextStep::retry_now);
  EXPECT_EQ(rules.retries(), 0U);
  EXPECT_EQ(rules.after(lost(Stage::waiting, true)), NextStep::finish);
}

TEST(RetryRules, RetriesAreBounded) {
  RetryRules rules{{.max_retries = 2}, true};
  EXPECT_EQ(rules.after(lost(Stage::connecting)), NextStep::retry_after_backoff);
  EXPECT_EQ(rules.after(answered(429, 1s)), NextStep::retry_after_server_delay);
  EXPECT_EQ(rules.after(answered(429, 1s)), NextStep::finish);
}

TEST(RetryRules, AServerThatAsksForTooLongAPauseIsLeftToTheCaller) {
  RetryRules rules{{.max_retries = 3, .max_retry_after = 10s}, true};
  EXPECT_EQ(rules.after(answered(503, 11s)), NextStep::finish);
  EXPECT_EQ(rules.after(answered(503, 10s)), NextStep::retry_after_server_delay);
}

TEST(RetryRules, ABare503RepeatsReadsOnlyButABare429Both) {
  EXPECT_EQ((RetryRules{{}, true}.after(answered(503))), NextStep::retry_after_backoff);
  EXPECT_EQ((RetryRules{{}, false}.after(answered(503))), NextStep::finish);
  EXPECT_EQ((RetryRules{{}, false}.after(answered(429))), NextStep::retry_after_backoff);
}

TEST(RetryRules, ARefusedCredentialIsRenewedOnce) {
  RetryRules rules{{}, false};
  EXPECT_EQ(rules.after(answered(401)), NextStep::refresh_and_retry);
  EXPECT_EQ(rules.after(answered(401)), NextStep::finish);
}

TEST(RetryRules, EveryOtherAnswerIsFinal) {
  for (const int status : {200, 201, 403, 404, 409, 410, 422, 500, 504}) {
    RetryRules rules{{}, true};
    EXPECT_EQ(rules.after(answered(status)), NextStep::finish) << status;
  }
}

TEST(RetryRules, WhatCannotHelpIsNotTried) {
  auto attempt = lost(Stage::connecting);
  attempt.hopeless = true;
  EXPECT_EQ((RetryRules{{}, true}.after(attempt)), NextStep::finish);
}

TEST(RetryRules, RetryAfterIsSecondsOrNothing) {
  EXPECT_EQ(parse_retry_after("3"), 3s);
  EXPECT_EQ(parse_retry_after("86400"), longest_retry_after);
  EXPECT_EQ(parse_retry_after("99999999999999999999"), longest_retry_after);
  EXPECT_EQ(parse_retry_after("99999999999999999999 days"), std::nullopt);
  EXPECT_EQ(parse_retry_after(""), std::nullopt);
  EXPECT_EQ(parse_retry_after("-1"), std::nullopt);
  EXPECT_EQ(parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), std::nullopt);
}

}  // namespace
}  // namespace hubferry::kube::http
