#include "state_test.hpp"

/// What users see: warnings, plan, status, and the number of requests.
namespace hubferry::relocator::test {
namespace {

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

}  // namespace
}  // namespace hubferry::relocator::test
