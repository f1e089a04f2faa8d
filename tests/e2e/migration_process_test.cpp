#include "stage.hpp"

/// Real processes, sockets and kubectl: a simulated world, and the manager as users run it.
namespace hubferry::test {
namespace {

TEST(MigrationProcess, FiveMigrationsOfTwoHundredClustersAtOnce) {
  SimProcess sim{{"--clusters=200", "--hubs=hub1,hub2"}};
  Onlooker onlooker{sim};
  const auto before = snapshots(onlooker);
  ManagerOfWorld manager{sim};
  std::string manifest;
  std::vector<std::string> names;
  for (int index = 0; index < 5; ++index) {
    names.push_back("m" + std::to_string(index));
    manifest += migration_manifest(names.back(), 1 + 38 * index, 38);
  }
  sim.must("global", "apply -f " + sim.write("migrations.yaml", manifest));
  ASSERT_TRUE(onlooker.eventually([&] { return onlooker.all_ended(); })) << sim.must("global", "get mcm -A");
  for (const auto& [name, phase] : onlooker.phases())
    EXPECT_EQ(phase, "Completed") << sim.must("global", "describe mcm " + name);
  EXPECT_THAT(sim.must("global", "get mcm m0"), testing::HasSubstr("38/38"));
  EXPECT_TRUE(onlooker.eventually([&] { return onlooker.clusters("hub2", true).size() == 190; }));
  EXPECT_EQ(onlooker.clusters("hub1", false).size(), 10u);
  EXPECT_EQ(onlooker.clusters("hub1", true).size(), 10u);
  expect_clean_world(onlooker, before, 190, names);
  manager.process().signal(SIGTERM);
  EXPECT_EQ(manager.process().wait(), 0) << manager.process().err();
}

// It was not dead, only asleep: its requests were cut off in the middle, and it wakes up as a leader.
TEST(MigrationProcess, AStoppedLeaderThatContinuesDoesNoHarm) {
  TemporaryDirectory folder;
  const auto slow = write_faults(folder, "- {server: hub2, verb: create, always: true, delay: 200ms}\n");
  SimProcess sim{{"--clusters=12", "--hubs=hub1,hub2", slow}};
  Onlooker onlooker{sim};
  const auto before = snapshots(onlooker);
  const std::vector<std::string> electing{"--leader-elect", "--namespace=default", "--leader-elect-lease-duration=3s",
                                          "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"};
  ManagerOfWorld first{sim, electing};
  first.process().await_error_text("the manager leads");
  ManagerOfWorld second{sim, electing};
  sim.must("global", "apply -f " + sim.write("m.yaml", migration_manifest("m", 1, 12)));
  ASSERT_TRUE(onlooker.eventually(
      [&] { return onlooker.phases()["m"] == "Deploying" && !onlooker.clusters("hub2", false).empty(); }));
  first.process().signal(SIGSTOP);
  second.process().await_error_text("the manager leads");
  first.process().signal(SIGCONT);
  EXPECT_NE(first.process().wait(), 0);
  EXPECT_THAT(first.process().err(), testing::HasSubstr("lost Lease"));
  ASSERT_TRUE(onlooker.eventually([&] { return onlooker.all_ended(); }));
  EXPECT_EQ(onlooker.phases()["m"], "Completed") << sim.must("global", "describe mcm m");
  EXPECT_TRUE(onlooker.eventually([&] { return onlooker.clusters("hub2", true).size() == 12; }));
  expect_clean_world(onlooker, before, 12, {"m"});
}

TEST(MigrationProcess, DeletingAMigrationRollsItsClustersBack) {
  // hub2 accepts some of the writes and never the rest: Deploying cannot end before the deletion. With 429 it says that
  // nothing happened; after a bare 503 a rollback waits for what may still happen.
  TemporaryDirectory folder;
  const auto stuck = write_faults(
      folder, "- {server: hub2, verb: create, resource: klusterletaddonconfigs, after: 10, always: true, fail: 429}\n");
  SimProcess sim{{"--clusters=30", "--hubs=hub1,hub2", stuck}};
  Onlooker onlooker{sim};
  const auto before = snapshots(onlooker);
  ManagerOfWorld manager{sim};
  sim.must("global", "apply -f " + sim.write("m.yaml", migration_manifest("m", 1, 30)));
  ASSERT_TRUE(onlooker.eventually(
      [&] { return onlooker.phases()["m"] == "Deploying" && !onlooker.clusters("hub2", false).empty(); }));
  // Not with kubectl's own wait: the helper that runs it gives up after 60 s.
  sim.must("global", "delete mcm m --wait=false");
  EXPECT_TRUE(onlooker.eventually([&] { return !onlooker.phases().contains("m"); }, std::chrono::seconds{240}));
  EXPECT_TRUE(onlooker.eventually([&] { return onlooker.clusters("hub1", true).size() == 30; }));
  EXPECT_EQ(onlooker.clusters("hub2", false).size(), 0u);
  expect_clean_world(onlooker, before, 0, {});
}

}  // namespace
}  // namespace hubferry::test
