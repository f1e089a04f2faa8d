#include "migration_test.hpp"

/// How many clusters are without a hub at once.
namespace hubferry::migration::test {
namespace {

class CutOverTest : public MigrationTest {
 protected:
  CutOverTest() {
    hubs.travel_time = 1s;
    for (int index = 0; index < 40; ++index) many.push_back("many" + std::to_string(index));
    for (const auto& name : many) hubs.add_cluster("hub1", name);
  }
  /// Detached, and not on the other hub yet.
  std::size_t between_hubs() {
    const auto& there = hubs.hub("hub2").clusters;
    return static_cast<std::size_t>(std::ranges::count_if(hubs.hub("hub1").clusters, [&](const auto& entry) {
      const auto copy = there.find(entry.first);
      return !entry.second.accepted && (copy == there.end() || !copy->second.available);
    }));
  }
  /// Those of `many` that are on the other hub.
  std::size_t arrived() {
    auto& there = hubs.hub("hub2").clusters;
    return static_cast<std::size_t>(std::ranges::count_if(
        many, [&](const auto& name) { return there.contains(name) && there.at(name).available; }));
  }
  /// The most that were between hubs at once, until the migration is in that phase.
  Awaitable<> watch_until(std::string name, std::string wanted, std::size_t& most) {
    while (phase(name) != wanted) {
      most = std::max(most, between_hubs());
      co_await sleep(10ms);
    }
  }

  ClusterNames many;
};

TEST_F(CutOverTest, AClusterIsDetachedOnlyWhenTheTargetHasASlotForIt) {
  given("m1", many);
  std::size_t most = 0;
  live([&]() -> Awaitable<> {
    co_await watch_until("m1", "Cleaning", most);
    co_await reaches("m1", "Completed");
  });
  EXPECT_GE(most, 4u);
  EXPECT_LE(most, 20u) << "of 40";
}

TEST_F(CutOverTest, ACutOverIsMeasuredFromTheDetachmentOfEachCluster) {
  given("m1", many);
  live([&]() -> Awaitable<> { co_await reaches("m1", "Completed"); });
  const auto text = metrics.text();
  EXPECT_THAT(text, HasSubstr("hubferry_migration_cluster_cut_over_seconds_count 40\n"));
  EXPECT_THAT(text, HasSubstr("hubferry_migration_cluster_cut_over_seconds_bucket{le=\"2\"} 40\n"))
      << "each takes a second, and all of them several";
}

// What is proven later concerns a restart of its agent: meanwhile it has a hub.
TEST_F(CutOverTest, AClusterIsBetweenHubsOnlyUntilItHasJoined) {
  hubs.proof_time = 2min;
  given("m1", many);
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await sleep(30s);
    EXPECT_EQ(arrived(), 40u) << "none waits for the proof of another one";
    co_await reaches("m1", "Completed");
  });
  EXPECT_THAT(metrics.text(), HasSubstr("hubferry_migration_cluster_cut_over_seconds_bucket{le=\"2\"} 40\n"));
}

TEST_F(CutOverTest, AMigrationOfManyClustersDoesNotKeepThoseOfAnotherAttached) {
  given("many", many);
  given("few", {"a", "b", "c"});
  live([&]() -> Awaitable<> {
    co_await reaches("few", "Cleaning");
    EXPECT_LT(arrived(), 20u) << "they take turns";
    co_await reaches("few", "Completed");
    co_await reaches("many", "Completed");
  });
}

TEST_F(CutOverTest, AgentsThatDoNotArriveDoNotKeepOtherClustersAttached) {
  for (std::size_t index = 0; index < 20; ++index) hubs.travel_times[many[index]] = 6min;
  given("m1", many);
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await sleep(4min);
    EXPECT_EQ(arrived(), 20u);
    co_await reaches("m1", "Completed");
  });
}

// It is not their agents that they wait for: nobody should look at those.
TEST_F(CutOverTest, ClustersThatWaitForTheirTurnAreNamedAsSuch) {
  for (const auto& name : many) hubs.travel_times[name] = 6min;
  given("m1", many);
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await sleep(2s);
    EXPECT_THAT(condition("m1", "ClusterRegistered"),
                testing::ContainsRegex("waiting: [123][0-9] clusters whose turn to be detached has not come, since as "
                                       "many as hub 'hub2' takes at once are on their way there: many"));
    co_await sleep(1min);
    EXPECT_THAT(condition("m1", "ClusterRegistered"), Not(HasSubstr("turn to be detached")));
    co_await reaches("m1", "Completed");
  });
}

TEST_F(CutOverTest, ASuccessorDetachesTheRest) {
  given("m1", many);
  live([&]() -> Awaitable<> {
    while (arrived() < 10) co_await sleep(10ms);
  });
  EXPECT_LT(arrived(), 30u);
  live([&]() -> Awaitable<> { co_await reaches("m1", "Completed"); });
  EXPECT_EQ(arrived(), 40u);
}

}  // namespace
}  // namespace hubferry::migration::test
