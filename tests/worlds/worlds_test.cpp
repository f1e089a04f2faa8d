#include <gmock/gmock.h>

#include "runner.hpp"

namespace hubferry::worlds {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// How many fit into half a minute of a debug build; `./dev worlds` runs as many as one likes.
constexpr std::uint64_t sample = 12;

TEST(Worlds, InNoneOfTheSampleAClusterIsLost) {
  Runner runner;
  for (std::uint64_t seed = 1; seed <= sample; ++seed) {
    const auto plan = make_plan(seed);
    const auto result = runner.run(plan);
    if (!result.violations.empty()) ADD_FAILURE() << explain(runner, plan, result);
  }
}

TEST(Worlds, ASeedGivesTheSameWorldInAnotherProcess) {
  const auto plan = make_plan(4);
  const auto first = Runner{}.run(plan);
  EXPECT_EQ(first.summary, Runner{}.run(plan).summary);
  EXPECT_NE(first.summary, Runner{}.run(make_plan(5)).summary);
}

/// A world in which nothing goes wrong, but what the step does.
std::string violations_of(std::size_t detail) {
  Plan plan;
  plan.seed = 1;
  plan.homes = {1, 1};
  plan.migrations = {{.from = 1, .to = 2, .clusters = {0}, .at = 10s}};
  plan.steps = {{.act = Act::sabotage, .at = 1s, .cluster = 1, .detail = detail}};
  return Runner{}.run(plan).violations;
}

// An invariant that cannot fail proves nothing.
TEST(WorldInvariants, AClusterThatNoHubAcceptsIsNoticed) {
  EXPECT_THAT(violations_of(0), HasSubstr("nowhere: "));
}
TEST(WorldInvariants, AClusterThatIsAcceptedTwiceIsNoticed) {
  EXPECT_THAT(violations_of(1), HasSubstr("twice: "));
}
TEST(WorldInvariants, AForeignObjectThatIsDeletedIsNoticed) {
  const auto found = violations_of(2);
  EXPECT_THAT(found, HasSubstr("foreign: "));
  EXPECT_THAT(found, HasSubstr("content: "));
}
TEST(WorldInvariants, ACredentialOutsideOfASecretIsNoticed) {
  EXPECT_THAT(violations_of(3), HasSubstr("secret: "));
}
TEST(WorldInvariants, ATraceOfOursThatIsLeftIsNoticed) {
  EXPECT_THAT(violations_of(4), HasSubstr("left: "));
}

}  // namespace
}  // namespace hubferry::worlds
