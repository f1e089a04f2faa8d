#include "migration_test.hpp"

namespace hubferry::migration::test {
namespace {

TEST_F(MigrationTest, AMigrationPassesThroughAllPhasesAndLeavesNothingBehind) {
  given("m1", {"a", "b"});
  live_until("m1", "Completed");
  expect_moved("m1", {"a", "b"}, {"c"});
  EXPECT_THAT(condition("m1", "MigrationStarted"), HasSubstr("True InstanceStarted"));
  EXPECT_THAT(condition("m1", "ResourceValidated"), HasSubstr("True ResourceValidated: 2 clusters can move"));
  EXPECT_THAT(condition("m1", "ResourceInitialized"), HasSubstr("True ResourceInitialized"));
  EXPECT_THAT(condition("m1", "ResourceDeployed"), HasSubstr("True ResourcesDeployed"));
  EXPECT_THAT(condition("m1", "ClusterRegistered"), HasSubstr("True ClusterRegistered"));
  EXPECT_THAT(condition("m1", "MigrationVerified"), HasSubstr("True MigrationVerified"));
  EXPECT_THAT(condition("m1", "ResourceCleaned"), HasSubstr("True ResourceCleaned"));
  EXPECT_EQ(condition("m1", "ResourceRolledBack"), "none");
  EXPECT_EQ(clusters("m1", "total"), 2);
  EXPECT_EQ(clusters("m1", "migrated"), 2);
  EXPECT_EQ(clusters("m1", "migrating"), 0);
  EXPECT_EQ(migration("m1").string_at({"status", "clusters", "progress"}), "2/2");
  EXPECT_THAT(listed("m1", "success"), testing::ElementsAre("a", "b"));
  EXPECT_THAT(listed("m1", "failure"), testing::IsEmpty());
}

// Users read conditions from top to bottom.
TEST_F(MigrationTest, ConditionsComeInTheOrderOfThePhasesWithGenerationAndTimes) {
  given("m1", {"a"});
  live_until("m1", "Completed");
  std::vector<std::string> types;
  const auto object = migration("m1");
  for (const auto& entry : object.find({"status", "conditions"})->as_array()) {
    types.emplace_back(entry.at("type").as_string());
    EXPECT_EQ(entry.at("observedGeneration").to_number<int>(), 1);
    EXPECT_TRUE(entry.as_object().contains("lastUpdateTime"));
    EXPECT_TRUE(entry.as_object().contains("lastTransitionTime"));
  }
  EXPECT_THAT(types, testing::ElementsAre("Ready", "MigrationStarted", "ResourceValidated", "ResourceInitialized",
                                          "ResourceDeployed", "ClusterRegistered", "MigrationVerified",
                                          "ResourceCleaned", "Succeeded"));
}

TEST_F(MigrationTest, EveryTransitionHasAnEvent) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Completed");
    co_await sleep(1s);
  });
  for (const auto* reason : {"Validating", "Initializing", "Deploying", "Registering", "Cleaning", "Completed"})
    EXPECT_EQ(events(reason).size(), 1u) << reason;
  EXPECT_THAT(events("Deploying").at(0), HasSubstr("are prepared for the move"));
}

TEST_F(MigrationTest, APlacementSelectsTheClusters) {
  hubs.hub("hub1").placements["edge"] = {"a", "c"};
  given("m1", {}, {{"includedManagedClustersPlacementRef", "edge"}});
  live_until("m1", "Completed");
  expect_moved("m1", {"a", "c"}, {"b"});
  EXPECT_THAT(listed("m1", "all-clusters"), testing::ElementsAre("a", "c"));
}

TEST_F(MigrationTest, DuplicateNamesCountOnce) {
  given("m1", {"b", "a", "b"});
  live_until("m1", "Completed");
  EXPECT_EQ(clusters("m1", "total"), 2);
  expect_moved("m1", {"a", "b"}, {"c"});
}

// The credential is deleted from the global hub last: an agent may restart until then.
TEST_F(MigrationTest, TheCredentialIsDeletedAfterEverythingElse) {
  given("m1", {"a"});
  live_until("m1", "Completed");
  EXPECT_EQ(hubs.orders.back(), "hub2 target.delete_migration_objects");
}

TEST_F(MigrationTest, TheTargetIsPreparedBeforeTheSource) {
  given("m1", {"a"});
  live_until("m1", "Completed");
  const auto at = [&](const char* order) { return std::ranges::find(hubs.orders, order) - hubs.orders.begin(); };
  EXPECT_LT(at("hub2 target.initialize"), at("hub1 source.initialize"));
}

TEST_F(MigrationTest, NoSecretIsInLogStatusEventOrConfigMap) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Completed");
    co_await sleep(1s);
  });
  EXPECT_FALSE(log.contains("token-for"));
  for (const auto* kind : {&managed_cluster_migrations, &kube::resources::config_maps, &kube::resources::events})
    for (const auto& object : global.objects(*kind))
      EXPECT_THAT(json::serialize(object.json()), Not(HasSubstr("token-for")));
}

TEST_F(MigrationTest, TheObjectStaysSmallWithFiveThousandClusters) {
  ClusterNames names;
  for (int index = 0; index < 5000; ++index) {
    names.push_back("cluster-with-a-rather-long-name-" + std::to_string(10000 + index));
    hubs.add_cluster("hub1", names.back());
    if (index % 2 == 0)
      hubs.faults["target.deploy " + names.back()] = {
          kube::Error{kube::ErrorKind::invalid, 422, "Invalid", std::string(3000, 'x'), {}}};
  }
  given("m1", names);
  global.forget_requests();
  const auto begun = loop.clock().now();
  live_until("m1", "Failed");
  EXPECT_EQ(clusters("m1", "migrated"), 2500);
  EXPECT_EQ(clusters("m1", "rolledBack"), 2500);
  const auto object = migration("m1");
  EXPECT_LT(json::serialize(*object.find({"status"})).size(), 100u * 1024);
  const auto map = global.object(kube::resources::config_maps, {"default", "m1"});
  EXPECT_LT(json::serialize(map->json()).size(), 1000u * 1024);
  std::size_t writes = 0;
  for (const auto& request : global.requests())
    if (request.resource.starts_with("managedclustermigrations") && request.verb == "patch") ++writes;
  // Those of the phases, and one for each interval at which progress is reported: none for a cluster.
  const auto reports = (loop.clock().now() - begun) / ControllerOptions{}.progress_interval;
  EXPECT_LT(writes, 30u + static_cast<std::size_t>(reports));
}

}  // namespace
}  // namespace hubferry::migration::test
