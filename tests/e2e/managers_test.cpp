#include <boost/json/parse.hpp>
#include <sstream>

#include "stage.hpp"
#include "support/tcp_client.hpp"

/// Several managers of one world, as real processes. A program of its own: a successor waits for a minute until the
/// last writes of its predecessor must have taken effect.
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

TEST(Managers, AnotherManagerTakesOverWithinTheLease) {
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

TEST(Managers, WithoutLeaderElectionASecondManagerWaitsAndSaysSo) {
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
TEST(Managers, TwoLeadersAtOnceDoNoHarm) {
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

}  // namespace
}  // namespace hubferry::test
