#include "klusterlet/rules.hpp"

#include <gtest/gtest.h>

namespace hubferry::klusterlet::test {
namespace {

using namespace std::chrono_literals;

const TimePoint start = TimePoint{} + 1000h;

// Scenario 25.
TEST(TimeoutRuleTest, TheConnectionIsLostOnlyAfterTheTimeoutHasFullyPassed) {
  TimeoutRule rule{5s, start};
  const auto now = start + 60s;
  rule.reached(now - 2s);
  EXPECT_FALSE(rule.expired(now));
  EXPECT_FALSE(rule.expired(now + 3s));
  EXPECT_TRUE(rule.expired(now + 3s + 1ns));
}

// Scenario 26.
TEST(TimeoutRuleTest, WithoutAnyHeartbeatTheTimeoutStartsWithTheFirstAttempt) {
  const TimeoutRule rule{60s, start};
  EXPECT_FALSE(rule.expired(start + 60s));
  EXPECT_TRUE(rule.expired(start + 61s));
}

// Scenario 27: requests are answered out of order.
TEST(TimeoutRuleTest, AnOlderHeartbeatDoesNotReplaceANewerOne) {
  TimeoutRule rule{60s, start};
  rule.reached(start + 20s);
  rule.reached(start + 10s);
  EXPECT_FALSE(rule.expired(start + 80s));
  EXPECT_TRUE(rule.expired(start + 81s));
}

TEST(TimeoutRuleTest, AShorterTimeoutTakesEffectImmediately) {
  TimeoutRule rule{60s, start};
  rule.set_timeout(10s);
  EXPECT_EQ(rule.due(), start + 10s);
}

TEST(HeartbeatPeriodTest, AtLeastThreeHeartbeatsFitIntoTheTimeout) {
  EXPECT_EQ(heartbeat_period(60s, 600s), 60s);
  EXPECT_EQ(heartbeat_period(3600s, 600s), 200s);
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
