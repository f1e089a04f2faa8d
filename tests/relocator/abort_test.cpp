#include "state_test.hpp"

/// Moves that are interrupted: resumed, aborted, or finished because the destination has the cluster already.
namespace hubferry::relocator::test {
namespace {

TEST_F(StateTest, ASwitchToAnotherRelocatorAbortsTheFirstAndMovesWithTheSecond) {
  given_secret();
  given_relocator("a", "other");
  given_moving("a");
  given_relocator("b");
  live_until([&] { return has_moved(); });
  expect_moved();
  EXPECT_EQ(aborts("a", "new_match"), 1);
  EXPECT_EQ(metric("hive_cluster_relocations_total", "b"), 1);
}

TEST_F(StateTest, ASecondMatchAbortsAMoveThatHasBegun) {
  given_secret();
  given_moving("a", R"(, "manageDNS": true)");
  given_zone(R"(, "annotations": {"hive.openshift.io/relocating": "a", "hive.openshift.io/relocate": "a/outgoing"})");
  given_relocator("a");
  given_relocator("b");
  live_for(5min);
  expect_untouched();
  EXPECT_EQ(zone_annotation(names::relocating), "-");
  EXPECT_EQ(zone_annotation("hive.openshift.io/relocate"), "-");
  EXPECT_EQ(aborts("a", "multiple_matches"), 1);
  EXPECT_THAT(condition(), HasSubstr("True MultipleMatchingRelocators"));
}

TEST_F(StateTest, AMoveThatNoRelocatorMatchesAnyMoreIsAborted) {
  given_secret();
  given_moving("a");
  given_relocator("a", "other");
  live_for(5min);
  expect_untouched();
  EXPECT_EQ(aborts("a", "no_match"), 1);
  EXPECT_THAT(condition(), HasSubstr("False NoMatchingRelocators"));
}

TEST_F(StateTest, AnIdleClusterDeploymentIsNeverCountedAsAborted) {
  given_deployment();
  live([&]() -> Awaitable<> {
    for (int i = 0; i < 10; ++i) {
      const json::object labels{{"touched", std::to_string(i)}};
      const json::object patch{{"metadata", json::object{{"labels", labels}}}};
      co_await source.server.api().merge_patch(ocm::cluster_deployments, {"prod", "c1"}, patch);
      co_await sleep(10s);
    }
  });
  EXPECT_EQ(aborts("", "no_match"), 0);
  EXPECT_EQ(aborts("r1", "no_match"), 0);
}

TEST_F(StateTest, ARelocatorThatIsRepointedAfterALostAnswerDoesNotCopyToASecondHub) {
  given_move();
  // The destination creates it, and goes down before it can answer.
  destination.server.faults().on({.verb = "create", .resource = "clusterdeployments"}).times(1).reset_after();
  destination.server.add_admission(ocm::cluster_deployments,
                                   [&](const sim::AdmissionReview& review) -> std::optional<std::string> {
                                     if (review.before == nullptr) destination.server.outage(true);
                                     return std::nullopt;
                                   });
  live_for(1min);
  EXPECT_TRUE(is_on_destination());
  EXPECT_TRUE(is_on_source());
  auto& other = given_repointing();
  live_for(10min);
  EXPECT_THAT(condition(), HasSubstr("True AbortBlocked"));
  EXPECT_THAT(condition(), HasSubstr(identity(destination.server)));
  EXPECT_TRUE(is_on_source());
  EXPECT_FALSE(other.object(ocm::cluster_deployments, {"prod", "c1"}));
  EXPECT_FALSE(other.object(kube::resources::namespaces, {"", "prod"}));
  destination.server.outage(false);
  point_at(destination.server);
  live_until([&] { return has_moved(); });
  expect_moved();
}

TEST_F(StateTest, ARepointedRelocatorDoesNotAbortWhatTheFirstHubMayHave) {
  given_secret();
  given_relocator("r1");
  given_copy_on_destination();
  given_moving("r1");
  given_repointing();
  remove(ocm::cluster_deployments, {"prod", "c1"});
  live_for(1h);
  EXPECT_TRUE(is_on_source());
  EXPECT_THAT(condition(), HasSubstr("True AbortBlocked"));
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), names::relocating), "r1");
  expect_no_deprovision();
  point_at(destination.server);
  live_until([&] { return !is_on_source(); });
  expect_moved();
}

TEST_F(StateTest, ARelocatorThatIsRepointedBetweenCheckingAndCopyingCopiesNothing) {
  given_move(R"(, "manageDNS": true)");
  given_zone();
  auto& other = given_repointing();
  point_at(destination.server);
  source.server.faults().on({.verb = "get", .resource = "dnszones"}).always().delay(sim::Latency::fixed(20s));
  live([&]() -> Awaitable<> {
    co_await holds([&] { return annotation(on_source(ocm::cluster_deployments, "c1"), names::relocating) == "r1"; });
    const auto patch = json::parse(kubeconfig_patch(other));
    co_await source.server.api().merge_patch(kube::resources::secrets, {"hive", "to-destination"}, patch.as_object());
    co_await sleep(5min);
  });
  EXPECT_THAT(condition(), HasSubstr("True AbortBlocked"));
  EXPECT_FALSE(other.object(kube::resources::namespaces, {"", "prod"}));
  EXPECT_TRUE(is_on_source());
}

TEST_F(StateTest, ACopyThatFailsIsResumedAndHiveStaysPausedMeanwhile) {
  given_move();
  create(kube::resources::secrets, R"({"metadata": {"name": "pull", "namespace": "prod"}})");
  destination.server.faults().on({.verb = "create", .resource = "secrets"}).times(3).fail(403);
  live([&]() -> Awaitable<> {
    co_await sleep(3s);
    EXPECT_THAT(condition(), HasSubstr("True MoveFailed: cannot copy Secret prod/pull"));
    EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), names::relocating), "r1");
    EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), "hive.openshift.io/relocate"), "r1/outgoing");
    co_await holds([&] { return has_moved(); });
  });
  expect_moved();
}

TEST_F(StateTest, OneThatIsDeletedWhileItMovesAndIsNotThereYetIsFinalizedAsUsual) {
  given_secret();
  given_relocator("r1");
  given_moving("r1");
  remove(ocm::cluster_deployments, {"prod", "c1"});
  live_until([&] { return !is_on_source(); });
  EXPECT_EQ(source.hive.count("deprovision prod/c1"), 1u);
  EXPECT_FALSE(is_on_destination());
  EXPECT_EQ(aborts("r1", "deleted"), 1);
  EXPECT_THAT(history, Contains("c1: none, -, -, -, deleting"));
  for (const auto& line : history)
    if (line.starts_with("c1: ")) EXPECT_TRUE(line.starts_with("c1: none") || line == "c1: gone") << line;
}

TEST_F(StateTest, OneThatIsDeletedAfterItHasArrivedIsNotDeprovisioned) {
  given_secret();
  given_relocator("r1");
  given_copy_on_destination();
  given_moving("r1");
  remove(ocm::cluster_deployments, {"prod", "c1"});
  live_until([&] { return !is_on_source(); });
  expect_moved();
}

TEST_F(StateTest, ALabelThatChangesAfterTheArrivalDoesNotLeaveTwoOwners) {
  given_secret();
  given_relocator("r1", "other");
  given_copy_on_destination();
  given_moving("r1");
  live_until([&] { return !is_on_source(); });
  expect_moved();
  EXPECT_EQ(aborts("r1", "no_match"), 0);
}

TEST_F(StateTest, NothingIsAbortedWhileTheDestinationCannotBeRead) {
  given_secret();
  given_relocator("r1", "other");
  given_copy_on_destination();
  given_moving("r1");
  destination.server.outage(true);
  live_for(1h);
  EXPECT_THAT(condition(), HasSubstr("True AbortBlocked"));
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), names::relocating), "r1");
  remove(ocm::cluster_deployments, {"prod", "c1"});
  live_for(1h);
  EXPECT_TRUE(is_on_source());
  expect_no_deprovision();
  destination.server.outage(false);
  live_until([&] { return !is_on_source(); });
  expect_moved();
}

TEST_F(StateTest, ARelocatorThatIsDeletedMidMoveBlocksTheAbortUntilItIsThereAgain) {
  given_secret();
  given_moving("r1");
  live_for(10min);
  EXPECT_THAT(condition(), HasSubstr("True AbortBlocked"));
  EXPECT_THAT(condition(), HasSubstr("ClusterRelocator r1 does not exist any more"));
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), names::relocating), "r1");
  given_relocator("r1");
  live_until([&] { return has_moved(); });
  expect_moved();
}

TEST_F(StateTest, AnEditThatExcludesAMovingClusterDeploymentIsNoticed) {
  given_move();
  create(kube::resources::secrets, R"({"metadata": {"name": "pull", "namespace": "prod"}})");
  destination.server.faults().on({.verb = "create", .resource = "secrets"}).always().fail(403);
  live([&]() -> Awaitable<> {
    co_await holds([&] { return condition().starts_with("True MoveFailed"); });
    const auto patch =
        json::parse(R"({"spec": {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": "x"}}}})");
    co_await source.server.api().merge_patch(cluster_relocators, {"", "r1"}, patch.as_object());
    co_await holds([&] { return condition().starts_with("False NoMatchingRelocators"); });
  });
  expect_untouched();
  EXPECT_EQ(aborts("r1", "no_match"), 1);
}

TEST_F(StateTest, OneThatWaitsForItsTurnLooksAgainAtTheRelocators) {
  options.at_once = 1;
  given_move();
  given_deployment("", "", "c2");
  given_secret("moved-to");
  create(kube::resources::secrets, R"({"metadata": {"name": "pull", "namespace": "prod"}})");
  destination.server.faults().on({.verb = "create", .resource = "secrets"}).times(1).delay(sim::Latency::fixed(20s));
  live([&]() -> Awaitable<> {
    co_await sleep(5s);
    EXPECT_FALSE(is_on_destination("c1") || is_on_destination("c2"));
    const auto patch = json::parse(R"({"spec": {"kubeconfigSecretRef": {"name": "moved-to"}}})");
    co_await source.server.api().merge_patch(cluster_relocators, {"", "r1"}, patch.as_object());
    co_await holds([&] { return has_moved("c1") && has_moved("c2"); });
  });
  expect_moved("c1");
  expect_moved("c2");
}

}  // namespace
}  // namespace hubferry::relocator::test
