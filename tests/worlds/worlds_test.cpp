#include <gmock/gmock.h>

#include <cstdlib>

#include "../support/process.hpp"
#include "runner.hpp"

namespace hubferry::worlds {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
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

// Programs that are started anew have other addresses, as clones of one process do not: no order may depend on them.
TEST(Worlds, ASeedGivesTheSameWorldInAnotherProcess) {
  const char* program = std::getenv("HUBFERRY_WORLDS");
  ASSERT_NE(program, nullptr);
  const auto run = [program] {
    test::Process worlds{{program, "--hashes", "--seeds", "1..5"}};
    EXPECT_EQ(worlds.wait(), 0) << worlds.err();
    return worlds.out();
  };
  const auto first = run();
  EXPECT_THAT(first, AllOf(HasSubstr("seed 1 hash "), HasSubstr("seed 5 hash ")));
  EXPECT_EQ(first, run());
}

// A timeline is of a world that was run again.
TEST(Worlds, ARecordedWorldIsTheSame) {
  const auto plan = make_plan(4);
  const auto first = Runner{}.run(plan);
  const auto recorded = Runner{}.run(plan, true);
  EXPECT_EQ(first.summary, recorded.summary);
  EXPECT_THAT(recorded.timeline, HasSubstr(" create managedclustermigrations"));
  EXPECT_NE(first.summary, Runner{}.run(make_plan(5)).summary);
}

// What is not needed for the violation is not in its shortest plan.
TEST(Worlds, AShortenedPlanHasNothingButTheCause) {
  Plan plan;
  plan.seed = 1;
  plan.homes = {1, 1};
  plan.managers = 2;
  plan.migrations = {{.from = 1, .to = 2, .clusters = {0}, .at = 10s},
                     {.from = 1, .to = 2, .clusters = {1}, .at = 20s}};
  plan.steps = {{.act = Act::sabotage, .at = 1s, .cluster = 1, .migration = 1, .detail = 3},
                {.act = Act::late_events, .at = 2s, .lasts = 30s, .hub = 1, .detail = 1}};
  const auto shortest = Runner{}.shortened(plan);
  ASSERT_EQ(shortest.steps.size(), 1U);
  EXPECT_EQ(shortest.steps.front().act, Act::sabotage);
  EXPECT_EQ(shortest.managers, 1U);
  ASSERT_EQ(shortest.migrations.size(), 1U);
  EXPECT_EQ(shortest.migrations.front().clusters, (std::vector<std::size_t>{1}));
}

// Beside the seeds: with a bug that is drawn nowhere.
TEST(Worlds, LostEventsLoseNoCluster) {
  for (const std::size_t hub : {0U, 1U, 2U}) {
    Plan plan;
    plan.seed = 1;
    plan.homes = {1, 1};
    plan.migrations = {{.from = 1, .to = 2, .clusters = {0, 1}, .at = 10s}};
    plan.steps = {{.act = Act::lost_events, .at = 9s, .lasts = 3min, .side = Side::everybody, .hub = hub, .detail = 3}};
    const auto result = Runner{}.run(plan);
    EXPECT_EQ(result.violations, "") << "hub " << hub;
    EXPECT_THAT(result.summary, HasSubstr("m0 ")) << "hub " << hub;
  }
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
