#include "intercepting_api.hpp"
#include "state_test.hpp"

/// What counts as proof that the destination has the cluster, and what does not.
namespace hubferry::relocator::test {
namespace {

TEST_F(StateTest, OneThatIsRelocatedIsDeletedWithoutALookAtTheDestinationWhichMayBeDown) {
  given_secret();
  given_relocator();
  given_deployment(
      R"(, "annotations": {"hive.openshift.io/relocated": "r1", "hive.openshift.io/relocate": "r1/complete"})");
  destination.server.outage(true);
  destination.server.forget_requests();
  live_until([&] { return !is_on_source(); });
  for (const auto& request : destination.server.requests())
    if (request.key.name == "c1") ADD_FAILURE() << request.verb << " " << request.resource;
  EXPECT_THAT(history, Contains("c1: False MoveSuccessful, -, r1, r1/complete, deleting"));
  expect_no_deprovision();
}

TEST_F(StateTest, OneThatIsStillThereLongAfterItsDeletionSaysThatItHasMoved) {
  given_secret();
  given_deployment();
  change(ocm::cluster_deployments, {"prod", "c1"},
         R"({"metadata": {"finalizers": ["hive.openshift.io/deprovision", "example.com/held"]}})");
  live_for(1min);
  EXPECT_THAT(condition(), HasSubstr("False NoMatchingRelocators"));
  given_relocator();
  const auto is_being_deleted = [&] { return on_source(ocm::cluster_deployments, "c1")->is_being_deleted(); };
  live_until(is_being_deleted);
  // Hive usually finalizes it at once, and nobody could read the condition.
  EXPECT_THAT(condition(), HasSubstr("False NoMatchingRelocators"));
  live_for(10s);  // another process: it must not count the relocation again
  EXPECT_THAT(condition(), HasSubstr("False NoMatchingRelocators"));
  live_for(1min);
  EXPECT_THAT(condition(), HasSubstr("False MoveSuccessful"));
  EXPECT_EQ(metric("hive_cluster_relocations", "r1"), 1);
  change(ocm::cluster_deployments, {"prod", "c1"}, R"({"metadata": {"finalizers": []}})");
  expect_moved();
}

TEST_F(StateTest, OneThatTheDestinationHasIsNotCopiedAgain) {
  given_copy_on_destination(R"(, "differs": "elsewhere")");
  given_move(R"(, "manageDNS": true)");
  given_zone();
  create(kube::resources::secrets, R"({"metadata": {"name": "pull", "namespace": "prod"}})");
  create(ocm::machine_pools, R"({"metadata": {"name": "c1-worker", "namespace": "prod"},
                                 "spec": {"clusterDeploymentRef": {"name": "c1"}}})");
  const auto uid = std::string{on_destination(ocm::cluster_deployments, "c1")->uid()};
  destination.server.forget_requests();
  live_until([&] { return !is_on_source(); });
  for (const auto& kind : {kube::resources::secrets, ocm::machine_pools, ocm::dns_zones})
    for (const auto& request : destination.server.requests())
      if (request.resource.starts_with(kind.plural) && request.verb == "create")
        ADD_FAILURE() << request.verb << " " << request.resource << " " << request.key.name;
  EXPECT_FALSE(on_destination(kube::resources::secrets, "pull"));
  EXPECT_FALSE(on_destination(ocm::machine_pools, "c1-worker"));
  EXPECT_EQ(on_destination(ocm::cluster_deployments, "c1")->uid(), uid);
  EXPECT_EQ(on_destination(ocm::cluster_deployments, "c1")->string_at({"spec", "differs"}), "elsewhere");
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
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), names::relocating), "-");
  EXPECT_THAT(condition(), HasSubstr("True ClusterDeploymentMismatch: the destination has another cluster"));
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

// A server that starts does not serve all kinds at once, and a proxy may answer anything.
TEST_F(StateTest, AnAbortIsNotBasedOnA404ThatDoesNotNameTheClusterDeployment) {
  given_secret();
  given_relocator("r1", "another-label");
  given_copy_on_destination();
  given_moving("r1");
  destination.server.faults().on({.verb = "get", .resource = "clusterdeployments"}).always().fail(404);
  live_for(10min);
  EXPECT_THAT(condition(), HasSubstr("True AbortBlocked"));
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), names::relocating), "r1");
  destination.server.faults().clear();
  live_until([&] { return has_moved(); });
  expect_moved();
}

TEST_F(StateTest, AMoveDoesNotGoOnWithoutAZoneThatTheSourceDoesNotServeJustNow) {
  given_move(R"(, "manageDNS": true)");
  given_zone();
  source.server.faults().on({.verb = "get", .resource = "dnszones"}).always().fail(404);
  live_for(10min);
  EXPECT_FALSE(is_on_destination());
  EXPECT_THAT(condition(), HasSubstr("True MoveFailed: annotating its DNSZone"));
  source.server.faults().clear();
  live_until([&] { return has_moved(); });
  expect_moved();
  EXPECT_TRUE(on_destination(ocm::dns_zones, "c1-zone"));
}

TEST_F(StateTest, OneWhoseAnnotationIsRemovedJustBeforeItsDeletionIsNotDeprovisioned) {
  given_secret();
  given_deployment();
  live_for(1min);  // its condition is False, so that nothing is written between the annotation and the deletion
  given_relocator();
  destination.server.faults()
      .on({.verb = "patch", .resource = "clusterdeployments"})
      .times(1)
      .delay(sim::Latency::fixed(20s));
  live([&]() -> Awaitable<> {
    co_await holds([&] { return annotation(on_source(ocm::cluster_deployments, "c1"), names::relocated) == "r1"; });
    const auto undo = json::parse(R"({"metadata": {"annotations": {"hive.openshift.io/relocated": null,
                                      "hive.openshift.io/relocate": null}}})");
    const Key key{"prod", "c1"};
    co_await source.server.api().merge_patch(ocm::cluster_deployments, key, undo.as_object());
    co_await holds([&] { return has_moved(); });
  });
  live_for(1min);
  expect_moved();
}

// It is certainly not ours: the destination does not have ours.
TEST_F(StateTest, AnotherClusterOfThatNameOnTheDestinationDoesNotBlockAnAbort) {
  given_namesake_on_destination("example.com", R"(, "clusterMetadata": {"infraID": "c1-y2", "clusterID": "id-y2"})");
  given_secret();
  given_relocator("r1", "other");
  given_moving("r1");
  live_for(5min);
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), names::relocating), "-");
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), ocm::names::hive_relocate_annotation), "-");
  EXPECT_THAT(condition(), HasSubstr("False NoMatchingRelocators"));
  EXPECT_EQ(aborts("r1", "no_match"), 1);
  EXPECT_EQ(on_destination(ocm::cluster_deployments, "c1")->string_at({"spec", "clusterMetadata", "infraID"}), "c1-y2");
  expect_no_deprovision();
}

/// A destination that executes the first creation of a ClusterDeployment only when told to, long after its answer was
/// lost.
class LateTest : public StateTest {
 protected:
  hubs::Connect connect() override {
    return [this](const std::string&, const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
      return std::make_shared<InterceptingApi>(network.connect(config), [this](kube::Api& real, kube::Request request) {
        return delay(real, std::move(request));
      });
    };
  }
  Awaitable<kube::Result<Object>> delay(kube::Api& real, kube::Request request) {
    const bool first = !late && request.verb == kube::Verb::create && request.resource == ocm::cluster_deployments;
    if (!first) co_return co_await real.call(std::move(request));
    late = std::move(request);
    co_await sleep(answers_after);
    co_return kube::Error{kube::ErrorKind::ambiguous, 0, {}, "the connection was lost", {}};
  }
  /// The user deletes it as soon as its copy is on its way, which arrives half a minute later.
  void delete_while_the_copy_is_on_its_way() {
    given_secret();
    given_deployment();
    live([&]() -> Awaitable<> {
      co_await sleep(5min);  // what a predecessor may have sent is over
      const auto relocator = json::parse(R"({"metadata": {"name": "r1"}, "spec": {"kubeconfigSecretRef": {"namespace":
          "hive", "name": "to-destination"}, "clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
      co_await source.server.api().create(cluster_relocators, relocator.as_object());
      co_await holds([&] { return late.has_value(); });
      const Key key{"prod", "c1"};
      co_await source.server.api().remove(ocm::cluster_deployments, key);
      co_await sleep(30s);
      co_await destination.server.api().call(*late);
      co_await holds([&] { return !is_on_source(); });
    });
    expect_moved();
  }

  std::optional<kube::Request> late;
  async::Duration answers_after{0};
};

// An API server may execute a request for a minute: until then its absence proves nothing.
TEST_F(LateTest, OneThatIsDeletedAfterItsCopyWasSentAndTheAnswerLostIsNotDeprovisioned) {
  delete_while_the_copy_is_on_its_way();
}

TEST_F(LateTest, OneThatIsDeletedWhileTheAnswerToItsCopyIsWaitedForIsNotDeprovisioned) {
  answers_after = 45s;
  delete_while_the_copy_is_on_its_way();
}

/// A destination that says that it has created a ClusterDeployment, and has not.
class LyingTest : public StateTest {
 protected:
  hubs::Connect connect() override {
    return [this](const std::string&, const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
      return std::make_shared<InterceptingApi>(network.connect(config), [this](kube::Api& real, kube::Request request) {
        return lie(real, std::move(request));
      });
    };
  }
  Awaitable<kube::Result<Object>> lie(kube::Api& real, kube::Request request) {
    if (answer && request.verb == kube::Verb::create && request.resource == ocm::cluster_deployments) co_return *answer;
    co_return co_await real.call(std::move(request));
  }

  std::optional<Object> answer;
};

TEST_F(LyingTest, ADestinationThatAnswersWithSomethingElseThanTheCopyIsNotBelieved) {
  given_move();
  const auto of_cluster = [](const std::string& metadata, const std::string& infra) {
    return Object{json::parse(R"({"metadata": {)" + metadata + R"(}, "spec": {"baseDomain": "example.com",
        "clusterMetadata": {"infraID": ")" +
                              infra + R"(", "clusterID": "id-c1"}}})")
                      .as_object()};
  };
  const std::string named = R"("name": "c1", "namespace": "prod")";
  for (const auto& lie : {Object{}, of_cluster(named, "c1-x1"), of_cluster(named + R"(, "uid": "u")", "other"),
                          of_cluster(R"("uid": "u", "name": "c2", "namespace": "prod")", "c1-x1")}) {
    answer = lie;
    live_for(10min);
    EXPECT_TRUE(is_on_source());
    EXPECT_FALSE(is_on_destination());
    EXPECT_THAT(condition(), HasSubstr("True MoveFailed: cannot copy ClusterDeployment prod/c1"));
    for (const auto& line : history) EXPECT_THAT(line, Not(HasSubstr("complete")));
  }
  answer.reset();
  live_until([&] { return has_moved(); });
  expect_moved();
}

}  // namespace
}  // namespace hubferry::relocator::test
