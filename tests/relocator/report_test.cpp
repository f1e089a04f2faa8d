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

TEST_F(StateTest, APlanShowsWhatTheDestinationHasAndWhatIsInTheWayThere) {
  given_move(R"(, "manageDNS": true)");
  given_zone();
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
  const auto secret = [&](const std::string& name, const std::string& value, const std::string& more = "") {
    return R"({"metadata": {"name": ")" + name + R"(", "namespace": "prod", "labels":
        {"hive.openshift.io/cluster-deployment-name": "c1")" +
           more + R"(}}, "data": {"a": ")" + value + R"("}})";
  };
  for (const auto* name : {"equal", "missing", "old", "theirs"}) create(kube::resources::secrets, secret(name, "YQ=="));
  create(kube::resources::secrets, secret("equal", "YQ=="), &destination.server);
  create(kube::resources::secrets, secret("theirs", "Yg=="), &destination.server);
  create(kube::resources::secrets,
         secret("old", "Yg==", R"(, "hubferry.io/relocated-from": ")" + identity(source.server) + "\""),
         &destination.server);
  create(ocm::dns_zones, R"({"metadata": {"name": "c1-zone", "namespace": "prod"}, "spec": {}})", &destination.server);
  const auto relocator = on_source(cluster_relocators, "r1");
  destination.server.forget_requests();
  auto plan = loop.run(make_plan(source.server.api(), connect(), *relocator, quiet));
  EXPECT_THAT(writes(destination.server), IsEmpty());
  ASSERT_EQ(plan.deployments.size(), 1u);
  const auto& planned = plan.deployments.front();
  EXPECT_EQ(planned.objects.size(), 5u);
  EXPECT_THAT(planned.present, testing::ElementsAre("Secret equal"));
  EXPECT_THAT(planned.outdated, testing::ElementsAre("Secret old"));
  ASSERT_EQ(planned.obstacles.size(), 2u);
  EXPECT_EQ(planned.obstacles[0].object, "Secret theirs");
  EXPECT_THAT(planned.obstacles[0].message, HasSubstr("prod/theirs: the destination has one that differs"));
  EXPECT_EQ(planned.obstacles[1].object, "DNSZone c1-zone");
  EXPECT_EQ(planned.reason, "MoveFailed");
  EXPECT_FALSE(plan.can_succeed());
  // What the plan says is what happens.
  live_for(1min);
  EXPECT_THAT(condition(), HasSubstr("True MoveFailed: " + planned.message));
  remove(kube::resources::secrets, {"prod", "theirs"}, &destination.server);
  change(ocm::dns_zones, {"prod", "c1-zone"}, R"({"metadata": {"finalizers": null}})", &destination.server);
  remove(ocm::dns_zones, {"prod", "c1-zone"}, &destination.server);
  plan = loop.run(make_plan(source.server.api(), connect(), *relocator, quiet));
  EXPECT_TRUE(plan.can_succeed()) << plan.deployments.front().message;
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
