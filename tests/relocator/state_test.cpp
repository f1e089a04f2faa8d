#include "hubferry/kube/base64.hpp"
#include "relocator_test.hpp"

/// The states of a relocation: its end, abort, roll-forward, and what is refused.
namespace hubferry::relocator::test {
namespace {

class StateTest : public RelocatorTest {
 protected:
  StateTest() : RelocatorTest({.relocate_controller = false}) {}
  explicit StateTest(sim::HiveOptions hive) : RelocatorTest(std::move(hive)) {}

  /// As a predecessor left it that died after annotating.
  void given_moving(const std::string& relocator, const std::string& more_spec = "", const std::string& name = "c1") {
    given_deployment(R"(, "annotations": {"hive.openshift.io/relocating": ")" + relocator +
                         R"(", "hive.openshift.io/relocate": ")" + relocator +
                         R"(/outgoing", "hive.openshift.io/reconcile-pause": "true",
                         "hubferry.io/relocating-to": ")" +
                         identity(destination.server) + R"("})",
                     more_spec, name);
  }
  /// As a predecessor has created it.
  void given_copy_on_destination(const std::string& more_spec = "", const std::string& more_metadata = "") {
    given_namesake_on_destination(
        "example.com", R"(, "clusterMetadata": {"infraID": "c1-x1", "clusterID": "id-c1"})" + more_spec,
        R"(, "annotations": {"hubferry.io/relocated-from": ")" + identity(source.server) + R"("})" + more_metadata);
  }
  void given_namesake_on_destination(const std::string& base_domain = "example.com", const std::string& more_spec = "",
                                     const std::string& more_metadata = "") {
    create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
    create(ocm::cluster_deployments,
           R"({"metadata": {"name": "c1", "namespace": "prod")" + more_metadata + R"(}, "spec": {"installed": true,
               "baseDomain": ")" +
               base_domain + "\"" + more_spec + "}}",
           &destination.server);
  }
  void given_zone(const std::string& annotations = "") {
    create(ocm::dns_zones, R"({"metadata": {"name": "c1-zone", "namespace": "prod", "finalizers":
        ["hive.openshift.io/dnszone"])" +
                               annotations + R"(}, "spec": {"zone": "c1.example.com"},
        "status": {"nameServers": ["ns1", "ns2"], "aws": {"zoneID": "Z1"}, "lastSyncTimestamp": "x"}})");
  }
  /// A third hub, to which the kubeconfig Secret leads from now on.
  sim::Server& given_repointing() {
    if (third == nullptr) {
      third = std::make_unique<sim::Server>(sim::Options{.name = "third"}, quiet);
      network.add("https://third.sim", *third);
      loop.run(sim::install_crds(third->api(), quiet));
    }
    point_at(*third);
    return *third;
  }
  void point_at(sim::Server& server) {
    change(kube::resources::secrets, {"hive", "to-destination"}, kubeconfig_patch(server));
  }
  std::string kubeconfig_patch(sim::Server& server) {
    return R"({"data": {"kubeconfig": ")" +
           kube::encode_base64(kube::to_kubeconfig(network.config_for(server, sim::admin()))) + R"("}})";
  }
  std::string zone_annotation(const char* key) { return annotation(on_source(ocm::dns_zones, "c1-zone"), key); }
  double aborts(const std::string& relocator, const std::string& reason) {
    return metric("hive_aborted_cluster_relocations_total", relocator, reason);
  }
  std::size_t position(const std::string& line) {
    return static_cast<std::size_t>(std::find(history.begin(), history.end(), line) - history.begin());
  }

  std::unique_ptr<sim::Server> third;
};

TEST_F(StateTest, ZoneThenClusterDeploymentAreAnnotatedAsRelocatedBeforeTheDeletion) {
  given_move(R"(, "manageDNS": true)");
  given_zone();
  live_until([&] { return has_moved(); });
  live_for(1min);
  expect_moved();
  const auto zone = position("c1-zone: none, -, r1, r1/complete");
  const auto deployment = position("c1: Unknown Initialized, -, r1, r1/complete");
  const auto successful = position("c1: False MoveSuccessful, -, r1, r1/complete");
  const auto deleting = position("c1: False MoveSuccessful, -, r1, r1/complete, deleting");
  EXPECT_LT(zone, deployment) << testing::PrintToString(history);
  EXPECT_LT(deployment, successful) << testing::PrintToString(history);
  EXPECT_LT(successful, deleting) << testing::PrintToString(history);
  EXPECT_LT(deleting, history.size());
  EXPECT_FALSE(on_source(ocm::dns_zones, "c1-zone"));
  for (const auto& line : history) EXPECT_THAT(line, Not(HasSubstr("r1, r1, ")));  // never both annotations
}

TEST_F(StateTest, TheZoneArrivesWithItsNameServersAndIsHeldUntilTheClusterDeploymentIsThere) {
  given_move(R"(, "manageDNS": true)");
  given_zone();
  std::vector<std::string> seen;
  destination.server.add_admission(
      ocm::dns_zones, [&](const sim::AdmissionReview& review) -> std::optional<std::string> {
        if (review.before == nullptr)
          for (const auto* key : {names::relocating, names::role, "hive.openshift.io/relocate"})
            seen.push_back(annotation(Object{review.after}, key));
        return std::nullopt;
      });
  live_until([&] { return has_moved(); });
  live_for(1min);
  EXPECT_THAT(seen, testing::ElementsAre("r1", "incoming", "r1/incoming"));
  const auto zone = on_destination(ocm::dns_zones, "c1-zone");
  ASSERT_TRUE(zone);
  EXPECT_EQ(*zone->find({"status"}), json::parse(R"({"nameServers": ["ns1", "ns2"], "aws": {"zoneID": "Z1"}})"));
  EXPECT_EQ(annotation(zone, names::relocating), "-");
  EXPECT_EQ(annotation(zone, "hive.openshift.io/relocate"), "-");
}

TEST_F(StateTest, AZoneOfAnotherNameIsNotCopied) {
  given_move(R"(, "manageDNS": true)");
  create(ocm::dns_zones, R"({"metadata": {"name": "other-zone", "namespace": "prod"}, "spec": {"zone": "o"}})");
  live_until([&] { return has_moved(); });
  EXPECT_FALSE(on_destination(ocm::dns_zones, "other-zone"));
}

TEST_F(StateTest, AZoneOnTheDestinationThatDidNotArriveIsNotReplaced) {
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
  create(ocm::dns_zones, R"({"metadata": {"name": "c1-zone", "namespace": "prod"}, "spec": {"zone": "theirs"}})",
         &destination.server);
  given_move(R"(, "manageDNS": true)");
  given_zone();
  live_for(1min);
  EXPECT_EQ(on_destination(ocm::dns_zones, "c1-zone")->string_at({"spec", "zone"}), "theirs");
  EXPECT_THAT(condition(), HasSubstr("True MoveFailed"));
  EXPECT_THAT(condition(), HasSubstr("did not arrive by a relocation"));
}

TEST_F(StateTest, AZoneAnnotatedByAnotherRelocatorMovesUnderTheNewName) {
  given_move(R"(, "manageDNS": true)");
  given_zone(
      R"(, "annotations": {"hive.openshift.io/relocating": "before", "hive.openshift.io/relocate": "before/outgoing"})");
  live_until([&] { return has_moved(); });
  EXPECT_LT(position("c1-zone: none, r1, -, r1/outgoing"), history.size()) << testing::PrintToString(history);
  expect_moved();
}

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

TEST_F(StateTest, TwoRelocatorsThatMatchMoveNothing) {
  given_move();
  given_relocator("a");
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True MultipleMatchingRelocators: several ClusterRelocators match: a, r1"));
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

TEST_F(StateTest, OneThatIsRelocatedIsDeletedWithoutContactToTheDestination) {
  given_deployment(
      R"(, "annotations": {"hive.openshift.io/relocated": "r1", "hive.openshift.io/relocate": "r1/complete"})");
  destination.server.outage(true);
  live_until([&] { return !is_on_source(); });
  expect_no_deprovision();
}

TEST_F(StateTest, OneThatTheDestinationHasIsNotCopiedAgain) {
  given_copy_on_destination(R"(, "differs": "elsewhere")");
  given_move();
  const auto version = std::string{on_destination(ocm::cluster_deployments, "c1")->resource_version()};
  live_until([&] { return !is_on_source(); });
  EXPECT_EQ(on_destination(ocm::cluster_deployments, "c1")->string_at({"spec", "differs"}), "elsewhere");
  EXPECT_THAT(writes(destination.server), Not(Contains("create secrets")));
  expect_moved();
}

TEST_F(StateTest, AnotherClusterOfThatNameOnTheDestinationIsRefused) {
  given_namesake_on_destination("other.org");
  given_move();
  live_for(10min);
  EXPECT_TRUE(is_on_source());
  EXPECT_THAT(condition(), HasSubstr("True ClusterDeploymentMismatch: the destination has another cluster"));
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), names::relocating), "-");
  expect_no_deprovision();
}

TEST_F(StateTest, AClusterOfThatNameWithAnotherInfraIdIsRefusedToo) {
  given_namesake_on_destination("example.com", R"(, "clusterMetadata": {"infraID": "c1-y2"})");
  given_move();
  live_for(1min);
  EXPECT_TRUE(is_on_source());
  EXPECT_THAT(condition(), HasSubstr("True ClusterDeploymentMismatch"));
}

TEST_F(StateTest, ABareNamesakeOnTheDestinationDoesNotCostTheCluster) {
  given_namesake_on_destination();
  given_move();
  live_for(10min);
  EXPECT_TRUE(is_on_source());
  EXPECT_THAT(condition(), HasSubstr("True ClusterDeploymentMismatch"));
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), names::relocating), "-");
  expect_no_deprovision();
}

TEST_F(StateTest, ABareNamesakeThatAppearsDuringTheMoveIsNoProofOfArrivalEither) {
  given_secret();
  given_relocator("r1");
  given_moving("r1");
  given_namesake_on_destination();
  live_for(10min);
  EXPECT_THAT(condition(), HasSubstr("True ClusterDeploymentMismatch"));
  remove(ocm::cluster_deployments, {"prod", "c1"});
  live_for(10min);
  EXPECT_TRUE(is_on_source());
  EXPECT_THAT(condition(), HasSubstr("True AbortBlocked"));
  expect_no_deprovision();
}

TEST_F(StateTest, TheSameClusterOnTheDestinationThatDidNotComeFromHereIsRefusedBeforeTheMove) {
  given_namesake_on_destination("example.com", R"(, "clusterMetadata": {"infraID": "c1-x1", "clusterID": "id-c1"})");
  given_move();
  live_for(10min);
  EXPECT_TRUE(is_on_source());
  EXPECT_THAT(condition(), HasSubstr("True ClusterDeploymentMismatch"));
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), names::relocating), "-");
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

TEST_F(StateTest, ADestinationThatDoesNotSayWhoItIsIsNotMovedTo) {
  given_move();
  destination.server.faults().on({.verb = "get", .resource = "namespaces"}).always().fail(403);
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True NoConnection: the destination cannot be identified"));
}

TEST_F(StateTest, ACopyThatIsBeingDeletedOnTheDestinationIsNoProofOfArrival) {
  given_copy_on_destination("", R"(, "finalizers": ["a.b/c"])");
  remove(ocm::cluster_deployments, {"prod", "c1"}, &destination.server);
  given_move();
  live_for(1min);
  EXPECT_TRUE(is_on_source());
  EXPECT_THAT(condition(), HasSubstr("is being deleted on the destination"));
}

TEST_F(StateTest, ADestinationThatIsTheSourceIsRefused) {
  given_secret("to-destination", kube::to_kubeconfig(network.config_for(source.server, sim::admin())));
  given_deployment();
  given_relocator();
  live_for(10min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True DestinationIsSource"));
}

TEST_F(StateTest, AMissingSecretIsNamedAndNothingIsAnnotated) {
  given_deployment();
  given_relocator();
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True MissingKubeconfigSecret"));
  // Nobody watches the Secret: a retry finds it.
  given_secret();
  live_until([&] { return has_moved(); });
}

TEST_F(StateTest, AKubeconfigThatCannotBeUsedIsNamedWithoutItsContent) {
  given_secret("to-destination", R"({"clusters": [{"name": "c", "cluster": {"server": "https://destination.sim"}}],
      "users": [{"name": "u", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh",
      "args": ["hunter2"]}}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
      "current-context": "x"})");
  given_deployment();
  given_relocator();
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True NoConnection"));
  EXPECT_THAT(condition() + testing::PrintToString(log.lines()), Not(HasSubstr("hunter2")));
}

TEST_F(StateTest, AKubeconfigWithFileReferencesIsRefused) {
  given_secret("to-destination", R"({"clusters": [{"name": "c", "cluster": {"server": "https://destination.sim"}}],
      "users": [{"name": "u", "user": {"tokenFile": "/etc/passwd"}}],
      "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"})");
  given_deployment();
  given_relocator();
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True NoConnection"));
}

TEST_F(StateTest, WhileTheDestinationCannotBeReachedHiveWorksOnTheSource) {
  given_move();
  destination.server.outage(true);
  live([&]() -> Awaitable<> {
    co_await sleep(1min);
    source.hive.forget_actions();
    const json::object set = json::parse(R"({"metadata": {"name": "ss", "namespace": "prod"},
                                             "spec": {"clusterDeploymentRefs": [{"name": "c1"}]}})")
                                 .as_object();
    co_await source.server.api().create(ocm::sync_sets, set);
    co_await sleep(1min);
  });
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True NoConnection"));
  EXPECT_GE(source.hive.count("sync prod/c1"), 1u);
  destination.server.outage(false);
  live_until([&] { return has_moved(); });
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

TEST_F(StateTest, OneThatArrivesIsReleasedByTheManagerOfTheDestination) {
  const auto arriving = R"(, "annotations": {"hive.openshift.io/relocating": "r1",
      "hive.openshift.io/relocation-role": "incoming", "hive.openshift.io/relocate": "r1/incoming"})";
  given_deployment(arriving, R"(, "manageDNS": true)");
  given_zone(arriving);
  live_for(1min);
  expect_untouched();
  EXPECT_EQ(zone_annotation(names::relocating), "-");
  EXPECT_EQ(zone_annotation("hive.openshift.io/relocate"), "-");
  EXPECT_THAT(condition(), HasSubstr("False NoMatchingRelocators"));
}

TEST_F(StateTest, OneWhoseZoneIsReleasedAlreadyIsReleasedToo) {
  given_deployment(
      R"(, "annotations": {"hive.openshift.io/relocating": "r1", "hive.openshift.io/relocation-role": "incoming"})",
      R"(, "manageDNS": true)");
  given_zone();
  live_for(1min);
  expect_untouched();
}

TEST_F(StateTest, OneThatArrivesAndMatchesALocalRelocatorMovesOn) {
  given_secret();
  given_deployment(
      R"(, "annotations": {"hive.openshift.io/relocating": "r0", "hive.openshift.io/relocation-role": "incoming",
                        "hubferry.io/relocated-from": "a-third-hub"})");
  given_relocator();
  live_until([&] { return has_moved(); });
  EXPECT_LT(position("c1: Unknown Initialized, r1, -, r1/outgoing"), history.size()) << testing::PrintToString(history);
}

TEST_F(StateTest, OneIsNotMovedBackToTheHubThatItCameFrom) {
  const auto origin = std::string{destination.server.object(kube::resources::namespaces, {"", "kube-system"})->uid()};
  given_secret();
  given_deployment(R"(, "annotations": {"hubferry.io/relocated-from": ")" + origin + "\"}");
  given_relocator();
  live_for(10min);
  EXPECT_TRUE(is_on_source());
  EXPECT_FALSE(is_on_destination());
  EXPECT_THAT(condition(), HasSubstr("True ReturnRefused"));
  change(ocm::cluster_deployments, {"prod", "c1"},
         R"({"metadata": {"annotations": {"hubferry.io/relocated-from": null}}})");
  live_until([&] { return has_moved(); });
}

TEST_F(StateTest, TwoHubsThatPointAtEachOtherDoNotPlayPingPong) {
  manager_on_destination = true;
  given_move();
  create(kube::resources::secrets,
         json::serialize(json::object{
             {"metadata", json::object{{"name", "back"}, {"namespace", "hive"}}},
             {"stringData", json::object{}},
             {"data", json::object{{"kubeconfig", kube::encode_base64(kube::to_kubeconfig(
                                                      network.config_for(source.server, sim::admin())))}}}}),
         &destination.server);
  create(cluster_relocators, R"({"metadata": {"name": "back"}, "spec": {"kubeconfigSecretRef": {"namespace": "hive",
      "name": "back"}, "clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})",
         &destination.server);
  live_for(1h);
  expect_moved();
  EXPECT_EQ(metric("hive_cluster_relocations_total", "r1"), 1);
  EXPECT_EQ(metric("hive_cluster_relocations_total", "back"), 0);
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

TEST_F(StateTest, OneThatIsDeletedWhileItArrivesIsFinalizedAsUsual) {
  given_deployment(
      R"(, "annotations": {"hive.openshift.io/relocating": "r1", "hive.openshift.io/relocation-role": "incoming",
                        "hive.openshift.io/relocate": "r1/incoming"})");
  remove(ocm::cluster_deployments, {"prod", "c1"});
  live_until([&] { return !is_on_source(); });
  EXPECT_EQ(source.hive.count("deprovision prod/c1"), 1u);
}

TEST_F(StateTest, OneThatAUserHasPausedIsLeftAlone) {
  given_secret();
  given_deployment(R"(, "annotations": {"hive.openshift.io/reconcile-pause": "true"})");
  given_relocator();
  const auto version = std::string{on_source(ocm::cluster_deployments, "c1")->resource_version()};
  live_for(10min);
  EXPECT_EQ(on_source(ocm::cluster_deployments, "c1")->resource_version(), version);
}

TEST_F(StateTest, OneThatIsProtectedFromDeletionIsRefusedBeforeTheMove) {
  given_secret();
  given_deployment(R"(, "annotations": {"hive.openshift.io/protected-delete": "true"})");
  given_relocator();
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True ProtectedDelete"));
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

TEST_F(StateTest, SelectorSyncSetsThatTheDestinationLacksAreAWarningBeforeTheMove) {
  for (const auto* name : {"both", "source-only"})
    create(ocm::selector_sync_sets,
           R"({"metadata": {"name": ")" + std::string{name} +
               R"("}, "spec": {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
  create(ocm::selector_sync_sets, R"({"metadata": {"name": "both"}, "spec": {}})", &destination.server);
  create(ocm::selector_sync_sets, R"({"metadata": {"name": "of-others"}, "spec": {"clusterDeploymentSelector":
                                      {"matchLabels": {"hive-instance": "x"}}}})");
  given_move();
  live_until([&] { return has_moved(); });
  live_for(10s);
  EXPECT_THAT(
      events("SelectorSyncSetsMissing"),
      testing::ElementsAre("SelectorSyncSets that match on this hub are missing on the destination: source-only"));
  EXPECT_LT(position("c1: False SelectorSyncSetsMissing, -, -, -"),
            position("c1: False SelectorSyncSetsMissing, r1, -, r1/outgoing"))
      << testing::PrintToString(history);
}

TEST_F(StateTest, AClusterRelocateOfHiveThatMatchesTooIsNotCompetedWith) {
  create(ocm::cluster_relocates, R"({"metadata": {"name": "hives-own", "namespace": "hive"}, "spec":
      {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
  given_move();
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True HiveClusterRelocateMatches: Hive's own ClusterRelocate hives-own matches"));
}

TEST_F(StateTest, OneThatHiveItselfMovesIsLeftAlone) {
  given_secret();
  given_deployment(R"(, "annotations": {"hive.openshift.io/relocate": "hives-own/outgoing"})");
  given_relocator();
  const auto version = std::string{on_source(ocm::cluster_deployments, "c1")->resource_version()};
  live_for(10min);
  EXPECT_EQ(on_source(ocm::cluster_deployments, "c1")->resource_version(), version);
}

TEST_F(StateTest, APlanShowsWhatWouldMoveAndWhatIsInTheWay) {
  given_move(R"(, "manageDNS": true)");
  given_zone();
  create(kube::resources::secrets, R"({"metadata": {"name": "pull", "namespace": "prod"}})");
  given_deployment(R"(, "annotations": {"hive.openshift.io/protected-delete": "true"})", "", "c2");
  create(ocm::selector_sync_sets, R"({"metadata": {"name": "here"}, "spec": {"clusterDeploymentSelector":
                                      {"matchLabels": {"hive-instance": "hive2"}}}})");
  const auto relocator = on_source(cluster_relocators, "r1");
  auto plan = loop.run(make_plan(source.server.api(), connect(), *relocator, quiet));
  EXPECT_FALSE(plan.can_succeed());
  ASSERT_EQ(plan.deployments.size(), 2u);
  EXPECT_EQ(plan.deployments[0].reason, "");
  EXPECT_THAT(plan.deployments[0].objects, testing::ElementsAre("Secret pull", "DNSZone c1-zone"));
  EXPECT_THAT(plan.deployments[0].missing_sync_sets, testing::ElementsAre("here"));
  EXPECT_EQ(plan.deployments[1].reason, "ProtectedDelete");
  destination.server.outage(true);
  loop.run_for(1min);
  plan = loop.run(make_plan(source.server.api(), connect(), *relocator, quiet));
  EXPECT_EQ(plan.reason, "NoConnection");
  EXPECT_THAT(writes(destination.server), Not(Contains(HasSubstr("clusterdeployments"))));
  expect_untouched("c1");
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

TEST_F(StateTest, TheStatusOfARelocatorCounts) {
  given_move();
  given_deployment(R"(, "annotations": {"hive.openshift.io/protected-delete": "true"})", "", "c2");
  live([&]() -> Awaitable<> {
    co_await holds([&] { return has_moved(); });
    co_await sleep(10s);
  });
  const auto status = on_source(cluster_relocators, "r1")->find({"status"})->as_object();
  EXPECT_EQ(status.at("moved"), 1);
  EXPECT_EQ(status.at("matching"), 1);
  EXPECT_EQ(status.at("failed"), 1);
  EXPECT_EQ(status.at("moving"), 0);
}

/// Hive as it is installed: with its own relocation controller, which knows nothing of ClusterRelocators.
class BesideHiveTest : public StateTest {
 protected:
  BesideHiveTest() : StateTest(sim::HiveOptions{}) {}
};

TEST_F(BesideHiveTest, HiveDoesNotClearTheAnnotationsOfAMoveThatTakesLong) {
  given_move();
  create(kube::resources::secrets, R"({"metadata": {"name": "pull", "namespace": "prod"}})");
  destination.server.faults().on({.verb = "create", .resource = "secrets"}).always().fail(403);
  live_for(10min);
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), "hive.openshift.io/relocate"), "r1/outgoing");
  // A user deletes it now: Hive must wait for us.
  remove(ocm::cluster_deployments, {"prod", "c1"});
  destination.server.outage(true);
  live_for(10min);
  EXPECT_TRUE(is_on_source());
  expect_no_deprovision();
}

TEST_F(BesideHiveTest, TheTwoDoNotAnswerEachOthersConditionsWithoutAPause) {
  given_move();
  given_relocator("a");
  source.server.forget_requests();
  live_for(1h);
  expect_untouched();
  EXPECT_LT(writes(source.server).size(), 300u);
}

}  // namespace
}  // namespace hubferry::relocator::test
