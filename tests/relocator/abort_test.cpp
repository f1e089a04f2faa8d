#include "intercepting_api.hpp"
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
  EXPECT_EQ(metric("hive_cluster_relocations", "b"), 1);
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

TEST_F(StateTest, OneThatHasItsTurnDoesNotWaitForItselfAfterAConflict) {
  options.at_once = 1;
  given_secret();
  given_deployment();
  given_deployment("", "", "c2");
  live_for(1min);
  // A warning is written while it has its turn, and meets a conflict.
  create(ocm::selector_sync_sets, R"({"metadata": {"name": "all"}, "spec": {"clusterDeploymentSelector":
                                      {"matchLabels": {"hive-instance": "hive2"}}}})");
  source.server.faults().on({.verb = "patch", .resource = "clusterdeployments"}).times(3).fail(409);
  given_relocator();
  live_until([&] { return has_moved("c1") && has_moved("c2"); });
  expect_moved("c1");
  expect_moved("c2");
}

TEST_F(StateTest, ASelectorThatCannotBeReadAnyMoreAbortsAMoveThatHasBegunAndIsNamed) {
  given_move();
  create(kube::resources::secrets, R"({"metadata": {"name": "pull", "namespace": "prod"}})");
  destination.server.faults().on({.verb = "create", .resource = "secrets"}).always().fail(403);
  live_until([&] { return condition().starts_with("True MoveFailed"); });
  const auto valid = R"({"spec": {"clusterDeploymentSelector": {"matchExpressions": null}}})";
  change(cluster_relocators, {"", "r1"},
         R"({"spec": {"clusterDeploymentSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}})");
  live_for(5min);
  expect_untouched();
  EXPECT_EQ(aborts("r1", "no_match"), 1);
  EXPECT_THAT(condition(), HasSubstr("False NoMatchingRelocators: no ClusterRelocator matches. ClusterRelocator r1 "
                                     "cannot be used: InvalidSelector: spec.clusterDeploymentSelector: "));
  EXPECT_THAT(condition(), HasSubstr("operator 'In' of 'a' does not fit"));
  const auto relocator = on_source(cluster_relocators, "r1");
  const auto* usable = kube::find_condition(*relocator, "Valid");
  ASSERT_NE(usable, nullptr);
  EXPECT_EQ(kube::string_at(*usable, {"reason"}), "InvalidSelector");
  destination.server.faults().clear();
  change(cluster_relocators, {"", "r1"}, valid);
  live_until([&] { return has_moved(); });
  expect_moved();
}

TEST_F(StateTest, ASelectorThatCannotBeReadAnyMoreDoesNotUndoAMoveThatTheDestinationHas) {
  given_secret();
  given_relocator("r1");
  given_copy_on_destination();
  given_moving("r1");
  change(cluster_relocators, {"", "r1"},
         R"({"spec": {"clusterDeploymentSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}})");
  live_until([&] { return has_moved(); });
  expect_moved();
  EXPECT_EQ(annotation(on_destination(ocm::cluster_deployments, "c1"), names::confirmed), "true");
}

// Two Secrets may lead to one hub, which must not have twice the load.
TEST_F(StateTest, RelocatorsWithDifferentSecretsOfOneHubShareItsTurns) {
  options.at_once = 1;
  given_move();
  given_secret("second");
  given_relocator("r2", "others", false, "second");
  given_deployment("", "", "c2");
  change(ocm::cluster_deployments, {"prod", "c2"}, R"({"metadata": {"labels": {"hive-instance": "others"}}})");
  for (const auto* name : {"c1-kubeconfig", "c2-kubeconfig"})
    create(kube::resources::secrets, R"({"metadata": {"name": ")" + std::string{name} + R"(", "namespace": "prod"}})");
  destination.server.faults().on({.verb = "create", .resource = "secrets"}).always().delay(sim::Latency::fixed(5s));
  int most = 0;
  live([&]() -> Awaitable<> {
    while (!has_moved("c1") || !has_moved("c2")) {
      int moving = 0;
      for (const auto* name : {"c1", "c2"})
        moving += annotation(on_source(ocm::cluster_deployments, name), names::relocating).starts_with("r") ? 1 : 0;
      most = std::max(most, moving);
      co_await sleep(100ms);
    }
  });
  EXPECT_EQ(most, 1);
}

TEST_F(StateTest, ARelocatorThatMatchesInsteadBetweenCheckingAndMarkingIsCheckedFirst) {
  auto& other = given_third();
  given_move();
  given_secret("to-third", kube::to_kubeconfig(network.config_for(other, sim::admin())));
  create(ocm::selector_sync_sets, R"({"metadata": {"name": "all"}, "spec": {"clusterDeploymentSelector":
                                      {"matchLabels": {"hive-instance": "hive2"}}}})");
  destination.server.faults()
      .on({.verb = "list", .resource = "selectorsyncsets"})
      .always()
      .delay(sim::Latency::fixed(20s));
  live([&]() -> Awaitable<> {
    co_await sleep(5s);
    const auto away =
        json::parse(R"({"spec": {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": "x"}}}})");
    co_await source.server.api().merge_patch(cluster_relocators, {"", "r1"}, away.as_object());
    const auto instead = json::parse(R"({"metadata": {"name": "r2"}, "spec": {"kubeconfigSecretRef": {"namespace":
        "hive", "name": "to-third"}, "clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
    co_await source.server.api().create(cluster_relocators, instead.as_object());
    co_await holds([&] { return !is_on_source(); });
  });
  EXPECT_TRUE(other.object(ocm::cluster_deployments, {"prod", "c1"}));
  EXPECT_FALSE(is_on_destination());
  expect_no_deprovision();
}

// The annotation would name the new relocator, and the hub to which the former leads: neither could go on.
TEST_F(StateTest, ARelocatorThatMatchesInsteadWhileAMoveIsResumedAbortsItFirst) {
  auto& other = given_third();
  given_secret();
  given_secret("to-third", kube::to_kubeconfig(network.config_for(other, sim::admin())));
  given_relocator();
  given_moving("r1");
  destination.server.faults().on({.verb = "create", .resource = "namespaces"}).always().delay(sim::Latency::fixed(20s));
  live([&]() -> Awaitable<> {
    co_await sleep(5s);
    const auto away =
        json::parse(R"({"spec": {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": "x"}}}})");
    co_await source.server.api().merge_patch(cluster_relocators, {"", "r1"}, away.as_object());
    const auto instead = json::parse(R"({"metadata": {"name": "r2"}, "spec": {"kubeconfigSecretRef": {"namespace":
        "hive", "name": "to-third"}, "clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
    co_await source.server.api().create(cluster_relocators, instead.as_object());
    co_await holds([&] { return !is_on_source(); });
  });
  EXPECT_TRUE(other.object(ocm::cluster_deployments, {"prod", "c1"}));
  EXPECT_FALSE(is_on_destination());
  EXPECT_EQ(aborts("r1", "new_match"), 1);
  expect_no_deprovision();
}

/// The address of the destination leads to the third hub from the first look for the ClusterDeployment on that an
/// abort may be based on.
class MovedAddressTest : public StateTest {
 protected:
  hubs::Connect connect() override {
    return [this](const std::string&, const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
      return std::make_shared<InterceptingApi>(network.connect(config), [this](kube::Api& real, kube::Request request) {
        const bool look = request.verb == kube::Verb::get && request.resource == ocm::cluster_deployments;
        moved = moved || (look && loop.clock().now() >= moves_at);
        return moved ? third->api().call(std::move(request)) : real.call(std::move(request));
      });
    };
  }

  async::TimePoint moves_at = async::never;
  bool moved = false;
};

TEST_F(MovedAddressTest, AnAbortIsNotBasedOnWhatAnotherHubLacks) {
  given_third();
  given_secret();
  given_relocator("r1", "nothing");
  given_copy_on_destination();
  given_moving("r1");
  destination.server.faults().on({.verb = "get", .resource = "clusterdeployments"}).always().fail(500);
  remove(ocm::cluster_deployments, {"prod", "c1"});
  moves_at = loop.clock().now() + 2min;  // what a predecessor may have sent is over
  live_for(1h);
  EXPECT_TRUE(moved);
  EXPECT_TRUE(is_on_source());
  EXPECT_THAT(condition(), HasSubstr("True AbortBlocked"));
  expect_no_deprovision();
  moved = false;
  moves_at = async::never;
  destination.server.faults().clear();
  live_until([&] { return !is_on_source(); });
  expect_moved();
}

}  // namespace
}  // namespace hubferry::relocator::test
