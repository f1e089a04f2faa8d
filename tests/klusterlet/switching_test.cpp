#include "klusterlet_test.hpp"

namespace hubferry::klusterlet::test {
namespace {

using SwitchingTest = KlusterletTest;

std::string server_of(const std::optional<HubSecret>& secret) {
  return secret ? client_config(*secret).server : std::string{};
}

TEST_F(SwitchingTest, AnAgentJoinsTheFirstHubAndIsAvailableThere) {
  auto& agent = start();
  ASSERT_TRUE(until_available(hub1_));
  EXPECT_EQ(hub1_.condition("cluster1", names::joined), "True");
  EXPECT_EQ(hub1_.condition("cluster1", names::certificate_rotated), "True");
  EXPECT_EQ(agent.view().phase, "Joined");
  EXPECT_EQ(agent.view().hub, hub1_.url());
  EXPECT_FALSE(hub2_.cluster("cluster1"));
  EXPECT_EQ(server_of(store_.secret()), hub1_.url());
}

// Scenarios 18 and 20.
TEST_F(SwitchingTest, ADeniedAgentRegistersWithTheNextHubAndKeepsItsOldSecretUntilThatHubHasSigned) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  hub2_.accepts = false;
  hub2_.approves = false;
  const auto before = store_.secret();
  const auto saves = store_.saves();

  loop_.run(hub1_.accept("cluster1", false));
  ASSERT_TRUE(until([&] { return hub2_.requests().size() == 1; }, 10s));
  EXPECT_TRUE(hub2_.cluster("cluster1"));
  loop_.run_for(30s);
  EXPECT_EQ(store_.secret(), before);
  EXPECT_TRUE(hub2_.certificates_seen.empty()) << "the first hub's certificate went to the second hub";

  loop_.run(hub2_.accept("cluster1", true));
  loop_.run(hub2_.approve_all());
  ASSERT_TRUE(until_available(hub2_));
  EXPECT_EQ(store_.saves(), saves + 1) << "all keys change in one write";
  EXPECT_EQ(server_of(store_.secret()), hub2_.url());
  EXPECT_EQ(store_.secret()->agent_name, before->agent_name);
  EXPECT_TRUE(hub2_.server.object(kube::resources::namespaces, {{}, "cluster1"}));
  EXPECT_EQ(switches("denied"), 1);
}

// Scenario 19.
TEST_F(SwitchingTest, AnAgentLeavesAHubThatIsUnreachableForLongerThanTheTimeout) {
  auto quick = options();
  quick.connection_timeout = 10s;
  start(quick);
  ASSERT_TRUE(until([&] { return hub1_.cluster("cluster1").has_value(); }));
  loop_.run(hub1_.set_lease_duration("cluster1", 2));
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(2min);
  EXPECT_EQ(switches("connection_lost"), 0);

  hub1_.server.outage(true);
  EXPECT_TRUE(until_available(hub2_, 30s));
  EXPECT_EQ(switches("connection_lost"), 1);
  EXPECT_EQ(server_of(store_.secret()), hub2_.url());
}

// Scenario 21.
TEST_F(SwitchingTest, AnAgentReturnsToTheFirstHubWhenTheSecondIsUnreachable) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(hub1_.accept("cluster1", false));
  ASSERT_TRUE(until_available(hub2_));
  loop_.run(hub1_.accept("cluster1", true));
  loop_.run_for(5min);
  EXPECT_EQ(server_of(store_.secret()), hub2_.url()) << "it does not return while the second hub is reachable";

  const auto renewed = hub1_.renew_time("cluster1");
  hub2_.server.outage(true);
  ASSERT_TRUE(until([&] { return hub1_.renew_time("cluster1") != renewed; }, 15min));
  EXPECT_EQ(server_of(store_.secret()), hub1_.url());
  loop_.run_for(30min);
  EXPECT_EQ(server_of(store_.secret()), hub1_.url());
  EXPECT_EQ(switches("connection_lost"), 1);
}

// Scenario 23.
TEST_F(SwitchingTest, ADeletedManagedClusterIsNotADenial) {
  auto& agent = start();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(hub1_.must(hub1_.server.api().remove(ocm::managed_clusters, {{}, "cluster1"})));
  loop_.run_for(1min);
  EXPECT_EQ(agent.view().phase, "Joined");
  EXPECT_FALSE(hub2_.cluster("cluster1"));
}

// A credential alone does not prove a registration.
TEST_F(SwitchingTest, AClusterThatWasDeletedWhileItsAgentWasStoppedIsRegisteredAgainWithItsOldCertificate) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  stop_agents();
  loop_.run(hub1_.must(hub1_.server.api().remove(ocm::managed_clusters, {{}, "cluster1"})));
  start();
  EXPECT_TRUE(until_available(hub1_, 30s));
  EXPECT_EQ(hub1_.requests().size(), 1U);
}

// Scenario 24.
TEST_F(SwitchingTest, AHubThatNeverApprovesIsLeftAfterTheTimeout) {
  hub1_.approves = false;
  start();
  loop_.run_for(9min);
  EXPECT_FALSE(hub2_.cluster("cluster1"));
  ASSERT_TRUE(until_available(hub2_, 2min));
  EXPECT_EQ(switches("bootstrap_timeout"), 1);
}

}  // namespace
}  // namespace hubferry::klusterlet::test
