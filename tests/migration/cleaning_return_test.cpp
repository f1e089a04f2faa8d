#include "migration_test.hpp"

namespace hubferry::migration::test {
namespace {

using testing::AllOf;

/// All clusters have arrived, and the target is lost before the first is deleted from the source.
class CleaningReturnTest : public MigrationTest {
 protected:
  CleaningReturnTest() {
    // Whatever happens: no moment at which both hubs accept a cluster, and the manager could have known.
    hubs.on_order = [this] {
      for (const auto& [name, cluster] : hubs.hub("hub1").clusters) {
        const auto there = hubs.hub("hub2").clusters.find(name);
        const bool both = cluster.accepted && there != hubs.hub("hub2").clusters.end() && there->second.available;
        if (both) accepted_by_both.insert(name);
      }
    };
  }

  Awaitable<> loses_target() {
    co_await reaches("m1", "Cleaning");
    hubs.hub("hub2").reachable = false;
  }
  Awaitable<> request_rollback() { return annotate("m1", names::request_annotation, names::rollback_request); }
  bool accepted_on_source(const std::string& cluster) { return hubs.hub("hub1").clusters.at(cluster).accepted; }

  std::set<std::string> accepted_by_both;
};

TEST_F(CleaningReturnTest, ClustersOfATargetThatAPersonCallsLostReturnToTheSource) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await loses_target();
    hubs.hub("hub2").clusters.clear();
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Cleaning") << "nobody wants them back";
    EXPECT_FALSE(accepted_on_source("a"));
    co_await annotate("m1", names::leave_annotation, "hub2");
    co_await request_rollback();
    co_await reaches("m1", "Failed");
  });
  EXPECT_EQ(available_on("hub1"), (std::set<std::string>{"a", "b", "c"}));
  for (const auto* name : {"a", "b"}) {
    EXPECT_TRUE(accepted_on_source(name));
    EXPECT_EQ(hubs.hub("hub1").clusters.at(name).migrating, "");
  }
  EXPECT_EQ(clusters("m1", "rolledBack"), 2);
  EXPECT_EQ(clusters("m1", "migrated"), 0);
  EXPECT_THAT(condition("m1", "ResourceCleaned"),
              HasSubstr("False Cancelled: rolled back to hub 'hub1': a and b: it had arr"));
  EXPECT_THAT(condition("m1", "ResourceRolledBack"), AllOf(HasSubstr("LeftBehind"), HasSubstr("hub2")));
  EXPECT_TRUE(migration("m1").annotation(names::request_annotation).empty());
}

// The target may be unreachable for the manager only: then the clusters live there.
TEST_F(CleaningReturnTest, WhileTheTargetDoesNotAnswerARequestAloneReturnsNothing) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await loses_target();
    co_await request_rollback();
    co_await sleep(2h);
    EXPECT_EQ(phase("m1"), "Cleaning");
    EXPECT_FALSE(accepted_on_source("a"));
    EXPECT_FALSE(accepted_on_source("b"));
    EXPECT_THAT(condition("m1", "ResourceCleaned"),
                AllOf(HasSubstr("False CleanupPending"), HasSubstr("Their rollback waits for hub 'hub2': 2 clusters"),
                      HasSubstr("hubferry.io/leave-behind=hub2")));
    hubs.hub("hub2").reachable = true;
    co_await reaches("m1", "Completed");
  });
  EXPECT_EQ(accepted_by_both, std::set<std::string>{});
  EXPECT_TRUE(migration("m1").annotation(names::request_annotation).empty()) << "there was nothing to return";
  expect_moved("m1", {"a", "b"}, {"c"});
}

// A cluster left the source by itself, so that leases on the target count from later on: at first none of the clusters
// has renewed its lease since. They live there, and their agents may know no other hub.
TEST_F(CleaningReturnTest, ClustersThatHadNoTimeForARenewalSinceTheCutOverStay) {
  hubs.faults["source.detach a"] = {.error = FakeHubs::forbidden()};
  hubs.travel_times["a"] = 1min;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    auto& there = hubs.hub("hub2").clusters.at("a");
    there.available = there.accepted = true;
    there.seen = loop.clock().wall_now();
    co_await reaches("m1", "Cleaning");
    co_await request_rollback();
    co_await sleep(30s);
    EXPECT_EQ(phase("m1"), "Cleaning");
    EXPECT_FALSE(accepted_on_source("a"));
    EXPECT_FALSE(accepted_on_source("b"));
    for (auto& [name, cluster] : hubs.hub("hub2").clusters) cluster.seen = loop.clock().wall_now();
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a", "b"}, {"c"});
}

// A person was wrong about the target.
TEST_F(CleaningReturnTest, AClusterOnATargetThatWasCalledLostStaysThereOnceItAnswers) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await loses_target();
    co_await annotate("m1", names::leave_annotation, "hub2");
    co_await request_rollback();
    co_await reaches("m1", "Rollbacking");
    co_await sleep(2h);
    EXPECT_EQ(phase("m1"), "Rollbacking") << "no agent has come back";
    EXPECT_THAT(condition("m1", "ResourceRolledBack"),
                AllOf(HasSubstr("waiting for its agent to renew its lease there"), HasSubstr("import the cluster on")));
    hubs.hub("hub2").reachable = true;
    co_await renew_leases("hub2", "m1", "Rollbacking");
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a", "b"}, {"c"});
}

TEST_F(CleaningReturnTest, WithoutTheTargetsAnswerAReturnThatHasBegunWaits) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    // Its agent is away for a while.
    hubs.hub("hub2").clusters.at("a").available = false;
    // The moment at which the target has denied that it is there.
    hubs.on_order = [&, watch = hubs.on_order] {
      watch();
      if (hubs.orders.back() == "hub1 source.returnable") hubs.hub("hub2").reachable = false;
    };
    co_await request_rollback();
    co_await reaches("m1", "Rollbacking");
    hubs.hub("hub2").clusters.at("a").available = true;
    co_await sleep(2h);
    EXPECT_FALSE(accepted_on_source("a")) << "it is on hub2, for all we know";
    EXPECT_THAT(condition("m1", "ResourceRolledBack"), HasSubstr("it had arrived on hub 'hub2' and may be there"));
    hubs.on_order = nullptr;
    hubs.hub("hub2").reachable = true;
    co_await reaches("m1", "Completed");
  });
  EXPECT_EQ(accepted_by_both, std::set<std::string>{});
  expect_moved("m1", {"a"}, {"b", "c"});
}

TEST_F(CleaningReturnTest, WhatTheTargetLostReturnsWhenTheMigrationIsDeletedAndTheRestStays) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    hubs.hub("hub2").clusters.erase("b");
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Cleaning");
    EXPECT_EQ(hubs.hub("hub1").clusters.count("a"), 0U);
    co_await remove("m1");
    co_await vanishes("m1");
  });
  EXPECT_EQ(accepted_by_both, std::set<std::string>{});
  EXPECT_EQ(available_on("hub1"), (std::set<std::string>{"b", "c"}));
  EXPECT_EQ(available_on("hub2"), (std::set<std::string>{"a"}));
  EXPECT_EQ(hubs.hub("hub1").clusters.at("b").migrating, "");
}

// What the source is deleting already cannot return to it.
TEST_F(CleaningReturnTest, OnlyClustersThatTheSourceStillHasReturn) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await loses_target();
    hubs.hub("hub2").clusters.clear();
    hubs.hub("hub1").clusters.at("b").being_deleted = true;
    co_await annotate("m1", names::leave_annotation, "hub2/a,hub2/b");
    co_await request_rollback();
    co_await holds([&] { return accepted_on_source("a") && hubs.hub("hub1").clusters.at("a").migrating.empty(); });
    EXPECT_FALSE(accepted_on_source("b"));
    EXPECT_THAT(listed("m1", "success"), testing::ElementsAre("b"));
  });
}

// Its ClusterDeployment is on the target only, and would go with the copy there.
TEST_F(CleaningReturnTest, AClusterThatTheSourceHasBegunToDeleteReturnsOnlyFromATargetThatHasLostIt) {
  hubs.faults["source.clean"].error = FakeHubs::forbidden();
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    co_await sleep(10min);
    hubs.hub("hub1").clusters.at("a").deletion_begun = true;
    hubs.faults["target.arrived a"] = {.error = FakeHubs::forbidden(),
                                       .reason = hubagent::FailureReason::cluster_not_available};
    co_await request_rollback();
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Cleaning");
    EXPECT_FALSE(accepted_on_source("a"));
    EXPECT_TRUE(hubs.hub("hub2").clusters.contains("a"));
    hubs.faults.clear();
    hubs.faults["source.clean"].error = FakeHubs::forbidden();
    hubs.hub("hub2").clusters.clear();
    co_await reaches("m1", "Failed");
  });
  EXPECT_TRUE(accepted_on_source("a"));
}

TEST_F(CleaningReturnTest, AClusterThatTheSourceHasBegunToDeleteReturnsAlsoIfTheLedgerIsLost) {
  hubs.faults["source.clean"].error = FakeHubs::forbidden();
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    co_await sleep(10min);
    hubs.hub("hub1").clusters.at("a").deletion_begun = true;
    hubs.hub("hub2").clusters.clear();
    auto removed = co_await global.api().remove(kube::resources::config_maps, {"default", "m1"});
    EXPECT_TRUE(removed);
    co_await sleep(10min);
    co_await request_rollback();
    co_await reaches("m1", "Failed");
  });
  EXPECT_TRUE(accepted_on_source("a"));
}

// Somebody ended the cleanup first.
TEST_F(CleaningReturnTest, ACompletedMigrationThatLeftClustersDeniedReturnsThemOnRequest) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await loses_target();
    hubs.hub("hub2").clusters.clear();
    co_await annotate("m1", names::leave_annotation, "hub2");
    co_await reaches("m1", "Completed");
    EXPECT_FALSE(accepted_on_source("a"));
    EXPECT_THAT(condition("m1", "ResourceCleaned"),
                AllOf(HasSubstr("LeftBehind"), HasSubstr("Hub 'hub1' still has 1 cluster and denies"),
                      HasSubstr(names::request_annotation)));
    co_await request_rollback();
    co_await reaches("m1", "Failed");
  });
  EXPECT_TRUE(accepted_on_source("a"));
  EXPECT_EQ(available_on("hub1"), (std::set<std::string>{"a", "b", "c"}));
}

// It may have completed with other leftovers: what has moved stays where it is.
TEST_F(CleaningReturnTest, ARequestDoesNotReturnWhatIsOnTheTarget) {
  hubs.faults["source.clean"].error = FakeHubs::forbidden();
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    co_await sleep(1h);
    co_await request_rollback();
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Cleaning");
    co_await annotate("m1", names::leave_annotation, "hub1");
    co_await reaches("m1", "Completed");
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Completed");
    EXPECT_TRUE(migration("m1").annotation(names::request_annotation).empty());
    EXPECT_FALSE(accepted_on_source("a"));
  });
  EXPECT_EQ(accepted_by_both, std::set<std::string>{});
  EXPECT_EQ(available_on("hub2"), (std::set<std::string>{"a"}));
}

// It lives there, and its agent may know no other hub.
TEST_F(CleaningReturnTest, AClusterWhoseAgentHasNotAppliedAllStaysOnTheTarget) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    hubs.hub("hub2").clusters.at("a").lacks_works = true;
    co_await request_rollback();
    co_await sleep(2h);
    EXPECT_EQ(phase("m1"), "Cleaning");
    EXPECT_FALSE(accepted_on_source("a"));
    hubs.hub("hub2").clusters.at("a").lacks_works = false;
    co_await reaches("m1", "Completed");
  });
  EXPECT_EQ(accepted_by_both, std::set<std::string>{});
  expect_moved("m1", {"a"}, {"b", "c"});
}

// A person who does that may only want to be rid of the migration.
TEST_F(CleaningReturnTest, ADeletedMigrationThatLeavesASilentTargetBehindReturnsNothing) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await loses_target();
    co_await annotate("m1", names::leave_annotation, "hub2");
    co_await remove("m1");
    co_await vanishes("m1");
    co_await sleep(1h);
  });
  EXPECT_FALSE(accepted_on_source("a"));
  EXPECT_TRUE(hubs.hub("hub2").clusters.at("a").available);
  EXPECT_EQ(accepted_by_both, std::set<std::string>{});
}

TEST_F(CleaningReturnTest, AFailedMigrationReturnsWhatItsTargetLost) {
  const kube::Error odd{kube::ErrorKind::invalid, 422, "Invalid", "something odd", {}};
  hubs.faults["target.deploy b"] = {.error = odd};
  given("m1", {"a", "b"}, {{"ttlSecondsAfterFinished", 60}});
  live([&]() -> Awaitable<> {
    co_await loses_target();
    hubs.hub("hub2").clusters.clear();
    co_await annotate("m1", names::leave_annotation, "hub2");
    co_await reaches("m1", "Failed");
    EXPECT_FALSE(accepted_on_source("a"));
    co_await sleep(1h);
    EXPECT_TRUE(exists("m1")) << "no time to live for the only record of a";
    co_await request_rollback();
    co_await holds([&] { return accepted_on_source("a") && hubs.hub("hub1").clusters.at("a").migrating.empty(); });
    co_await reaches("m1", "Failed");
  });
  EXPECT_EQ(available_on("hub1"), (std::set<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(migration("m1").annotation(names::request_annotation).empty());
}

}  // namespace
}  // namespace hubferry::migration::test
