#include "whole_world.hpp"

/// The real controller and hub operations on simulated hubs with real klusterlets, on virtual time.
namespace hubferry::migration::test {
namespace {

class WholeWorldTest : public testing::TestWithParam<bool> {};

TEST_P(WholeWorldTest, FiveMigrationsAtOnceMoveTheirClustersAndLeaveNothingElse) {
  WholeWorld whole{24, 3, GetParam()};
  const auto names = whole.world.world().clusters();
  std::map<std::string, Snapshot> before;
  for (const auto& server : whole.world.world().servers()) before[server] = whole.snapshot(server);
  whole.start_manager();
  std::vector<std::string> migrations;
  std::vector<std::string> moved;
  for (int index = 0; index < 5; ++index) {
    ClusterNames clusters{names.begin() + index * 4, names.begin() + index * 4 + 4};
    moved.insert(moved.end(), clusters.begin(), clusters.end());
    migrations.push_back("m" + std::to_string(index));
    whole.migrate(migrations.back(), clusters);
  }
  whole.run_until_ended(migrations);
  for (const auto& name : migrations) EXPECT_EQ(whole.phase(name), "Completed") << whole.describe(name);
  whole.world.run_for(5min);
  whole.world.run(whole.world.world().wait_settled());
  for (const auto& name : names) {
    const bool should_move = std::ranges::find(moved, name) != moved.end();
    EXPECT_EQ(whole.is_available("hub2", name), should_move) << name;
    EXPECT_EQ(whole.exists("hub1", name), !should_move) << name;
  }
  std::size_t accounts = 0;
  for (const auto& request : whole.world.global().requests())
    accounts += request.verb == "create" && request.resource.starts_with("managedserviceaccounts") ? 1 : 0;
  EXPECT_EQ(accounts, GetParam() ? 5u : 0u);
  EXPECT_EQ(whole.world.world().agents().available_at("https://hub2.sim"), moved.size());
  expect_clean_move(whole, before, moved, migrations);
}

INSTANTIATE_TEST_SUITE_P(Credentials, WholeWorldTest, testing::Bool(),
                         [](const auto& with) { return with.param ? "ManagedServiceAccount" : "TokenRequest"; });

// The manager crashes at random points, again and again.
class DyingManagerTest : public testing::TestWithParam<int> {};

TEST_P(DyingManagerTest, ItsSuccessorsReachTheSameEnd) {
  WholeWorld whole{9, static_cast<std::uint64_t>(GetParam()), GetParam() % 2 == 0};
  async::Random random{static_cast<std::uint64_t>(GetParam())};
  const auto names = whole.world.world().clusters();
  std::map<std::string, Snapshot> before;
  for (const auto& server : whole.world.world().servers()) before[server] = whole.snapshot(server);
  whole.migrate("m1", {names[0], names[1], names[2]});
  whole.migrate("m2", {names[3], names[4]});
  whole.migrate("m3", {names[5], names[6], names[7]});
  for (int life = 0; life < 12; ++life) {
    whole.start_manager();
    // Most of the work is done in the first second of a phase.
    whole.world.run_for(random.chance(0.7) ? random.between(1ms, 1s) : random.between(1s, 60s));
    whole.stop_manager();
  }
  whole.start_manager();
  whole.run_until_ended({"m1", "m2", "m3"});
  for (const auto* name : {"m1", "m2", "m3"}) EXPECT_EQ(whole.phase(name), "Completed") << whole.describe(name);
  whole.world.run_for(5min);
  whole.world.run(whole.world.world().wait_settled());
  expect_clean_move(whole, before, {names.begin(), names.begin() + 8}, {"m1", "m2", "m3"});
}

INSTANTIATE_TEST_SUITE_P(Seeds, DyingManagerTest, testing::Range(1, 21));

// What a look at the server costs more than one at a cache. Each cluster has one host, one deployment and their
// Secrets.
TEST(WholeWorldStories, AClusterCostsABoundedNumberOfRequests) {
  const auto cost = [](std::size_t clusters) {
    WholeWorld whole{clusters, 4};
    const auto names = whole.world.world().clusters();
    whole.start_manager();
    whole.migrate("m1", {names.begin(), names.end()});
    whole.run_until_ended({"m1"});
    EXPECT_EQ(whole.phase("m1"), "Completed") << whole.describe("m1");
    return std::pair{whole.lines["hub1"], whole.lines["hub2"]};
  };
  // Fewer than ten clusters do not share watches.
  const auto few = cost(12);
  const auto many = cost(20);
  const auto of_each = [](const Line& more, const Line& less) {
    return (static_cast<double>(more.requests) - static_cast<double>(less.requests)) / 8;
  };
  const auto named = [](const Line& more, const Line& less) {
    std::ostringstream text;
    text << "requests per cluster:";
    for (const auto& [request, count] : more.by_request) {
      const auto before = less.by_request.find(request);
      const auto others = before == less.by_request.end() ? 0.0 : static_cast<double>(before->second);
      if (const double each = (static_cast<double>(count) - others) / 8; each != 0)
        text << "\n" << each << " " << request;
    }
    return text.str();
  };
  EXPECT_LE(of_each(many.first, few.first), 8.5) << named(many.first, few.first);
  EXPECT_LE(of_each(many.second, few.second), 10.75) << named(many.second, few.second);
}

TEST(WholeWorldStories, ClustersMoveThereAndBackAgain) {
  WholeWorld whole{3, 5};
  const auto names = whole.world.world().clusters();
  whole.start_manager();
  whole.migrate("there", {names[0], names[1]});
  whole.run_until_ended({"there"});
  ASSERT_EQ(whole.phase("there"), "Completed") << whole.describe("there");
  whole.migrate("back", {names[1]}, "hub2", "hub1");
  whole.run_until_ended({"back"});
  EXPECT_EQ(whole.phase("back"), "Completed") << whole.describe("back");
  EXPECT_TRUE(whole.is_available("hub1", names[1]));
  EXPECT_FALSE(whole.exists("hub2", names[1]));
  EXPECT_TRUE(whole.is_available("hub2", names[0]));
}

TEST(WholeWorldStories, AClusterThatIsSwitchedOffIsRolledBackAndTheOthersMove) {
  WholeWorld whole{4, 6};
  const auto names = whole.world.world().clusters();
  std::map<std::string, Snapshot> before;
  for (const auto& server : whole.world.world().servers()) before[server] = whole.snapshot(server);
  whole.start_manager();
  whole.migrate("m1", {names[0], names[1], names[2]});
  while (whole.phase("m1") != "Registering") whole.world.run_for(10ms);
  whole.world.world().agents().remove(names[1]);
  whole.world.run_for(2min);
  EXPECT_THAT(whole.describe("m1"), testing::HasSubstr("1 cluster whose agent has not registered on hub hub2"));
  whole.world.run_for(58min);
  EXPECT_EQ(whole.phase("m1"), "Rollbacking") << "it is not back";
  EXPECT_FALSE(whole.exists("hub1", names[0])) << "the others do not wait for it";
  EXPECT_TRUE(whole.exists("hub2", names[1])) << "its agent may still be registering there";
  // It will never come back: a person says so.
  json::object annotations{{migration::names::leave_annotation, "hub1/" + names[1] + ",hub2/" + names[1]}};
  json::object left{{"metadata", json::object{{"annotations", std::move(annotations)}}}};
  EXPECT_TRUE(whole.world.run(
      whole.world.api("global").merge_patch(managed_cluster_migrations, {"default", "m1"}, std::move(left))));
  whole.run_until_ended({"m1"});
  EXPECT_EQ(whole.phase("m1"), "Failed") << whole.describe("m1");
  EXPECT_TRUE(whole.is_available("hub2", names[0]));
  EXPECT_TRUE(whole.is_available("hub2", names[2]));
  EXPECT_TRUE(whole.exists("hub1", names[1]));
  EXPECT_FALSE(whole.exists("hub1", names[0]));
  // What stays of the one that is off is what was named.
  const auto of_the_others = [&](const Snapshot& snapshot) {
    Snapshot others;
    for (const auto& entry : snapshot)
      if (!belongs_to(entry.first, names[1])) others.insert(entry);
    return others;
  };
  before["hub1"] = of_the_others(before["hub1"]);
  before["hub2"] = of_the_others(before["hub2"]);
  expect_clean_move(whole, before, {names[0], names[2]}, {"m1"}, of_the_others);
}

TEST(WholeWorldStories, AStageOfThreeMinutesIsLongEnoughToSayWhyAClusterWasNotDetached) {
  WholeWorld whole{1, 8};
  const auto names = whole.world.world().clusters();
  whole.start_manager();
  whole.world.world().agents().remove(names[0]);
  whole.migrate("m1", {names[0]});
  json::object timeout{{"spec", json::object{{"supportedConfigs", json::object{{"stageTimeout", "3m"}}}}}};
  EXPECT_TRUE(whole.world.run(
      whole.world.api("global").merge_patch(managed_cluster_migrations, {"default", "m1"}, std::move(timeout))));
  whole.run_until_ended({"m1"}, 10min);
  EXPECT_THAT(whole.describe("m1"), testing::HasSubstr("its agent has not applied ManifestWork"));
}

TEST(WholeWorldStories, DeletingARunningMigrationLeavesTheWorldAsItWas) {
  for (const std::chrono::milliseconds span : {300ms, 600ms, 1200ms, 5000ms, 20000ms, 60000ms}) {
    SCOPED_TRACE(std::to_string(span.count()));
    WholeWorld whole{3, 7};
    const auto names = whole.world.world().clusters();
    std::map<std::string, Snapshot> before;
    for (const auto& server : whole.world.world().servers()) before[server] = whole.snapshot(server);
    whole.start_manager();
    whole.migrate("m1", {names[0], names[1]});
    whole.world.run_for(span);
    EXPECT_TRUE(whole.world.run(whole.world.api("global").remove(managed_cluster_migrations, {"default", "m1"})));
    whole.run_until_ended({"m1"});
    EXPECT_EQ(whole.phase("m1"), "gone");
    whole.world.run_for(10min);
    std::vector<std::string> moved;
    for (const auto& name : names)
      if (whole.is_available("hub2", name)) moved.push_back(name);
    for (const auto& name : names)
      EXPECT_NE(whole.is_available("hub1", name), whole.is_available("hub2", name)) << name;
    expect_clean_move(whole, before, moved, {});
  }
}

// The two differ in what disable-auto-import does (see ImportController): a migration must not depend on it. After its
// end each agent survives a restart.
TEST(WholeWorldStories, ClustersMoveThereAndBackWithEachImportController) {
  for (const auto controller : {sim::ImportController::mce_2_17, sim::ImportController::mce_5_x}) {
    SCOPED_TRACE(controller == sim::ImportController::mce_5_x ? "5.x" : "2.17");
    WholeWorld whole{3, 11, true, controller};
    const auto names = whole.world.world().clusters();
    whole.start_manager();
    const auto move = [&](const std::string& name, const std::string& from, const std::string& to) {
      whole.migrate(name, {names[0], names[1]}, from, to);
      whole.run_until_ended({name});
      EXPECT_EQ(whole.phase(name), "Completed") << whole.describe(name);
      for (const auto& cluster : {names[0], names[1]}) {
        EXPECT_FALSE(whole.exists(from, cluster));
        whole.restart_agent(cluster);
        const auto before = whole.renewal(to, cluster);
        whole.world.run_for(2min);
        EXPECT_NE(whole.renewal(to, cluster), before) << cluster << " must be on " << to;
        EXPECT_TRUE(whole.is_available(to, cluster));
      }
    };
    move("there", "hub1", "hub2");
    move("back", "hub2", "hub1");
  }
}

}  // namespace
}  // namespace hubferry::migration::test
