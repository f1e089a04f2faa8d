#include "hubferry/kube/edit.hpp"
#include "klusterlet/enrolment.hpp"
#include "klusterlet_test.hpp"

// What an agent costs its hub. When a hub dies, all of its agents go to the next one within a heartbeat period.
namespace hubferry::klusterlet::test {
namespace {

class CostTest : public KlusterletTest {
 protected:
  /// "get leases", in order.
  static std::vector<std::string> requests_of_agents(const Hub& hub) {
    std::vector<std::string> all;
    for (const auto& request : hub.server.requests())
      if (request.user != sim::admin().name)
        all.push_back(request.verb + " " + request.resource.substr(0, request.resource.find('.')) +
                      (request.subresource.empty() ? "" : "/" + request.subresource));
    return all;
  }
};

TEST_F(CostTest, AHeartbeatIsOneRequest) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(1min);
  hub1_.server.forget_requests();
  loop_.run_for(5min);
  EXPECT_EQ(hub1_.count("get", "leases"), 0U);
  EXPECT_GE(hub1_.count("update", "leases"), 3U);
}

// Somebody else's fields in the Lease stay, and a write of theirs does not cost a heartbeat.
TEST_F(CostTest, ALeaseThatAnotherWroteIsReadAgain) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(90s);
  const kube::Key key{"cluster1", names::cluster_lease};
  const kube::Mutation label = [](kube::json::object& lease) {
    lease["metadata"].as_object()["labels"] = kube::json::object{{"a", "b"}};
    return true;
  };
  loop_.run(hub1_.must(kube::edit(hub1_.server.api(), kube::resources::leases, key, label)));
  const auto before = hub1_.renew_time("cluster1");
  loop_.run_for(76s);
  EXPECT_NE(hub1_.renew_time("cluster1"), before);
  EXPECT_EQ(AgentMetrics{metrics_}.heartbeats.with({"failed"}).value(), 0);
  const auto lease = hub1_.server.object(kube::resources::leases, key);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->string_at({"metadata", "labels", "a"}), "b");
}

TEST_F(CostTest, ALeaseThatWasCreatedAnewIsRenewedByTheNextHeartbeat) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(90s);
  const kube::Key key{"cluster1", names::cluster_lease};
  loop_.run(hub1_.must(hub1_.server.api().remove(kube::resources::leases, key)));
  kube::json::object lease{{"metadata", kube::json::object{{"name", key.name}, {"namespace", key.ns}}},
                           {"spec", kube::json::object{{"renewTime", "2020-01-01T00:00:00.000000Z"}}}};
  loop_.run(hub1_.must(hub1_.server.api().create(kube::resources::leases, std::move(lease))));
  loop_.run_for(76s);
  EXPECT_FALSE(hub1_.renew_time("cluster1").starts_with("2020"));
  EXPECT_EQ(AgentMetrics{metrics_}.heartbeats.with({"failed"}).value(), 0);
}

// The list that bounds how fast a fleet can move: see perf/README.md.
TEST_F(CostTest, ASwitchToAHubThatKnowsTheClusterTakesNineRequests) {
  auto without_events = options();
  without_events.record_events = false;
  start(without_events);
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(hub2_.must(
      hub2_.server.api().create(ocm::managed_clusters, {{"metadata", kube::json::object{{"name", "cluster1"}}},
                                                        {"spec", kube::json::object{{"hubAcceptsClient", true}}}})));
  loop_.run_for(1s);
  hub2_.server.forget_requests();
  loop_.run(hub1_.accept("cluster1", false));
  ASSERT_TRUE(until_available(hub2_));
  loop_.run_for(20s);
  EXPECT_THAT(requests_of_agents(hub2_),
              testing::UnorderedElementsAre("create selfsubjectrulesreviews", "get managedclusters",
                                            "create certificatesigningrequests", "watch certificatesigningrequests",
                                            "watch managedclusters", "watch manifestworks", "get leases",
                                            "update leases", "update managedclusters/status"));
}

TEST_F(CostTest, ASwitchToAHubThatDoesNotKnowTheClusterTakesOneMore) {
  auto without_events = options();
  without_events.record_events = false;
  start(without_events);
  ASSERT_TRUE(until_available(hub1_));
  hub2_.server.forget_requests();
  loop_.run(hub1_.accept("cluster1", false));
  ASSERT_TRUE(until_available(hub2_));
  loop_.run_for(20s);
  const auto requests = requests_of_agents(hub2_);
  EXPECT_THAT(requests, testing::Contains("create managedclusters"));
  EXPECT_EQ(requests.size(), 10U) << testing::PrintToString(requests);
}

// What the requests that are not counted before the first one could lead to.
TEST_F(CostTest, AHubThatApprovesNothingDoesNotCollectRequestsWithoutEnd) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  for (auto* hub : {&hub1_, &hub2_}) hub->approves = false;
  hub1_.server.outage(true);
  loop_.run_for(150min);
  EXPECT_LE(hub2_.requests().size(), most_requests);
  EXPECT_GE(hub2_.requests().size(), 2U);
}

}  // namespace
}  // namespace hubferry::klusterlet::test
