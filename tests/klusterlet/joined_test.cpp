#include <boost/json/serialize.hpp>

#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "klusterlet_test.hpp"
#include "sim/apiserver/certificate_authority.hpp"

namespace hubferry::klusterlet::test {
namespace {

using testing::HasSubstr;
using JoinedTest = KlusterletTest;
namespace json = boost::json;

TEST_F(JoinedTest, TheHeartbeatRenewsTheLeaseInEachPeriod) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  auto last = hub1_.renew_time("cluster1");
  for (int beat = 0; beat < 5; ++beat) {
    loop_.run_for(76s);
    const auto next = hub1_.renew_time("cluster1");
    EXPECT_NE(next, last);
    last = next;
  }
}

TEST_F(JoinedTest, AnIdleAgentSendsOnlyHeartbeats) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(1min);
  hub1_.server.forget_requests();
  loop_.run_for(4min);
  EXPECT_EQ(hub1_.count("update", "managedclusters"), 0U);
  EXPECT_EQ(hub1_.count("get", "managedclusters"), 0U);
  EXPECT_LE(hub1_.count("get", "leases"), 5U);
  EXPECT_GE(hub1_.count("update", "leases"), 3U);
}

TEST_F(JoinedTest, AChangedLeaseDurationTakesEffectImmediately) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(5s);
  loop_.run(hub1_.set_lease_duration("cluster1", 5));
  hub1_.server.forget_requests();
  loop_.run_for(30s);
  EXPECT_GE(hub1_.count("update", "leases"), 4U);
}

// Scenario 22.
TEST_F(JoinedTest, AnAgentThatComesBackRenewsAnOldLeaseInsteadOfLeavingAgain) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  stop_agents();
  loop_.run_for(2h);
  const auto old = hub1_.renew_time("cluster1");
  auto& agent = start();
  loop_.run_for(5s);
  EXPECT_NE(hub1_.renew_time("cluster1"), old);
  loop_.run_for(1h);
  EXPECT_EQ(agent.view().hub, hub1_.url());
  EXPECT_EQ(switches("connection_lost"), 0);
  EXPECT_EQ(hub1_.requests().size(), 1U) << "a valid secret needs no new certificate";
}

// Scenario 17: a restart while the cluster is not accepted yet.
TEST_F(JoinedTest, AnAgentThatIsNotAcceptedYetWaitsAtItsHub) {
  hub1_.accepts = false;
  start();
  loop_.run_for(1min);
  ASSERT_TRUE(hub1_.cluster("cluster1"));
  stop_agents();
  auto& agent = start();
  loop_.run_for(1min);
  EXPECT_EQ(agent.view().hub, hub1_.url());
  EXPECT_FALSE(hub2_.cluster("cluster1"));
  loop_.run(hub1_.accept("cluster1", true));
  EXPECT_TRUE(until_available(hub1_));
}

// Scenarios 26 and 27, with a hub on which heartbeats are forbidden: it answers, and is left nevertheless.
TEST_F(JoinedTest, AHubThatGetsNoHeartbeatsIsLeftAndDemoted) {
  hub1_.server.faults().on({"update", "leases"}).always().fail(403);
  start();
  loop_.run_for(9min);
  EXPECT_FALSE(hub2_.cluster("cluster1"));
  ASSERT_TRUE(until_available(hub2_, 3min));
  EXPECT_EQ(switches("connection_lost"), 1);
  loop_.run_for(1h);
  EXPECT_EQ(switches("connection_lost"), 1);
}

// Scenario 28.
TEST_F(JoinedTest, OnlyADenialMakesAnAgentLeave) {
  auto& agent = start();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(hub1_.accept("cluster1", true));
  loop_.run_for(10s);
  EXPECT_EQ(agent.view().hub, hub1_.url());
  loop_.run(hub1_.accept("cluster1", false));
  loop_.run_for(100ms);
  EXPECT_EQ(switches("denied"), 1);
}

TEST_F(JoinedTest, WithoutTheGateAnAgentStaysWithItsOnlyHub) {
  auto single = options();
  single.multiple_hubs = false;
  auto& agent = start(single);
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(hub1_.accept("cluster1", false));
  loop_.run_for(5min);
  EXPECT_EQ(agent.view().phase, "Joined") << "a denial is no reason to leave if there is no other hub";
  hub1_.server.outage(true);
  loop_.run_for(1h);
  EXPECT_FALSE(hub2_.cluster("cluster1"));
  hub1_.server.outage(false);
  loop_.run(hub1_.accept("cluster1", true));
  const auto old = hub1_.renew_time("cluster1");
  EXPECT_TRUE(until([&] { return hub1_.renew_time("cluster1") != old; }, 3min));
}

// Scenario 47.
TEST_F(JoinedTest, TheClustersHealthIsReportedToTheHub) {
  bool healthy = true;
  auto probed = options();
  probed.probe = [&healthy]() -> Awaitable<SpokeHealth> {
    co_return SpokeHealth{healthy, "livez says 500", "v1.31.0"};
  };
  start(probed);
  ASSERT_TRUE(until_available(hub1_));
  EXPECT_EQ(hub1_.cluster("cluster1")->string_at({"status", "version", "kubernetes"}), "v1.31.0");
  healthy = false;
  loop_.run_for(1min);  // until the next probe
  const auto noticed = loop_.clock().now();
  EXPECT_TRUE(hub1_.is_available("cluster1"));
  ASSERT_TRUE(until([&] { return hub1_.condition("cluster1", names::available) == "False"; }, 80s));
  EXPECT_LT(loop_.clock().now() - noticed, 26s);
  EXPECT_THAT(json::serialize(hub1_.cluster("cluster1")->json()), HasSubstr("livez says 500"));
  healthy = true;
  EXPECT_TRUE(until_available(hub1_, 10s)) << "while it fails it is probed every five seconds";
}

// With hubs in files, no --kubeconfig and no cluster around it: nobody knows whether the cluster is well.
TEST_F(JoinedTest, WithoutAnApiServerBehindItNothingIsSaidAboutAvailability) {
  auto blind = options();
  blind.has_api_server = false;
  auto& agent = start(blind);
  ASSERT_TRUE(until([&] { return agent.view().available; })) << "as far as the agent can tell";
  loop_.run_for(10min);
  EXPECT_EQ(hub1_.condition("cluster1", names::joined), "True");
  EXPECT_NE(hub1_.renew_time("cluster1"), "");
  EXPECT_EQ(hub1_.condition("cluster1", names::available), "");
}

// Scenario 47, the probe's part.
TEST_F(JoinedTest, HealthzIsProbedIfLivezIsNotServed) {
  auto api = std::shared_ptr<kube::Api>{hub1_.server.api_as(sim::admin())};
  const auto probe = probe_of(api);
  EXPECT_TRUE(loop_.run(probe()).healthy);
  hub1_.server.faults().on({"get"}).times(1).fail(404);
  EXPECT_TRUE(loop_.run(probe()).healthy);
  hub1_.server.faults().on({"get"}).times(1).fail(500);
  const auto sick = loop_.run(probe());
  EXPECT_FALSE(sick.healthy);
  EXPECT_FALSE(sick.message.empty());
}

// Scenario 48, the agent's part.
TEST_F(JoinedTest, AHubThatFindsOurClockOutOfSyncGetsNoStatus) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  const auto set = [&](const char* clock, const char* available) -> Awaitable<> {
    const kube::Mutation mutate = [=](json::object& cluster) {
      json::array conditions = cluster.at("status").at("conditions").as_array();
      json::array kept;
      for (auto& condition : conditions)
        if (condition.at("type") != names::clock_synced && condition.at("type") != names::available)
          kept.push_back(condition);
      kept.push_back(json::object{{"type", names::clock_synced}, {"status", clock}, {"reason", "Test"}});
      kept.push_back(json::object{{"type", names::available}, {"status", available}, {"reason", "Test"}});
      cluster.at("status").as_object()["conditions"] = std::move(kept);
      return true;
    };
    kube::EditOptions how;
    how.subresource = "status";
    co_await hub1_.must(kube::edit(hub1_.server.api(), ocm::managed_clusters, {{}, "cluster1"}, mutate, how));
  };
  loop_.run(set("False", "Unknown"));
  loop_.run_for(5min);
  EXPECT_EQ(hub1_.condition("cluster1", names::available), "Unknown");
  loop_.run(set("True", "Unknown"));
  EXPECT_TRUE(until_available(hub1_, 10s));
}

TEST_F(JoinedTest, EventsAreRecorded) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(5s);
  std::vector<std::string> reasons;
  for (const auto& event : hub1_.server.objects(kube::resources::events, "cluster1"))
    reasons.emplace_back(event.string_at({"reason"}));
  EXPECT_THAT(reasons, testing::Contains("ManagedClusterLeaseUpdateStarted"));
}

TEST_F(JoinedTest, AnEditOfTheBootstrapKubeconfigInUseTriggersANewSelection) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  // Another cluster name in the kubeconfig: a hub that was rebuilt.
  store_.set_bootstraps({hub1_.bootstrap("rebuilt"), hub2_.bootstrap()});
  ASSERT_TRUE(until([&] { return hub1_.requests().size() == 2; }, 10s));
  EXPECT_EQ(switches("bootstrap_changed"), 1);
  ASSERT_TRUE(until([&] { return client_config(*store_.secret()).cluster_name == "rebuilt"; }, 10s));
}

TEST_F(JoinedTest, AnEditOfOtherBootstrapKubeconfigsIsIgnored) {
  auto& agent = start();
  ASSERT_TRUE(until_available(hub1_));
  store_.set_bootstraps({hub2_.bootstrap("x"), hub1_.bootstrap(), hub2_.bootstrap("y")});
  loop_.run_for(1min);
  EXPECT_EQ(agent.view().hub, hub1_.url());
  EXPECT_EQ(switches("bootstrap_changed"), 0);
}

TEST_F(JoinedTest, AHubThatIsRemovedFromTheListIsLeft) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  store_.set_bootstraps({hub2_.bootstrap()});
  EXPECT_TRUE(until_available(hub2_, 30s));
}

TEST_F(JoinedTest, StoppingAnAgentAtAnyMomentLeavesNothingRunning) {
  for (int step = 0; step < 40; ++step) {
    start(options("cluster" + std::to_string(step)));
    for (int turn = 0; turn < step; ++turn) loop_.run_for(1ms);
    stop_agents();
    agents_.clear();
  }
  const auto watches = hub1_.server.open_watches();
  EXPECT_EQ(watches, 2U) << "those of the hub itself";
}

}  // namespace
}  // namespace hubferry::klusterlet::test
