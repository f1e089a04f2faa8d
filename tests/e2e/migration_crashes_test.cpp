#include "stage.hpp"

/// As migration_process_test.cpp, beside which it runs: it takes as long as all of that.
namespace hubferry::test {
namespace {

// Whatever it was doing: its successor continues from what is in the API.
TEST(MigrationCrashes, FiftyCrashesOfTheManagerChangeNothing) {
  SimProcess sim{{"--clusters=48", "--hubs=hub1,hub2"}};
  Onlooker onlooker{sim};
  const auto before = snapshots(onlooker);
  std::vector<std::string> names;
  // It takes the Lease of its crashed predecessor after three of these periods.
  const std::vector<std::string> hasty{"--leader-elect-retry-period=20ms"};
  async::Random random{50};
  for (int death = 0; death < 50; ++death) {
    // A new migration every now and then, so that crashes hit all phases.
    if (death % 6 == 0 && names.size() < 8) {
      names.push_back("m" + std::to_string(names.size()));
      const auto manifest = migration_manifest(names.back(), 1 + 5 * static_cast<int>(names.size() - 1), 5);
      sim.must("global", "apply -f " + sim.write(names.back() + ".yaml", manifest));
    }
    ManagerOfWorld manager{sim, hasty};
    std::this_thread::sleep_for(random.between(30ms, 1500ms));
    manager.kill();
  }
  ManagerOfWorld manager{sim, hasty};
  ASSERT_TRUE(onlooker.eventually([&] { return onlooker.all_ended(); })) << sim.must("global", "get mcm -A");
  for (const auto& [name, phase] : onlooker.phases())
    EXPECT_EQ(phase, "Completed") << sim.must("global", "describe mcm " + name);
  EXPECT_TRUE(onlooker.eventually([&] { return onlooker.clusters("hub2", true).size() == 40; }));
  EXPECT_EQ(onlooker.clusters("hub1", true).size(), 8u);
  EXPECT_EQ(onlooker.clusters("hub1", false).size(), 8u);
  expect_clean_world(onlooker, before, 40, names);
}

}  // namespace
}  // namespace hubferry::test
