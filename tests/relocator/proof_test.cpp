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

}  // namespace
}  // namespace hubferry::relocator::test
