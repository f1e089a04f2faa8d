#include <boost/json/parse.hpp>
#include <sstream>

#include "stage.hpp"
#include "support/tcp_client.hpp"
#include "support/temporary_directory.hpp"

/// Real processes, sockets and kubectl: a simulated world, and the manager as users run it.
namespace hubferry::test {
namespace {

std::uint16_t port_in(const std::string& log, const std::string& message) {
  std::istringstream lines{log};
  for (std::string line; std::getline(lines, line);) {
    const auto entry = boost::json::parse(line).as_object();
    if (entry.at("msg") == boost::json::string_view(message)) return entry.at("port").to_number<std::uint16_t>();
  }
  throw std::runtime_error("no port in the log");
}

/// The flag that makes a simulator do so.
std::string write_faults(const TemporaryDirectory& folder, const std::string& rules) {
  const auto path = folder.file("faults.yaml");
  std::ofstream{path} << rules;
  return "--faults=" + path;
}

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

TEST(MigrationProcess, AnotherManagerTakesOverWithinTheLease) {
  // Slow enough for the first manager to be observed, and to crash, in the middle of it.
  TemporaryDirectory folder;
  const auto slow = write_faults(folder, "- {server: hub2, verb: create, always: true, delay: 200ms}\n");
  SimProcess sim{{"--clusters=20", "--hubs=hub1,hub2", slow}};
  Onlooker onlooker{sim};
  const std::vector<std::string> electing{"--leader-elect", "--namespace=default", "--leader-elect-lease-duration=6s",
                                          "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s"};
  ManagerOfWorld first{sim, electing};
  first.process().await_error_text("the manager leads");
  ManagerOfWorld second{sim, electing};
  sim.must("global", "apply -f " + sim.write("m.yaml", migration_manifest("m", 1, 20)));
  ASSERT_TRUE(onlooker.eventually(
      [&] { return onlooker.phases()["m"] == "Deploying" || onlooker.phases()["m"] == "Registering"; }));
  first.kill();
  second.process().await_error_text("the manager leads");
  ASSERT_TRUE(onlooker.eventually([&] { return onlooker.all_ended(); }));
  EXPECT_EQ(onlooker.phases()["m"], "Completed");
  EXPECT_EQ(onlooker.clusters("hub1", false).size(), 0u);
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

TEST(MigrationProcess, WithoutLeaderElectionASecondManagerWaitsAndSaysSo) {
  SimProcess sim{{"--clusters=6", "--hubs=hub1,hub2"}};
  Onlooker onlooker{sim};
  const auto before = snapshots(onlooker);
  ManagerOfWorld first{sim};
  first.process().await_error_text("the manager leads");
  ManagerOfWorld second{sim};
  second.process().await_error_text("another manager has the Lease");
  TcpClient probe{port_in(second.process().err(), "serving health probes")};
  EXPECT_THAT(probe.get("/readyz?verbose"), testing::HasSubstr("[-]only-manager failed: another manager, "));
  TcpClient scrape{port_in(second.process().err(), "serving metrics")};
  EXPECT_THAT(scrape.get("/metrics"), testing::HasSubstr("\nhubferry_other_manager 1\n"));
  sim.must("global", "apply -f " + sim.write("m.yaml", migration_manifest("m", 1, 6)));
  ASSERT_TRUE(onlooker.eventually([&] { return onlooker.all_ended(); }));
  EXPECT_EQ(onlooker.phases()["m"], "Completed") << sim.must("global", "describe mcm m");
  EXPECT_THAT(second.process().err(), testing::Not(testing::HasSubstr("the manager leads")));
  expect_clean_world(onlooker, before, 6, {"m"});
  // Once the first one has ended, it acts.
  first.process().signal(SIGTERM);
  EXPECT_EQ(first.process().wait(), 0);
  second.process().await_error_text("the manager leads");
}

// Each has a Lease of its own, as after a mistake in a manifest: both lead for as long as they run, and work on the
// same migrations. It is not supported, and does no harm.
TEST(MigrationProcess, TwoLeadersAtOnceDoNoHarm) {
  TemporaryDirectory folder;
  const auto slow = write_faults(folder, "- {server: hub2, verb: create, always: true, delay: 100ms}\n");
  SimProcess sim{{"--clusters=12", "--hubs=hub1,hub2", slow}};
  Onlooker onlooker{sim};
  const auto before = snapshots(onlooker);
  ManagerOfWorld first{sim, {"--leader-elect", "--namespace=default"}};
  ManagerOfWorld second{sim, {"--leader-elect", "--namespace=kube-system"}};
  for (auto* manager : {&first, &second}) manager->process().await_error_text("the manager leads");
  sim.must("global", "apply -f " + sim.write("m.yaml", migration_manifest("m", 1, 6)));
  ASSERT_TRUE(onlooker.eventually([&] { return onlooker.all_ended(); }));
  EXPECT_EQ(onlooker.phases()["m"], "Completed") << sim.must("global", "describe mcm m");
  EXPECT_TRUE(onlooker.eventually([&] { return onlooker.clusters("hub2", true).size() == 6; }));
  EXPECT_TRUE(onlooker.eventually([&] { return onlooker.clusters("hub1", true).size() == 6; }));
  expect_clean_world(onlooker, before, 6, {"m"});
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
