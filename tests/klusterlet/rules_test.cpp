#include "klusterlet/rules.hpp"

#include <gtest/gtest.h>

namespace hubferry::klusterlet::test {
namespace {

using namespace std::chrono_literals;

const WallTime start = WallTime{} + 1000h;

// Scenario 25.
TEST(TimeoutRuleTest, TheConnectionIsLostOnlyAfterTheTimeoutHasFullyPassed) {
  TimeoutRule rule{5s, start};
  const auto now = start + 60s;
  rule.saw(now - 2s, now);
  EXPECT_FALSE(rule.expired(now));
  rule.saw(now - 5s, now);
  EXPECT_FALSE(rule.expired(now));
  EXPECT_TRUE(rule.expired(now + 1ns));
  rule.saw(now - 6s, now);
  EXPECT_TRUE(rule.expired(now));
}

// Scenario 26.
TEST(TimeoutRuleTest, TheTimeoutOfALeaseThatWasNeverReadStartsAtTheFirstAttempt) {
  TimeoutRule rule{60s, start};
  rule.missed(start);
  rule.missed(start + 30s);
  EXPECT_FALSE(rule.expired(start + 60s));
  EXPECT_TRUE(rule.expired(start + 61s));
}

// Scenario 27.
TEST(TimeoutRuleTest, ErrorsAfterASuccessfulReadKeepTheRenewTime) {
  TimeoutRule rule{60s, start};
  rule.saw(start + 20s, start + 21s);
  rule.missed(start + 70s);
  EXPECT_FALSE(rule.expired(start + 80s));
  EXPECT_TRUE(rule.expired(start + 81s));
}

// Scenario 22, the rule's part.
TEST(TimeoutRuleTest, AnOldLeaseIsIgnoredInTheFirstTenSeconds) {
  TimeoutRule rule{60s, start};
  rule.saw(start - 2h, start);
  EXPECT_FALSE(rule.expired(start));
  EXPECT_FALSE(rule.expired(start + 9999ms));
  EXPECT_EQ(rule.due(), start + 10s);
  EXPECT_TRUE(rule.expired(start + 10s));
}

TEST(TimeoutRuleTest, ALeaseWithoutARenewTimeIsIgnored) {
  TimeoutRule rule{60s, start};
  rule.saw(std::nullopt, start);
  EXPECT_FALSE(rule.expired(start + 60s));
  EXPECT_TRUE(rule.expired(start + 61s));
  rule.saw(start + 50s, start + 50s);
  rule.saw(std::nullopt, start + 100s);
  EXPECT_FALSE(rule.expired(start + 110s));
}

TEST(TimeoutRuleTest, BeforeAnythingIsKnownNothingIsLost) {
  const TimeoutRule rule{1s, start};
  EXPECT_FALSE(rule.expired(start + 1000h));
}

// Scenario 47, the rule's part.
TEST(AvailabilityRuleTest, AClusterIsUnavailableAfterTwentySecondsOfFailures) {
  AvailabilityRule rule;
  const TimePoint begin{};
  rule.saw(true, begin);
  rule.saw(false, begin + 60s);
  rule.saw(false, begin + 70s);
  EXPECT_EQ(rule.available(), true);
  EXPECT_TRUE(rule.failing());
  rule.saw(false, begin + 80s);
  EXPECT_EQ(rule.available(), false);
  rule.saw(true, begin + 85s);
  EXPECT_EQ(rule.available(), true);
  EXPECT_FALSE(rule.failing());
  rule.saw(false, begin + 90s);
  EXPECT_EQ(rule.available(), true) << "the time starts anew";
}

TEST(AvailabilityRuleTest, AClusterThatNeverAnsweredIsUnknownAtFirst) {
  AvailabilityRule rule;
  EXPECT_FALSE(rule.available());
  rule.saw(false, TimePoint{});
  EXPECT_FALSE(rule.available());
  rule.saw(false, TimePoint{} + 20s);
  EXPECT_EQ(rule.available(), false);
}

}  // namespace
}  // namespace hubferry::klusterlet::test
