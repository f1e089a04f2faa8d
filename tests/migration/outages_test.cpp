#include "whole_world.hpp"

/// Hubs that are slow, or that only the manager cannot reach.
namespace hubferry::migration::test {
namespace {

using testing::HasSubstr;

std::map<std::string, Snapshot> snapshots(WholeWorld& whole) {
  std::map<std::string, Snapshot> all;
  for (const auto& server : whole.world.world().servers()) all[server] = whole.snapshot(server);
  return all;
}

// Creates that are on their way when the migration is deleted take effect all the same: the finalizer waits for them.
class SlowTarget : public testing::TestWithParam<int> {};

TEST_P(SlowTarget, DeletingAMigrationInDeployingLeavesNothingThere) {
  WholeWorld whole{4, static_cast<std::uint64_t>(GetParam())};
  const auto names = whole.world.world().clusters();
  const auto before = snapshots(whole);
  whole.world.server("hub2").faults().on({"create", "managedclusters"}).always().delay(sim::Latency::fixed(1500ms));
  whole.start_manager();
  whole.migrate("m1", {names.begin(), names.end()});
  while (whole.phase("m1") != "Deploying") whole.world.run_for(10ms);
  whole.world.run_for(GetParam() * 150ms);
  ASSERT_EQ(whole.phase("m1"), "Deploying");
  EXPECT_TRUE(whole.world.run(whole.world.api("global").remove(managed_cluster_migrations, {"default", "m1"})));
  whole.run_until_ended({"m1"});
  EXPECT_EQ(whole.phase("m1"), "gone") << whole.describe("m1");
  whole.world.run_for(10min);
  for (const auto& name : names) EXPECT_TRUE(whole.is_available("hub1", name)) << name;
  expect_clean_move(whole, before, {}, {});
}

INSTANTIATE_TEST_SUITE_P(Moments, SlowTarget, testing::Range(1, 11));

// The agents reach the target, the manager does not: what it does on the source must not depend on what it cannot see.
class SeveredTarget : public testing::TestWithParam<int> {};

TEST_P(SeveredTarget, IsWaitedForAndNoClusterStaysAcceptedByBoth) {
  WholeWorld whole{3, static_cast<std::uint64_t>(GetParam())};
  const auto names = whole.world.world().clusters();
  whole.start_manager();
  whole.migrate("m1", {names.begin(), names.end()});
  while (whole.phase("m1") != "Registering") whole.world.run_for(10ms);
  whole.world.run_for(std::chrono::seconds{GetParam()});
  ASSERT_EQ(whole.phase("m1"), "Registering");
  whole.severed["hub2"] = true;
  // Beyond the timeout of Registering, and long into the rollback.
  whole.world.run_for(1h);
  const auto migration = whole.world.global().object(managed_cluster_migrations, {"default", "m1"});
  ASSERT_TRUE(migration);
  EXPECT_EQ(whole.phase("m1"), "Rollbacking");
  const auto* condition = kube::find_condition(*migration, conditions::rolled_back);
  ASSERT_NE(condition, nullptr);
  EXPECT_EQ(kube::string_at(*condition, {"reason"}), "RollbackPending");
  EXPECT_THAT(std::string{kube::string_at(*condition, {"message"})}, HasSubstr("hub 'hub2'"));
  for (const auto& name : names)
    EXPECT_TRUE(whole.is_accepted("hub1", name) || whole.is_accepted("hub2", name)) << name;

  whole.severed["hub2"] = false;
  whole.run_until_ended({"m1"}, 6h);
  EXPECT_TRUE(whole.phase("m1") == "Completed" || whole.phase("m1") == "Failed") << whole.describe("m1");
  whole.world.run_for(10min);
  for (const auto& name : names) {
    EXPECT_NE(whole.is_accepted("hub1", name), whole.is_accepted("hub2", name)) << name << whole.describe("m1");
    EXPECT_TRUE(whole.is_available(whole.is_accepted("hub1", name) ? "hub1" : "hub2", name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(SecondsAfterTheCutOver, SeveredTarget, testing::Values(0, 1, 2, 4, 8, 15, 30));

}  // namespace
}  // namespace hubferry::migration::test
