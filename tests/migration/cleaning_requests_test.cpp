#include "migration_test.hpp"

/// What a person asks for in Cleaning, or after it, when the world has changed meanwhile.
namespace hubferry::migration::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class CleaningRequestsTest : public MigrationTest {
 protected:
  Awaitable<> loses_target() {
    co_await reaches("m1", "Cleaning");
    hubs.hub("hub2").reachable = false;
  }
  Awaitable<> request_rollback() { return annotate("m1", names::request_annotation, names::rollback_request); }
  bool accepted_on_source(const std::string& cluster) { return hubs.hub("hub1").clusters.at(cluster).accepted; }
  /// Another migration, or a person, moved it from hub2 to hub3.
  void move_on(const std::string& cluster) {
    hubs.hub("hub2").clusters.erase(cluster);
    hubs.hub("hub3").clusters[cluster] = {};
  }
  /// m1 has completed, and hub1 has its clusters still, and denies them.
  Awaitable<> completes_with_leftovers() {
    co_await loses_target();
    co_await annotate("m1", names::leave_annotation, "hub2");
    co_await reaches("m1", "Completed");
    hubs.hub("hub2").reachable = true;
  }
};

TEST_F(CleaningRequestsTest, AClusterThatMovedOnToAThirdHubDoesNotReturn) {
  hubs.add("hub3");
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await completes_with_leftovers();
    EXPECT_THAT(condition("m1", "ResourceCleaned"), HasSubstr("nor where they may have moved since"));
    move_on("a");
    hubs.hub("hub2").clusters.erase("b");  // lost
    co_await request_rollback();
    co_await holds([&] { return accepted_on_source("b"); });
    co_await sleep(2h);
    EXPECT_FALSE(accepted_on_source("a")) << "hub3 has it";
    EXPECT_THAT(condition("m1", "ResourceCleaned"),
                AllOf(HasSubstr("Not returned to hub 'hub1': a: hub 'hub3' accepts it now"),
                      HasSubstr("add hub1/a,hub2/a to the annotation hubferry.io/leave-behind")));
    co_await annotate("m1", names::leave_annotation, "hub1/a,hub2/a");
    co_await reaches("m1", "Failed");
  });
  EXPECT_FALSE(accepted_on_source("a"));
  EXPECT_EQ(available_on("hub3"), (std::set<std::string>{"a"}));
  EXPECT_TRUE(migration("m1").annotation(names::request_annotation).empty());
}

TEST_F(CleaningRequestsTest, WhileAThirdHubDoesNotAnswerNothingReturnsUntilAPersonExcludesIt) {
  hubs.add("hub3").reachable = false;
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await completes_with_leftovers();
    hubs.hub("hub2").clusters.clear();
    co_await request_rollback();
    co_await sleep(2h);
    EXPECT_FALSE(accepted_on_source("a"));
    EXPECT_THAT(condition("m1", "ResourceCleaned"),
                AllOf(HasSubstr("it may have moved on to hub 'hub3', which does not say so"),
                      HasSubstr("add hub3 to the annotation")));
    co_await annotate("m1", names::leave_annotation, "hub2,hub3");
    co_await reaches("m1", "Failed");
  });
  EXPECT_TRUE(accepted_on_source("a"));
}

// Rollbacking waits for other migrations that have one of its clusters: that one may take it to a third hub.
TEST_F(CleaningRequestsTest, AClusterThatMovesOnBeforeTheSourceAcceptsItStaysThere) {
  hubs.add("hub3");
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await completes_with_leftovers();
    hubs.hub("hub2").clusters.clear();
    co_await request_rollback();
    co_await reaches("m1", "Rollbacking");
    CO_ASSERT_TRUE(!accepted_on_source("a"));
    move_on("a");
    co_await sleep(2h);
    EXPECT_FALSE(accepted_on_source("a"));
    EXPECT_THAT(condition("m1", "ResourceRolledBack"), HasSubstr("hub 'hub3' accepts it now"));
  });
}

TEST_F(CleaningRequestsTest, ARequestAfterAllClustersWereCleanedIsAnsweredAtOnce) {
  hubs.faults["target.delete_migration_objects"].error = FakeHubs::forbidden();
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await holds([&] { return listed("m1", "cleaned") == std::vector<std::string>{"a"}; });
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Cleaning");
    co_await request_rollback();
    co_await sleep(10min);
    EXPECT_EQ(phase("m1"), "Cleaning");
    EXPECT_TRUE(migration("m1").annotation(names::request_annotation).empty());
    EXPECT_THAT(events("RequestRefused"), ElementsAre(HasSubstr("returned no cluster: hub 'hub1' has none any more")));
    hubs.faults.clear();
    co_await reaches("m1", "Completed");
  });
  EXPECT_THAT(events("RequestRefused"), SizeIs(1));
  expect_moved("m1", {"a"}, {"b", "c"});
}

TEST_F(CleaningRequestsTest, ARequestAfterTheStepOfTheClustersReturnsWhatThatGaveUp) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await loses_target();
    hubs.hub("hub2").clusters.clear();
    // Of the target itself nothing is given up: the migration's own objects there are pending.
    co_await annotate("m1", names::leave_annotation, "hub2/a");
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Cleaning");
    EXPECT_FALSE(accepted_on_source("a"));
    co_await request_rollback();
    co_await holds([&] { return accepted_on_source("a") && hubs.hub("hub1").clusters.at("a").migrating.empty(); });
    hubs.hub("hub2").reachable = true;
    co_await reaches("m1", "Failed");
  });
  EXPECT_EQ(available_on("hub1"), (std::set<std::string>{"a", "b", "c"}));
}

TEST_F(CleaningRequestsTest, WhatWasLeftBehindAndIsDoneNowIsForgotten) {
  hubs.faults["source.clean"].error = FakeHubs::forbidden();
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    co_await annotate("m1", names::leave_annotation, "hub1");
    co_await reaches("m1", "Completed");
    EXPECT_THAT(listed("m1", "left-behind"), ElementsAre("hub1/a"));
    hubs.faults.clear();
    co_await annotate("m1", names::leave_annotation, "");
    co_await request_rollback();
    co_await holds([&] { return hubs.hub("hub1").clusters.count("a") == 0; });
    co_await reaches("m1", "Completed");
    co_await sleep(1min);
    EXPECT_THAT(listed("m1", "left-behind"), IsEmpty());
    EXPECT_THAT(condition("m1", "ResourceCleaned"), HasSubstr("True ResourceCleaned"));
  });
  expect_moved("m1", {"a"}, {"b", "c"});
}

TEST_F(CleaningRequestsTest, AMessageOfAHubKeepsItsDash) {
  hubs.faults["source.clean"].error =
      kube::Error{kube::ErrorKind::forbidden, 403, "Forbidden", "not allowed - ask the owners of hub1", {}};
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    co_await sleep(1h);
    EXPECT_THAT(condition("m1", "ResourceCleaned"),
                AllOf(HasSubstr("not allowed - ask the owners of hub1"), HasSubstr("It is retried until it succeeds")));
  });
}

class LostLedgerTest : public CleaningRequestsTest {
 protected:
  Awaitable<> lose_target_and_ledger() {
    co_await loses_target();
    // Between two rounds: one that runs would write it again.
    co_await sleep(1h);
    auto removed = co_await global.api().remove(kube::resources::config_maps, {"default", "m1"});
    EXPECT_TRUE(removed);
    EXPECT_THAT(listed("m1", "success"), ElementsAre("no ConfigMap"));
  }
};

// Nobody knows which clusters arrived. That is not "none".
TEST_F(LostLedgerTest, ClustersOfALostLedgerAndALostTargetAreUnproven) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await lose_target_and_ledger();
    co_await annotate("m1", names::leave_annotation, "hub2");
    co_await reaches("m1", "Completed");
    EXPECT_THAT(condition("m1", "ResourceCleaned"),
                AllOf(HasSubstr("LeftBehind"), HasSubstr("Hub 'hub1' still has 2 clusters and denies")));
    // The target may only be silent: without a word about it nothing returns.
    co_await annotate("m1", names::leave_annotation, "");
    co_await request_rollback();
    co_await sleep(2h);
    EXPECT_FALSE(accepted_on_source("a"));
    EXPECT_FALSE(accepted_on_source("b"));
    EXPECT_THAT(condition("m1", "ResourceCleaned"), HasSubstr("Their rollback waits for hub 'hub2': 2 clusters"));
    hubs.hub("hub2").reachable = true;
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a", "b"}, {"c"});
}

TEST_F(LostLedgerTest, ClustersOfALostLedgerReturnFromATargetThatIsCalledLost) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await lose_target_and_ledger();
    hubs.hub("hub2").clusters.clear();
    co_await annotate("m1", names::leave_annotation, "hub2");
    co_await request_rollback();
    co_await reaches("m1", "Failed");
  });
  EXPECT_EQ(available_on("hub1"), (std::set<std::string>{"a", "b", "c"}));
  for (const auto* name : {"a", "b"}) EXPECT_TRUE(accepted_on_source(name));
}

}  // namespace
}  // namespace hubferry::migration::test
