#include "state_test.hpp"

/// Beside Hive as it is installed.
namespace hubferry::relocator::test {
namespace {

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

// Hive decides by its cache, and writes what it has read there: if another relocation has begun since, the server
// refuses that. Otherwise Hive would remove the annotations of a relocation that it does not know, and work on the
// cluster beside its next owner.
TEST_F(BesideHiveTest, HiveDoesNotClearARelocationThatBeganAfterItsDecision) {
  managers = 0;
  given_deployment(R"(, "annotations": {"hive.openshift.io/relocate": "r0/incoming"})", R"(, "manageDNS": true)");
  create(ocm::dns_zones, R"({"metadata": {"name": "c1-zone", "namespace": "prod"}, "spec": {}})");
  source.server.faults().on({.verb = "get", .resource = "dnszones"}).always().delay(sim::Latency::fixed(5s));
  live([&]() -> Awaitable<> {
    co_await sleep(2s);  // Hive has decided, and looks for the DNSZone
    const auto next = json::parse(R"({"metadata": {"annotations": {"hive.openshift.io/relocate": "r1/outgoing",
        "hive.openshift.io/reconcile-pause": "true"}}})");
    co_await source.server.api().merge_patch(ocm::cluster_deployments, {"prod", "c1"}, next.as_object());
    co_await sleep(5min);
  });
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), "hive.openshift.io/relocate"), "r1/outgoing");
}

constexpr auto* hives_own = R"({"metadata": {"name": "hives-own", "namespace": "hive"}, "spec":
    {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})";

// Hive would move it on at once, without waiting for the confirmation of its arrival.
TEST_F(StateTest, AClusterRelocateOfHiveOnTheDestinationThatMatchesIsNotCompetedWith) {
  create(ocm::cluster_relocates, hives_own, &destination.server);
  given_move();
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True HiveClusterRelocateMatches: Hive's own ClusterRelocate hives-own of the "
                                     "destination would move it on"));
  const auto relocator = on_source(cluster_relocators, "r1");
  const auto plan = loop.run(make_plan(source.server.api(), connect(), *relocator, quiet));
  ASSERT_EQ(plan.deployments.size(), 1u);
  EXPECT_EQ(plan.deployments.front().reason, "HiveClusterRelocateMatches");
  remove(ocm::cluster_relocates, {"hive", "hives-own"}, &destination.server);
  live_until([&] { return has_moved(); });
  expect_moved();
}

TEST_F(StateTest, AClusterRelocateOfHiveOnTheDestinationThatDoesNotMatchIsNotInTheWay) {
  create(ocm::cluster_relocates, hives_own, &destination.server);
  change(ocm::cluster_relocates, {"hive", "hives-own"},
         R"({"spec": {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive3"}}}})",
         &destination.server);
  given_move();
  live_until([&] { return has_moved(); });
  expect_moved();
}

// An account with the permissions of an earlier version may not list them.
TEST_F(StateTest, ClusterRelocatesOfHiveThatMayNotBeListedOnTheDestinationAreNotInTheWay) {
  destination.server.faults().on({.verb = "list", .resource = "clusterrelocates"}).always().fail(403);
  given_move();
  live_until([&] { return has_moved(); });
  expect_moved();
}

TEST_F(StateTest, ClusterRelocatesOfHiveThatCannotBeListedOnTheDestinationNowAreWaitedFor) {
  destination.server.faults().on({.verb = "list", .resource = "clusterrelocates"}).always().fail(503);
  given_move();
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True NoConnection: cannot list Hive's ClusterRelocates of the destination"));
  destination.server.faults().clear();
  live_until([&] { return has_moved(); });
}

// Two hubs have it already: only the end of the move mends that.
TEST_F(StateTest, AMoveThatHasArrivedIsFinishedWhateverMatchesOnTheDestination) {
  create(ocm::cluster_relocates, hives_own, &destination.server);
  given_secret();
  given_relocator();
  given_deployment();
  given_copy_on_destination();
  live_until([&] { return has_moved(); });
  expect_moved();
}

}  // namespace
}  // namespace hubferry::relocator::test
