#include "hubferry/kube/edit.hpp"
#include "klusterlet_test.hpp"

// What an agent costs its hub. When a hub dies, all of its agents go to the next one within a heartbeat period.
namespace hubferry::klusterlet::test {
namespace {

class CostTest : public KlusterletTest {
 protected:
  static std::size_t requests_of_agents(const Hub& hub) {
    std::size_t count = 0;
    for (const auto& request : hub.server.requests())
      if (request.user != sim::admin().name) ++count;
    return count;
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

TEST_F(CostTest, ASwitchTakesFewRequests) {
  auto without_events = options();
  without_events.record_events = false;
  start(without_events);
  ASSERT_TRUE(until_available(hub1_));
  hub2_.server.forget_requests();
  loop_.run(hub1_.accept("cluster1", false));
  ASSERT_TRUE(until_available(hub2_));
  loop_.run_for(20s);
  EXPECT_LE(requests_of_agents(hub2_), 22U);
}

}  // namespace
}  // namespace hubferry::klusterlet::test
