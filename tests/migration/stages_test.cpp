#include "hubferry/phase/render.hpp"
#include "migration_test.hpp"

/// Failures from Initializing to Cleaning, and their rollback.
namespace hubferry::migration::test {
namespace {

kube::Error odd() {
  return {kube::ErrorKind::invalid, 422, "Invalid", "something odd", {}};
}

struct HubFault {
  const char* order;
  const char* condition;
};

/// Every operation up to Deploying, rejected or never answered.
class HubFaultTest : public MigrationTest, public testing::WithParamInterface<std::tuple<HubFault, bool>> {};

TEST_P(HubFaultTest, FailsThePhaseAndEverythingIsRolledBack) {
  const auto [fault, hangs] = GetParam();
  if (hangs) {
    hubs.faults[fault.order].hang = true;
  } else {
    hubs.faults[fault.order].error = FakeHubs::forbidden();
  }
  given("m1", {"a", "b"});
  live_until("m1", "Failed");
  EXPECT_THAT(condition("m1", fault.condition), HasSubstr(hangs ? "False Timeout" : "False Error"));
  EXPECT_THAT(condition("m1", "ResourceRolledBack"),
              HasSubstr("True ResourceRolledBack: back on hub 'hub1': 2 clusters"));
  expect_moved("m1", {}, {"a", "b", "c"});
  EXPECT_EQ(clusters("m1", "failed"), 2);
  EXPECT_EQ(clusters("m1", "rolledBack"), 2);
  EXPECT_THAT(listed("m1", "failure"), testing::ElementsAre("a", "b"));
}

INSTANTIATE_TEST_SUITE_P(Orders, HubFaultTest,
                         testing::Combine(testing::Values(HubFault{"target.issue_token", "ResourceInitialized"},
                                                          HubFault{"target.initialize", "ResourceInitialized"},
                                                          HubFault{"source.initialize", "ResourceInitialized"},
                                                          HubFault{"source.collect", "ResourceDeployed"},
                                                          HubFault{"target.deploy", "ResourceDeployed"}),
                                          testing::Bool()));

class StagesTest : public MigrationTest {};

TEST_F(StagesTest, OneClusterThatCannotBePreparedRollsAllBack) {
  hubs.faults["source.initialize b"] = {.error = odd()};
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Failed");
    co_await sleep(1s);
  });
  EXPECT_THAT(condition("m1", "ResourceInitialized"), HasSubstr("1 cluster cannot be prepared: b: something odd"));
  EXPECT_EQ(events("InitializingFailed").size(), 1u);
  expect_moved("m1", {}, {"a", "b", "c"});
}

// `status` shows this: with a tick there, people would look for the cause elsewhere.
TEST_F(StagesTest, AStepThatFailedIsNotTickedAlsoAfterTheRollback) {
  hubs.faults["source.initialize"] = {.error = FakeHubs::forbidden()};
  given("m1", {"a"});
  live_until("m1", "Failed");
  const auto status = read_status(migration("m1"));
  const auto checklist = phase::render_checklist(phase_definition(), {status.phase, status.states});
  EXPECT_THAT(checklist, HasSubstr("[x] Validating"));
  EXPECT_THAT(checklist, HasSubstr("[!] Initializing"));
  EXPECT_THAT(checklist, HasSubstr("[x] Rollbacking"));
}

TEST_F(StagesTest, ATargetWithoutAUrlFailsInInitializing) {
  hubs.hub("hub2").url.clear();
  given("m1", {"a"});
  live_until("m1", "Failed");
  EXPECT_THAT(condition("m1", "ResourceInitialized"), HasSubstr("managedClusterClientConfigs"));
  expect_moved("m1", {}, {"a", "b", "c"});
}

TEST_F(StagesTest, AClusterThatCannotBeDeployedStaysAndTheOthersMove) {
  hubs.faults["target.deploy b"] = {.error = odd()};
  given("m1", {"a", "b", "c"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Failed");
    co_await sleep(1s);
  });
  expect_moved("m1", {"a", "c"}, {"b"});
  EXPECT_EQ(clusters("m1", "migrated"), 2);
  EXPECT_EQ(clusters("m1", "failed"), 1);
  EXPECT_EQ(clusters("m1", "rolledBack"), 1);
  EXPECT_THAT(condition("m1", "ResourceDeployed"), HasSubstr("staying on hub 'hub1': b: something odd"));
  EXPECT_THAT(events("DeployingFailed").at(0), HasSubstr("cluster b: something odd"));
  const auto object = migration("m1");
  const auto& failure = object.find({"status", "clusters", "failures"})->as_array().at(0);
  EXPECT_EQ(failure.at("name"), "b");
  EXPECT_EQ(failure.at("stage"), "Deploying");
}

TEST_F(StagesTest, AClusterThatCannotBeCollectedStaysAndTheOthersMove) {
  hubs.faults["source.collect a"] = {.error = odd()};
  given("m1", {"a", "b"});
  live_until("m1", "Failed");
  expect_moved("m1", {"b"}, {"a", "c"});
}

TEST_F(StagesTest, IfNoClusterCanBeDeployedAllAreRolledBack) {
  hubs.faults["target.deploy a"] = {.error = odd()};
  given("m1", {"a"});
  live_until("m1", "Failed");
  EXPECT_THAT(condition("m1", "ResourceDeployed"), HasSubstr("False Error: no cluster's resources reached"));
  expect_moved("m1", {}, {"a", "b", "c"});
  EXPECT_EQ(hubs.count("hub1 source.detach"), 0u);
}

TEST_F(StagesTest, AnOutageOfAHubForAMinuteOnlyDelays) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Initializing");
    hubs.hub("hub2").reachable = false;
    co_await sleep(1min);
    hubs.hub("hub2").reachable = true;
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a", "b"}, {"c"});
}

TEST_F(StagesTest, AClusterThatDoesNotArriveIsRolledBackAndTheOthersStay) {
  hubs.travel_times["b"] = 1000h;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Rollbacking");
    hubs.travel_times.clear();
    EXPECT_GE(loop.clock().now() - async::TimePoint{}, 12min);
    co_await reaches("m1", "Failed");
  });
  EXPECT_THAT(condition("m1", "ClusterRegistered"), HasSubstr("False Timeout: 1 of 2 clusters Available"));
  EXPECT_THAT(listed("m1", "success"), testing::ElementsAre("a"));
  EXPECT_THAT(listed("m1", "failure"), testing::ElementsAre("b"));
  EXPECT_EQ(hubs.hub("hub1").clusters.count("a"), 0u);
  EXPECT_EQ(hubs.hub("hub2").clusters.count("b"), 0u);
  EXPECT_TRUE(hubs.hub("hub1").clusters.at("b").accepted);
  // Detached at the start and after each third of the timeout.
  EXPECT_EQ(hubs.count("hub1 source.detach"), 3u);
}

TEST_F(StagesTest, AClusterThatArrivesLateStaysAndTheMigrationCompletes) {
  hubs.travel_times["b"] = 12min + 5s;
  hubs.faults["target.arrived"] = {.error = FakeHubs::unreachable("hub2"), .times = 3};
  given("m1", {"a", "b"});
  live_until("m1", "Completed");
  expect_moved("m1", {"a", "b"}, {"c"});
  EXPECT_THAT(condition("m1", "ClusterRegistered"), HasSubstr("True ClusterRegistered: all 2 clusters"));
  EXPECT_EQ(clusters("m1", "failed"), 0);
}

// The source comes first. What is left on the target is retried for as long as it takes.
TEST_F(StagesTest, TheSourceIsRestoredWhileTheTargetDoesNotAnswerAndTheRestFollows) {
  hubs.travel_time = 1000h;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await sleep(1min);
    hubs.hub("hub2").reachable = false;
    co_await reaches("m1", "Rollbacking");
    co_await sleep(5h);
    EXPECT_EQ(phase("m1"), "Rollbacking");
    EXPECT_EQ(available_on("hub1"), (std::set<std::string>{"a", "b", "c"}));
    for (auto& [name, cluster] : hubs.hub("hub1").clusters) {
      EXPECT_TRUE(cluster.accepted) << name;
      EXPECT_FALSE(cluster.marked) << name;
    }
    EXPECT_TRUE(hubs.hub("hub1").kubeconfigs.empty());
    EXPECT_THAT(
        condition("m1", "ResourceRolledBack"),
        testing::AllOf(HasSubstr("False RollbackPending: 2 clusters pending: a and b: operation on hub 'hub2' failed"),
                       HasSubstr("hubferry.io/leave-behind")));
    EXPECT_EQ(clusters("m1", "rolledBack"), 2);
    EXPECT_LT(hubs.orders.size(), 1000u) << "with growing pauses";
    hubs.hub("hub2").reachable = true;
    hubs.troubles.report_recovery();
    const auto began = loop.clock().now();
    co_await reaches("m1", "Failed");
    EXPECT_LT(loop.clock().now() - began, 10s) << "a hub that is back is not waited for";
  });
  EXPECT_THAT(condition("m1", "ResourceRolledBack"), HasSubstr("True ResourceRolledBack"));
  expect_moved("m1", {}, {"a", "b", "c"});
}

TEST_F(StagesTest, WhileClustersArriveTheirNumbersAreInTheConditionTheMetricsAndTheLog) {
  hubs.travel_times["c"] = 5min;
  given("m1", {"a", "b", "c"});
  const auto counted = [&](const char* state) {
    const auto text = metrics.text();
    return text.find("hubferry_migration_clusters_current{state=\"" + std::string{state}) != std::string::npos
               ? text.substr(text.find("hubferry_migration_clusters_current{state=\"" + std::string{state} + "\"}"), 60)
               : "none";
  };
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await sleep(1min);
    EXPECT_THAT(condition("m1", "ClusterRegistered"), HasSubstr("2 of 3 clusters arrived"));
    EXPECT_THAT(counted("migrated"), HasSubstr("\"migrated\"} 2"));
    EXPECT_THAT(counted("migrating"), HasSubstr("\"migrating\"} 1"));
    EXPECT_THAT(log.lines(), testing::Contains(testing::AllOf(HasSubstr("cluster migrated"), HasSubstr("cluster=a"))));
    EXPECT_THAT(log.lines(),
                testing::Not(testing::Contains(testing::AllOf(HasSubstr("cluster migrated"), HasSubstr("cluster=c")))));
    co_await reaches("m1", "Completed");
  });
  EXPECT_THAT(counted("migrated"), HasSubstr("\"migrated\"} 0")) << "it has ended";
}

TEST_F(StagesTest, WhileClustersAreCleanedUpTheConditionSaysHowFarItIs) {
  hubs.faults["target.confirm"] = {.delay = 30s};
  given("m1", {"a", "b", "c"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    co_await sleep(45s);
    EXPECT_THAT(condition("m1", "ResourceCleaned"),
                HasSubstr("1 of 3 clusters proven on hub 'hub2', deleted from hub 'hub1' at once"));
    co_await reaches("m1", "Completed");
  });
  EXPECT_THAT(condition("m1", "ResourceCleaned"), testing::Not(HasSubstr("proven")));
}

// The source was down for the agent, or answered too slowly: its agent left for the target before it was denied.
TEST_F(StagesTest, AClusterThatLeftTheSourceByItselfIsDetachedBeforeItCounts) {
  hubs.faults["source.detach a"] = {.error = odd()};
  hubs.travel_times["a"] = 1min;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    auto& there = hubs.hub("hub2").clusters.at("a");
    there.available = there.accepted = true;
    there.seen = loop.clock().wall_now();
    co_await reaches("m1", "Cleaning");
    EXPECT_FALSE(hubs.hub("hub1").clusters.at("a").accepted);
    co_await sleep(30s);
    EXPECT_TRUE(hubs.hub("hub1").clusters.contains("a")) << "until the target has seen it once more";
    for (auto& [name, cluster] : hubs.hub("hub2").clusters) cluster.seen = loop.clock().wall_now();
    co_await reaches("m1", "Completed");
  });
  EXPECT_EQ(hubs.count("hub1 source.detach_arrived"), 1U);
  EXPECT_FALSE(hubs.hub("hub1").clusters.contains("a"));
}

// It lives there, and its agent may know no other hub.
TEST_F(StagesTest, AClusterThatLeftTheSourceByItselfMakesNoOtherReturnThatLivesOnTheTarget) {
  hubs.faults["source.detach a"] = {.error = odd()};
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.hub("hub2").clusters.at("b").lacks_works = true;
    auto& there = hubs.hub("hub2").clusters.at("a");
    there.available = there.accepted = true;
    there.seen = loop.clock().wall_now();
    co_await reaches("m1", "Rollbacking");
    EXPECT_FALSE(hubs.hub("hub1").clusters.at("a").accepted);
    co_await sleep(10min);
    auto& other = hubs.hub("hub2").clusters.at("b");
    EXPECT_TRUE(other.accepted);
    EXPECT_FALSE(hubs.hub("hub1").clusters.at("b").accepted);
    other.lacks_works = false;
    other.seen = loop.clock().wall_now();
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a", "b"}, {"c"});
}

// An agent that is registering on the target can only be sent back by the target: that needs the account.
TEST_F(StagesTest, TheCredentialIsWithdrawnAfterTheClustersAreBack) {
  hubs.faults["source.collect"] = {.error = FakeHubs::forbidden()};
  given("m1", {"a"});
  live_until("m1", "Failed");
  const auto at = [&](const char* order) { return std::ranges::find(hubs.orders, order) - hubs.orders.begin(); };
  EXPECT_LT(at("hub1 source.roll_back"), at("hub2 target.roll_back"));
  EXPECT_LT(at("hub2 target.roll_back"), at("hub2 target.delete_migration_objects"));
}

TEST_F(StagesTest, ARollbackThatFailsForOneClusterIsRetriedAndSaysWhatItWaitsFor) {
  hubs.faults["source.collect"] = {.error = FakeHubs::forbidden()};
  hubs.faults["source.roll_back b"] = {.error = odd()};
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Rollbacking");
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Rollbacking");
    EXPECT_THAT(condition("m1", "ResourceRolledBack"),
                HasSubstr("False RollbackPending: 1 cluster pending: b: something odd"));
    EXPECT_EQ(clusters("m1", "rolledBack"), 1);
    EXPECT_FALSE(hubs.hub("hub1").clusters.at("a").marked);
    EXPECT_EQ(hubs.hub("hub2").clusters.count("a"), 0u);
    EXPECT_EQ(events("RollbackPending").size(), 1u);
    hubs.faults.clear();
    co_await reaches("m1", "Failed");
  });
  expect_moved("m1", {}, {"a", "b", "c"});
}

TEST_F(StagesTest, ARollbackWithOneClusterThatDoesNotReturnCountsTheOthers) {
  hubs.travel_time = 1000h;
  hubs.stranded = {"b"};
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Rollbacking");
    co_await sleep(2h);
    EXPECT_EQ(phase("m1"), "Rollbacking");
    EXPECT_EQ(clusters("m1", "rolledBack"), 1);
    EXPECT_THAT(
        condition("m1", "ResourceRolledBack"),
        testing::AllOf(HasSubstr("b: hub 'hub1' accepts it again; waiting for its agent to renew its lease there"),
                       HasSubstr("delete its pod klusterlet-agent in namespace open-cluster-management-agent")));
    EXPECT_EQ(hubs.hub("hub2").clusters.count("a"), 0u);
    EXPECT_EQ(hubs.hub("hub2").clusters.count("b"), 1u) << "not before it is back";
    EXPECT_FALSE(hubs.hub("hub2").rights.empty()) << "its agent may still be registering there";
    hubs.stranded.clear();
    co_await reaches("m1", "Failed");
  });
  expect_moved("m1", {}, {"a", "b", "c"});
}

class CleaningTest : public MigrationTest {};

class CleaningFaultTest : public MigrationTest, public testing::WithParamInterface<const char*> {};

TEST_P(CleaningFaultTest, IsPendingUntilItIsRepaired) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.faults[GetParam()].error = FakeHubs::forbidden();
    co_await reaches("m1", "Cleaning");
    co_await sleep(3h);
    EXPECT_EQ(phase("m1"), "Cleaning");
    EXPECT_THAT(condition("m1", "ResourceCleaned"),
                testing::AllOf(HasSubstr("False CleanupPending: "), HasSubstr("the manager may not do that")));
    EXPECT_EQ(events("CleanupPending").size(), 1u);
    EXPECT_EQ(available_on("hub2"), (std::set<std::string>{"a", "b"}));
    if (std::string_view{GetParam()} == "target.confirm")
      EXPECT_FALSE(hubs.hub("hub2").rights.empty()) << "an agent that is not proven there may need them";
    hubs.faults.clear();
    co_await reaches("m1", "Completed");
  });
  EXPECT_THAT(condition("m1", "ResourceCleaned"), HasSubstr("True ResourceCleaned"));
  expect_moved("m1", {"a", "b"}, {"c"});
}

INSTANTIATE_TEST_SUITE_P(Orders, CleaningFaultTest,
                         testing::Values("target.arrived", "source.collect", "target.verify", "target.clean",
                                         "target.confirm", "source.clean", "source.delete_migration_objects",
                                         "target.delete_migration_objects"));

/// A cluster whose agent has left the source by itself, and that could not be detached while it was registering.
class LateDetachmentTest : public MigrationTest {
 protected:
  Awaitable<> arrives_attached(std::string name) {
    for (const auto* operation : {"source.detach ", "source.detach_arrived "})
      hubs.faults[operation + name] = {.error = odd()};
    co_await reaches("m1", "Registering");
    auto& there = hubs.hub("hub2").clusters.at(name);
    there.available = there.accepted = true;
    there.seen = loop.clock().wall_now();
    co_await reaches("m1", "Cleaning");
    EXPECT_TRUE(hubs.hub("hub1").clusters.at(name).accepted);
    co_await sleep(1s);
    for (auto& [cluster, copy] : hubs.hub("hub2").clusters) copy.seen = loop.clock().wall_now();
  }
};

// Both hubs would accept it for ever.
TEST_F(LateDetachmentTest, AClusterIsDetachedInCleaningAndDeletedOnceTheTargetHasSeenItAfterThat) {
  hubs.travel_times["a"] = 1min;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await arrives_attached("a");
    co_await sleep(1min);
    EXPECT_EQ(phase("m1"), "Cleaning");
    EXPECT_FALSE(hubs.hub("hub1").clusters.contains("b"));
    hubs.faults.clear();
    hubs.hub("hub2").clusters.at("a").seen = loop.clock().wall_now();
    co_await holds([&] { return !hubs.hub("hub1").clusters.at("a").accepted; });
    co_await sleep(30s);
    EXPECT_TRUE(hubs.hub("hub1").clusters.contains("a"));
    EXPECT_THAT(condition("m1", "ResourceCleaned"), HasSubstr("CleanupPending: 1 cluster pending: a: "));
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a", "b"}, {"c"});
}

// It may be on the source: detached there, it would have no hub.
TEST_F(LateDetachmentTest, AClusterThatTheTargetHasLostStaysOnTheSource) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await arrives_attached("a");
    hubs.hub("hub2").clusters.at("a").available = false;
    hubs.faults.clear();
    co_await sleep(3h);
    EXPECT_TRUE(hubs.hub("hub1").clusters.at("a").accepted);
    hubs.hub("hub2").clusters.at("a").available = true;
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a", "b"}, {"c"});
}

// The manager dies when it has sent the write.
TEST_F(LateDetachmentTest, ARenewalBeforeItIsNoProofForTheNextManagerEither) {
  hubs.travel_times["a"] = 1000h;
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await arrives_attached("a");
    hubs.faults.clear();
    hubs.faults["source.detach_arrived"].hang = true;
    const auto before = hubs.count("hub1 source.detach_arrived");
    co_await holds([&] { return hubs.count("hub1 source.detach_arrived") > before; });
  });
  auto& home = hubs.hub("hub1").clusters.at("a");
  home.accepted = false;
  home.was_detached = true;
  hubs.faults.clear();
  live([&]() -> Awaitable<> {
    co_await sleep(10min);
    EXPECT_TRUE(hubs.hub("hub1").clusters.contains("a"));
    hubs.hub("hub2").clusters.at("a").seen = loop.clock().wall_now();
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a"}, {"b", "c"});
}

// A ManifestWork of ours that is still there must not be forgotten; Secrets on a cluster whose agent is off may stay.
TEST_F(CleaningTest, IsPendingWhileAWorkOfTheMigrationIsOnTheTarget) {
  using hubagent::FailureReason;
  const auto order = std::string{"target.delete_outdated_secrets "};
  hubs.faults[order + "a"] = {.error = FakeHubs::forbidden(), .reason = FailureReason::unknown};
  hubs.faults[order + "b"] = {.error = FakeHubs::forbidden(), .reason = FailureReason::works_not_applied};
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Cleaning");
    EXPECT_THAT(condition("m1", "ResourceCleaned"),
                HasSubstr("CleanupPending: 1 cluster pending: a: the manager may not"));
    EXPECT_EQ(events("SecretsLeft").size(), 0u);
    hubs.faults.erase(order + "a");
    co_await reaches("m1", "Completed");
  });
  EXPECT_EQ(events("SecretsLeft").size(), 1u);
  expect_moved("m1", {"a", "b"}, {"c"});
}

// The target's controllers act on a cluster that was released to them: its objects are no longer as they were sent.
TEST_F(CleaningTest, AClusterThatTheSourceCannotDeleteIsNotCopiedAgain) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.faults["source.clean"].error = FakeHubs::forbidden();
    co_await reaches("m1", "Cleaning");
    co_await sleep(5min);
    const auto compared = std::ranges::count(hubs.orders, "hub2 target.verify");
    EXPECT_GT(compared, 0);
    co_await sleep(3h);
    EXPECT_EQ(std::ranges::count(hubs.orders, "hub2 target.verify"), compared);
    hubs.faults.clear();
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a"}, {"b", "c"});
}

// Kubernetes takes five seconds and more to delete a namespace, and the agent some to apply a work.
TEST_F(CleaningTest, WhatTheSourceLeftOnAClusterIsDeletedWhileItsNamespaceIs) {
  hubs.emptying_time = 60s;
  hubs.faults["target.delete_outdated_secrets"].delay = 50s;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    const auto began = loop.clock().now();
    co_await reaches("m1", "Completed");
    EXPECT_LT(loop.clock().now() - began, 90s);
  });
  EXPECT_EQ(hubs.count("hub2 target.delete_outdated_secrets"), 1U);
  expect_moved("m1", {"a", "b"}, {"c"});
}

// A finalizer that nobody serves holds it for days: the agent need not create and delete the Secrets in each round.
TEST_F(CleaningTest, WhatTheSourceLeftIsDeletedOnceHoweverLongItsNamespaceTakes) {
  const std::string order = "target.delete_outdated_secrets";
  hubs.namespaces_hang = true;
  hubs.faults[order] = {.error = FakeHubs::forbidden(), .reason = hubagent::FailureReason::works_not_applied};
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    co_await sleep(10min);
    EXPECT_GT(hubs.count("hub2 " + order), 1U) << "it has not succeeded yet";
    hubs.faults.clear();
    co_await sleep(10min);
    const auto times = hubs.count("hub2 " + order);
    co_await sleep(1h);
    EXPECT_EQ(hubs.count("hub2 " + order), times);
    EXPECT_EQ(phase("m1"), "Cleaning");
    hubs.namespaces_hang = false;
    co_await reaches("m1", "Completed");
    EXPECT_EQ(hubs.count("hub2 " + order), times);
  });
  EXPECT_THAT(events("SecretsLeft"), testing::IsEmpty());
}

TEST_F(CleaningTest, SecretsThatStayOnAClusterAreReportedOnce) {
  hubs.faults["target.delete_outdated_secrets a"].error = FakeHubs::forbidden();
  given("m1", {"a", "b"});
  live_until("m1", "Completed");
  EXPECT_THAT(events("SecretsLeft"), testing::ElementsAre(HasSubstr("the manager may not do that")));
  EXPECT_EQ(hubs.count("hub2 target.delete_outdated_secrets"), 1U);
}

TEST_F(CleaningTest, SecretsAreDeletedOnceATargetThatWasAwayAnswers) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.faults["target.delete_outdated_secrets"].error = FakeHubs::unreachable("hub2");
    co_await reaches("m1", "Cleaning");
    co_await sleep(10min);
    EXPECT_FALSE(hubs.hub("hub1").clusters.contains("a"));
    EXPECT_EQ(phase("m1"), "Cleaning");
    hubs.faults.clear();
    co_await reaches("m1", "Completed");
  });
  EXPECT_THAT(events("SecretsLeft"), testing::IsEmpty());
  expect_moved("m1", {"a"}, {"b", "c"});
}

// Thousands may wait for a source that is away.
TEST_F(CleaningTest, ReleasedClustersAreLookedAtTogether) {
  given("m1", {"a", "b", "c"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.faults["target.confirm"].delay = 1s;
    hubs.faults["source.clean"].error = FakeHubs::forbidden();
    co_await reaches("m1", "Cleaning");
    co_await sleep(5min);
    const auto looks = hubs.count("hub2 target.arrived");
    const auto attempts = hubs.count("hub1 source.clean");
    const auto confirmed = hubs.count("hub2 target.confirm");
    co_await sleep(3h);
    const auto rounds = hubs.count("hub1 source.clean") - attempts;
    EXPECT_GT(rounds, 10U);
    EXPECT_EQ(hubs.count("hub2 target.arrived") - looks, rounds) << "one for all";
    EXPECT_EQ(hubs.count("hub2 target.confirm") - confirmed, 3 * rounds) << "only where it is to be deleted";
    hubs.faults.clear();
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a", "b", "c"}, {});
}

// Somebody deletes its copy, and the agent registers again: what was released to the target is gone, and a process that
// dies right after it has adopted the cluster must not leave it to the next one as proven.
TEST_F(CleaningTest, AReleasedClusterWhoseCopyWasDeletedIsComparedAgain) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.faults["source.clean"].error = FakeHubs::forbidden();
    co_await reaches("m1", "Cleaning");
    co_await sleep(5min);
    auto copy = hubs.hub("hub2").clusters.extract("a");
    co_await sleep(1h);
    copy.mapped().content += 1;
    copy.mapped().stubborn = true;
    hubs.hub("hub2").clusters.insert(std::move(copy));
    hubs.faults.clear();
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Cleaning");
    EXPECT_EQ(hubs.hub("hub1").clusters.count("a"), 1U);
    hubs.hub("hub2").clusters.at("a").stubborn = false;
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a"}, {"b", "c"});
}

// Hours may pass between the release to the target's controllers and the deletion from the source.
TEST_F(CleaningTest, AReleasedClusterThatLostAnObjectOnTheTargetIsCompletedBeforeTheSourceIsDeleted) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.faults["source.clean"].error = FakeHubs::forbidden();
    co_await reaches("m1", "Cleaning");
    co_await sleep(5min);
    auto& copies = hubs.hub("hub2").clusters;
    copies.at("a").content = copies.at("b").content = FakeCluster::deleted_content;
    copies.at("b").stubborn = true;
    hubs.faults.clear();
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Cleaning");
    EXPECT_EQ(hubs.hub("hub1").clusters.count("a"), 0U);
    EXPECT_NE(copies.at("a").content, FakeCluster::deleted_content);
    EXPECT_EQ(hubs.hub("hub1").clusters.count("b"), 1U) << "the source has the only one";
    EXPECT_THAT(condition("m1", "MigrationVerified"), HasSubstr("b: its Secret cannot be created"));
    copies.at("b").stubborn = false;
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a", "b"}, {"c"});
}

// One whose absence cannot be looked into.
TEST_F(CleaningTest, AClusterThatMayNotBeAdoptedHidesNothingOfTheOthers) {
  hubs.faults["target.adopt"].error = FakeHubs::forbidden();
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    hubs.hub("hub2").clusters.erase("b");
    co_await sleep(1h);
    EXPECT_EQ(hubs.hub("hub1").clusters.count("a"), 0U);
    EXPECT_EQ(hubs.hub("hub1").clusters.count("b"), 1U);
    EXPECT_THAT(listed("m1", "cleaned"), testing::ElementsAre("a"));
  });
}

TEST_F(CleaningTest, AnOperationThatHangsIsPendingToo) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.faults["source.clean"].hang = true;
    co_await reaches("m1", "Cleaning");
    co_await sleep(1h);
    EXPECT_THAT(condition("m1", "ResourceCleaned"),
                testing::AllOf(HasSubstr("False CleanupPending"), HasSubstr("no answer within 3m20s")));
    hubs.faults.clear();
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a"}, {"b", "c"});
}

// No proof, no deletion.
TEST_F(CleaningTest, AClusterWhoseResourcesDifferIsNotDeletedFromTheSource) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.hub("hub2").clusters.at("b").content += 1;
    hubs.hub("hub2").clusters.at("b").stubborn = true;
    co_await reaches("m1", "Cleaning");
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Cleaning");
  });
  EXPECT_EQ(hubs.hub("hub1").clusters.count("a"), 0u);
  EXPECT_EQ(hubs.hub("hub1").clusters.count("b"), 1u);
  EXPECT_THAT(condition("m1", "MigrationVerified"),
              testing::AllOf(HasSubstr("False"), HasSubstr("its content differs")));
  EXPECT_THAT(condition("m1", "ResourceCleaned"), HasSubstr("False CleanupPending: 1 cluster pending: b: its content"));
}

// Somebody changes a cluster on the source while it moves: the change is not lost.
TEST_F(CleaningTest, ChangesOnTheSourceMeanwhileAreCopiedAgain) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.hub("hub1").clusters.at("b").content = 77;
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a", "b"}, {"c"});
  EXPECT_EQ(hubs.hub("hub2").clusters.at("b").content, 77);
  EXPECT_THAT(condition("m1", "MigrationVerified"), HasSubstr("True"));
}

TEST_F(CleaningTest, AClusterThatLeftTheTargetAgainIsNotDeletedFromTheSource) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Cleaning");
    hubs.hub("hub2").clusters.at("b").available = false;
    co_await sleep(1h);
    EXPECT_EQ(hubs.hub("hub1").clusters.count("a"), 0u);
    EXPECT_EQ(hubs.hub("hub1").clusters.count("b"), 1u);
    EXPECT_FALSE(hubs.hub("hub2").rights.empty()) << "it may need the credential again";
    hubs.hub("hub2").clusters.at("b").available = true;
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a", "b"}, {"c"});
}

// A missing ledger must not be read as "all clusters arrived".
TEST_F(CleaningTest, WithoutALedgerTheTargetSaysWhichClustersArrived) {
  hubs.faults["target.verify"].hang = true;
  given("m1", {"a", "b"});
  live_until("m1", "Cleaning");
  loop.run([&]() -> Awaitable<> {
    auto removed = co_await global.api().remove(kube::resources::config_maps, Key{"default", "m1"});
    EXPECT_TRUE(removed);
  }());
  hubs.faults.clear();
  hubs.orders.clear();
  live_until("m1", "Completed");
  EXPECT_EQ(hubs.orders.at(0), "hub2 target.arrived");
  expect_moved("m1", {"a", "b"}, {"c"});
}

// While there is no manager nobody tries: the timeout of these phases counts from when there is one again.
TEST_F(CleaningTest, AnUnfinishedCleanupIsFinishedByTheNextManagerHoweverLate) {
  hubs.faults["source.clean"].hang = true;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> { co_await holds([&] { return hubs.count("hub1 source.clean") > 0; }); });
  loop.run(sleep(5h));
  hubs.faults.clear();
  live_until("m1", "Completed");
  EXPECT_THAT(condition("m1", "ResourceCleaned"), HasSubstr("True"));
  expect_moved("m1", {"a", "b"}, {"c"});
}

TEST_F(StagesTest, AnUnfinishedRollbackIsFinishedByTheNextManagerHoweverLate) {
  hubs.faults["source.collect"] = {.error = FakeHubs::forbidden()};
  hubs.faults["source.roll_back"].hang = true;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> { co_await holds([&] { return hubs.count("hub1 source.roll_back") > 0; }); });
  loop.run(sleep(5h));
  hubs.faults.clear();
  live_until("m1", "Failed");
  EXPECT_THAT(condition("m1", "ResourceRolledBack"), HasSubstr("True"));
  EXPECT_EQ(clusters("m1", "rolledBack"), 2);
  expect_moved("m1", {}, {"a", "b", "c"});
}

// Somebody deletes the cluster on the source while it moves: the copy on the target is all that is left of it.
TEST_F(StagesTest, AClusterThatTheSourceLostIsNotDeletedFromTheTarget) {
  hubs.travel_time = 1000h;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await sleep(1min);
    hubs.hub("hub1").clusters.erase("a");
    co_await reaches("m1", "Rollbacking");
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Rollbacking");
    EXPECT_TRUE(hubs.hub("hub2").clusters.at("a").accepted);
    EXPECT_EQ(hubs.hub("hub2").clusters.count("b"), 0u);
    EXPECT_THAT(condition("m1", "ResourceRolledBack"), HasSubstr("a: cluster a on hub1: ClusterNotFound"));
    co_await annotate("m1", names::leave_annotation, "hub1/a, hub2/a");
    co_await reaches("m1", "Failed");
  });
  EXPECT_EQ(hubs.hub("hub2").clusters.count("a"), 1u);
  EXPECT_THAT(condition("m1", "ResourceRolledBack"),
              testing::AllOf(HasSubstr("False LeftBehind"), HasSubstr("hub1/a and hub2/a")));
}

// Without the ledger it is unknown which cluster is where. A person has to act, and the condition says how.
TEST_F(StagesTest, ARollbackWaitsForItsLedgerAndSaysSo) {
  hubs.travel_time = 1000h;
  const Key key{"default", "m1"};
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await sleep(1min);
    auto removed = co_await global.api().remove(kube::resources::config_maps, key);
    EXPECT_TRUE(removed);
    json::object theirs{{"metadata", json::object{{"name", "m1"}, {"namespace", "default"}}}};
    auto made = co_await global.api().create(kube::resources::config_maps, theirs);
    EXPECT_TRUE(made);
    co_await reaches("m1", "Rollbacking");
    co_await sleep(3h);
    EXPECT_EQ(phase("m1"), "Rollbacking");
    EXPECT_THAT(condition("m1", "ResourceRolledBack"),
                testing::AllOf(HasSubstr("False ConfigMapConflict"), HasSubstr("rename or delete it")));
    co_await global.api().remove(kube::resources::config_maps, key);
    co_await reaches("m1", "Failed");
  });
  EXPECT_THAT(condition("m1", "ResourceRolledBack"), HasSubstr("True"));
  expect_moved("m1", {}, {"a", "b", "c"});
}

TEST_F(CleaningTest, AFailedClusterMakesTheMigrationFailedHoweverTheCleanupEnds) {
  hubs.faults["target.deploy b"] = {.error = odd()};
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.faults["source.clean"].error = FakeHubs::forbidden();
    co_await reaches("m1", "Cleaning");
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Cleaning");
    hubs.faults.clear();
    co_await reaches("m1", "Failed");
  });
  expect_moved("m1", {"a"}, {"b", "c"});
}

}  // namespace
}  // namespace hubferry::migration::test
