#include "hubferry/kube/edit.hpp"
#include "migration_test.hpp"

namespace hubferry::migration::test {
namespace {

class ValidatingTest : public MigrationTest {
 protected:
  /// Nothing was changed, and the condition says why.
  void expect_rejected(const std::string& name, const std::string& reason, const std::string& text) {
    live([&]() -> Awaitable<> {
      co_await reaches(name, "Failed");
      co_await sleep(1s);
    });
    EXPECT_THAT(condition(name, "ResourceValidated"), testing::AllOf(HasSubstr("False " + reason), HasSubstr(text)));
    for (const auto& order : hubs.orders)
      EXPECT_TRUE(order.ends_with("validate") || order.ends_with("resolve_placement")) << order;
    expect_moved(name, {}, {"a", "b", "c"});
  }
};

TEST_F(ValidatingTest, AnEmptyListIsRejected) {
  given("m1", {}, {{"includedManagedClusters", json::array{}}});
  expect_rejected("m1", "ResourceInvalid", "names no cluster");
}

TEST_F(ValidatingTest, AMoveToTheSameHubIsRejected) {
  given("m1", {"a"}, {{"to", "hub1"}});
  expect_rejected("m1", "HubClusterInvalid", "both 'hub1'");
}

TEST_F(ValidatingTest, AnUnparsableTimeoutIsRejected) {
  given("m1", {"a"}, {{"supportedConfigs", json::object{{"stageTimeout", "forever"}}}});
  expect_rejected("m1", "ResourceInvalid", "stageTimeout");
}

TEST_F(ValidatingTest, AnUnknownSourceIsRejected) {
  given("m1", {"a"}, {{"from", "nowhere"}});
  expect_rejected("m1", "HubClusterInvalid", "hub 'nowhere' does not exist");
}

TEST_F(ValidatingTest, AnUnknownTargetIsRejected) {
  given("m1", {"a"}, {{"to", "nowhere"}});
  expect_rejected("m1", "HubClusterInvalid", "hub 'nowhere' does not exist");
}

TEST_F(ValidatingTest, AHubThatIsNotAvailableIsRejected) {
  hubs.hub("hub2").available = false;
  given("m1", {"a"});
  expect_rejected("m1", "HubClusterInvalid", "hub 'hub2' is not Available");
}

TEST_F(ValidatingTest, AManagedClusterThatIsNotAHubIsRejected) {
  hubs.hub("hub2").is_hub = false;
  given("m1", {"a"});
  expect_rejected("m1", "HubClusterInvalid", "hub 'hub2' is a managed cluster, but not a hub");
}

TEST_F(ValidatingTest, AllClustersThatCannotMoveAreReportedAtOnce) {
  hubs.hub("hub2").clusters["b"] = {};
  given("m1", {"a", "b", "missing"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Failed");
    co_await sleep(1s);
  });
  EXPECT_THAT(condition("m1", "ResourceValidated"),
              testing::AllOf(HasSubstr("False Error: 2 of 3 clusters cannot move"), HasSubstr("ClusterNotFound"),
                             HasSubstr("b is on hub2 already")));
  EXPECT_THAT(listed("m1", "failure"), testing::ElementsAre("b", "missing"));
  EXPECT_EQ(events("ValidatingFailed").size(), 2u);
  EXPECT_EQ(clusters("m1", "failed"), 2);
  EXPECT_EQ(clusters("m1", "pending"), 1);
  hubs.hub("hub2").clusters.erase("b");
  expect_moved("m1", {}, {"a", "b", "c"});
}

// A hub is not repaired in order to learn of the next problem.
TEST_F(ValidatingTest, AHubThatCannotBeUsedDoesNotHideTheOtherProblems) {
  hubs.hub("hub2").is_hub = false;
  given("m1", {"a", "missing"});
  expect_rejected("m1", "HubClusterInvalid", "hub 'hub2' is a managed cluster, but not a hub");
  EXPECT_THAT(condition("m1", "ResourceValidated"),
              testing::AllOf(HasSubstr("1 of 2 clusters cannot move"), HasSubstr("missing")));
}

// The others would migrate, and nothing would be said of it: no ledger lists such a name.
TEST_F(ValidatingTest, ANameThatNoClusterCanHaveIsRejectedBesideTheOtherProblems) {
  given("m1", {"a", "Cluster 2", "missing"});
  expect_rejected("m1", "ClusterNotFound", "2 of 3 clusters cannot move");
  EXPECT_THAT(condition("m1", "ResourceValidated"),
              testing::AllOf(HasSubstr("no cluster can have the name 'Cluster 2'"), HasSubstr("missing")));
}

TEST_F(ValidatingTest, ANameThatNoClusterCanHaveIsRejectedFromAPlacementToo) {
  hubs.hub("hub1").placements["edge"] = {"a", "B"};
  given("m1", {}, {{"includedManagedClustersPlacementRef", "edge"}});
  expect_rejected("m1", "ClusterNotFound", "no cluster can have the name 'B'");
}

TEST_F(ValidatingTest, ASourceThatDoesNotAnswerDoesNotDelayTheReportOfAMissingTarget) {
  hubs.hub("hub1").reachable = false;
  given("m1", {"a"}, {{"to", "nowhere"}});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Validating");
    const auto began = loop.clock().now();
    co_await reaches("m1", "Failed");
    EXPECT_LT(loop.clock().now() - began, 15s);
  });
  EXPECT_THAT(condition("m1", "ResourceValidated"), HasSubstr("hub 'nowhere' does not exist"));
}

TEST_F(ValidatingTest, ManyFailedClustersMakeOneEvent) {
  ClusterNames names;
  for (int index = 0; index < 30; ++index) names.push_back("missing-" + std::to_string(index));
  given("m1", names);
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Failed");
    co_await sleep(1s);
  });
  ASSERT_EQ(events("ValidatingFailed").size(), 1u);
  EXPECT_THAT(events("ValidatingFailed").at(0), HasSubstr("30 clusters failed"));
}

TEST_F(ValidatingTest, APlacementIsCheckedOnTheTargetToo) {
  hubs.hub("hub1").placements["edge"] = {"a"};
  hubs.hub("hub2").clusters["a"] = {};
  given("m1", {}, {{"includedManagedClustersPlacementRef", "edge"}});
  live_until("m1", "Failed");
  EXPECT_THAT(condition("m1", "ResourceValidated"), HasSubstr("False ClusterConflict"));
  EXPECT_TRUE(hubs.hub("hub2").clusters.contains("a"));
}

TEST_F(ValidatingTest, AnUnknownPlacementIsRejected) {
  given("m1", {}, {{"includedManagedClustersPlacementRef", "unknown"}});
  expect_rejected("m1", "PlacementNotFound", "there is no placement unknown");
}

TEST_F(ValidatingTest, APlacementThatSelectsNothingIsRejected) {
  hubs.hub("hub1").placements["edge"] = {};
  given("m1", {}, {{"includedManagedClustersPlacementRef", "edge"}});
  expect_rejected("m1", "ClusterNotFound", "placement 'edge' selects no cluster");
}

TEST_F(ValidatingTest, AHubThatNeverAnswersIsRetriedUntilTheTimeout) {
  hubs.faults["source.validate"] = {.error = {}, .hang = true};
  given("m1", {"a"});
  expect_rejected("m1", "Timeout", "operation on hub 'hub1' failed: timed out after 5m");
  EXPECT_EQ(hubs.count("hub1 source.validate"), 3u);
  EXPECT_GE(loop.clock().now() - async::TimePoint{}, 5min);
}

TEST_F(ValidatingTest, AHubThatAnswersLateIsAwaited) {
  hubs.faults["source.validate"] = {.error = FakeHubs::unreachable("hub1"), .times = 4};
  given("m1", {"a"});
  live_until("m1", "Completed");
  expect_moved("m1", {"a"}, {"b", "c"});
}

TEST_F(ValidatingTest, AnErrorThatIsRetriedStandsInTheConditionWithinTwoSecondsAndGoesWithIt) {
  hubs.hub("hub1").reachable = false;
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Validating");
    co_await sleep(2s);
    EXPECT_THAT(condition("m1", "ResourceValidated"),
                testing::AllOf(HasSubstr("False Waiting: validating the hubs and the clusters; waiting: "),
                               HasSubstr("hub1 does not answer")));
    co_await sleep(2min);
    // As the directory does it when the hub's Secret was repaired: nobody waits for the end of a pause then.
    hubs.hub("hub1").reachable = true;
    hubs.troubles.report_recovery();
    co_await sleep(2s);
    EXPECT_NE(phase("m1"), "Validating");
    EXPECT_THAT(condition("m1", "ResourceValidated"), HasSubstr("True ResourceValidated: 1 cluster can move"));
  });
}

TEST_F(ValidatingTest, WhatIsWrongWithAHubStandsInTheConditionWithinTwoSecondsAndNoLongerThanItIs) {
  hubs.faults["source.validate"] = {.error = {}, .hang = true};
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Validating");
    co_await sleep(5s);
    hubs.troubles.set("hub1", "hub 'hub1' rejects the credential of Secret hub1/hub-kubeconfig (401)");
    co_await sleep(2s);
    EXPECT_THAT(condition("m1", "ResourceValidated"),
                HasSubstr("; waiting: hub 'hub1' rejects the credential of Secret"));
    hubs.troubles.clear("hub1");
    co_await sleep(2s);
    EXPECT_EQ(condition("m1", "ResourceValidated"), "False Waiting: validating the hubs and the clusters");
  });
}

TEST_F(ValidatingTest, AHubThatRejectsAnOperationIsNotRetried) {
  hubs.faults["source.validate"] = {.error = FakeHubs::forbidden()};
  given("m1", {"a"});
  expect_rejected("m1", "Error", "the manager may not do that");
  EXPECT_EQ(hubs.count("hub1 source.validate"), 1u);
}

TEST_F(ValidatingTest, TheTimeoutOfTheSpecReplacesTheDefault) {
  hubs.faults["source.validate"] = {.error = {}, .hang = true};
  given("m1", {"a"}, {{"supportedConfigs", json::object{{"stageTimeout", "30s"}}}});
  expect_rejected("m1", "Timeout", "timed out after 30s");
  EXPECT_LT(loop.clock().now() - async::TimePoint{}, 2min);
}

TEST_F(ValidatingTest, AForeignConfigMapIsNeverOverwritten) {
  auto put = [&]() -> Awaitable<> {
    json::object map{{"metadata", json::object{{"name", "m1"}, {"namespace", "default"}}},
                     {"data", json::object{{"mine", "yes"}}}};
    auto created = co_await global.api().create(kube::resources::config_maps, map);
    EXPECT_TRUE(created);
  };
  loop.run(put());
  given("m1", {"a"});
  expect_rejected("m1", "ConfigMapConflict", "ConfigMap default/m1 does not belong to this migration");
  EXPECT_EQ(global.object(kube::resources::config_maps, {"default", "m1"})->string_at({"data", "mine"}), "yes");
}

// Found out before anything moves, not when the ledger can no longer be written.
TEST_F(ValidatingTest, ClustersThatDoNotFitIntoTheLedgerAreRefused) {
  ClusterNames names;
  for (int index = 0; index < 20000; ++index)
    names.push_back("c" + std::to_string(10000 + index) + std::string(50, 'x'));
  hubs.hub("hub1").placements["all"] = names;
  given("m1", {}, {{"includedManagedClustersPlacementRef", "all"}});
  live_until("m1", "Failed");
  EXPECT_THAT(condition("m1", "ResourceValidated"), HasSubstr("20000 clusters are too many for one migration"));
  EXPECT_FALSE(global.object(kube::resources::config_maps, {"default", "m1"}));
}

// While there was no manager, nobody has tried.
TEST_F(ValidatingTest, APhaseWhoseTimeRanOutDuringAnOutageOfTheManagerIsAttempted) {
  given("m1", {"a"});
  for (const auto* phase : {"Validating", "Deploying"}) {
    live_until("m1", phase);
    loop.run(sleep(3h));
  }
  live_until("m1", "Completed");
  expect_moved("m1", {"a"}, {"b", "c"});
}

// kubectl delete and apply, faster than the garbage collector.
TEST_F(ValidatingTest, TheLedgerOfADeletedMigrationOfTheSameNameIsWaitedFor) {
  json::object owner{{"apiVersion", "global-hub.open-cluster-management.io/v1alpha1"},
                     {"kind", "ManagedClusterMigration"},
                     {"name", "m1"},
                     {"uid", "old"}};
  json::object metadata{{"name", "m1"},
                        {"namespace", "default"},
                        {"labels", json::object{{"hubferry.io/migration", "old"}}},
                        {"finalizers", json::array{"example.com/slow"}},
                        {"ownerReferences", json::array{std::move(owner)}}};
  json::object left{{"metadata", std::move(metadata)}, {"data", json::object{{"all-clusters", "[\"x\"]"}}}};
  ASSERT_TRUE(loop.run(global.api().create(kube::resources::config_maps, left)));
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Validating");
    co_await sleep(10min);
    EXPECT_EQ(phase("m1"), "Validating");
    const Key key{"default", "m1"};
    co_await kube::remove_finalizer(global.api(), kube::resources::config_maps, key, "example.com/slow");
    co_await global.api().remove(kube::resources::config_maps, key);
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a"}, {"b", "c"});
}

}  // namespace
}  // namespace hubferry::migration::test
