#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "klusterlet_test.hpp"

// What was recorded of the upstream agent on real hubs, and what ours does in the same place.
namespace hubferry::klusterlet::test {
namespace {

namespace json = kube::json;

class RecordedTest : public KlusterletTest {
 protected:
  /// As the hub does when it finds the Lease too old.
  void report_unknown(Hub& hub) {
    const kube::Condition unknown{.type = names::available,
                                  .status = kube::ConditionStatus::unknown,
                                  .reason = "ManagedClusterLeaseUpdateStopped",
                                  .message = "Registration agent stopped updating its lease."};
    const kube::Mutation mutate = [&](json::object& cluster) {
      return kube::set_condition(cluster["status"].as_object(), unknown, loop_.clock().wall_now());
    };
    kube::EditOptions options;
    options.subresource = "status";
    loop_.run(
        hub.must(kube::edit(hub.server.api(), ocm::managed_clusters, kube::Key{{}, "cluster1"}, mutate, options)));
  }

  static std::size_t status_writes(const Hub& hub) {
    return static_cast<std::size_t>(std::ranges::count_if(hub.server.requests(), [](const auto& request) {
      return request.user != sim::admin().name && request.resource.starts_with("managedclusters") &&
             request.subresource == "status" && request.verb != "get";
    }));
  }
};

// Recorded after a denial and after a frozen agent: the upstream agent writes True, the hub Unknown because of the old
// Lease, ten times a second until the next heartbeat.
TEST_F(RecordedTest, AHubThatReportsUnknownIsAnsweredOnceAndAfterAHeartbeat) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(90s);
  const auto old = hub1_.renew_time("cluster1");
  hub1_.server.forget_requests();
  report_unknown(hub1_);
  bool early = false;
  ASSERT_TRUE(until([&] {
    const bool renewed = hub1_.renew_time("cluster1") != old;
    early = early || (!renewed && hub1_.is_available("cluster1"));
    return renewed;
  }));
  EXPECT_FALSE(early);
  EXPECT_TRUE(until_available(hub1_, 5s));
  loop_.run_for(3min);
  EXPECT_EQ(status_writes(hub1_), 1U);
}

// Recorded as `import`: upstream is restarted twice after it is Available, by changes of its Deployment.
TEST_F(RecordedTest, AnImportedClusterIsAvailableInSecondsWithOneRequestAndStaysSo) {
  auto& agent = start();
  ASSERT_TRUE(until_available(hub1_, 3s));
  bool left = false;
  EXPECT_FALSE(until([&] { return left = left || agent.view().phase != "Joined"; }, 10min));
  EXPECT_EQ(hub1_.requests().size(), 1U);
}

// Recorded as `stuck-no-hub`: upstream exits, its successor waits for the leader's lease, and the first heartbeat came
// 124 s after the hub had accepted again.
TEST_F(RecordedTest, AnAgentThatAllHubsDenyIsBackWithinTwoMinutesOfBeingAccepted) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  hub2_.accepts = false;
  loop_.run(hub1_.accept("cluster1", false));
  ASSERT_TRUE(until([&] { return hub2_.cluster("cluster1").has_value(); }, 10s));
  loop_.run(hub2_.accept("cluster1", true));
  loop_.run_for(5s);
  loop_.run(hub2_.accept("cluster1", false));
  loop_.run_for(90s);
  const auto old = hub1_.renew_time("cluster1");
  loop_.run(hub1_.accept("cluster1", true));
  EXPECT_TRUE(until([&] { return hub1_.renew_time("cluster1") != old; }, 2min));
}

// Recorded as `klusterletconfig-replaced`: upstream restarts and requests a certificate, for the proxy and without it.
TEST_F(RecordedTest, AProxyThatComesAndGoesIsUsedWithoutANewRegistration) {
  std::vector<std::string> proxies;
  const auto to_hubs = connect();
  const Connect recorded = [&](const kube::ClientConfig& config) {
    if (!config.client_certificate_pem.empty()) proxies.push_back(config.proxy_url);
    return to_hubs(config);
  };
  agents_.push_back(std::make_unique<Agent>(options(), store_, recorded, env_));
  agent_scope_.emplace(loop_.executor());
  agent_scope_->spawn(agents_.back()->run());
  ASSERT_TRUE(until_available(hub1_));
  auto config = hub1_.bootstrap().parse();
  config.proxy_url = "http://proxy.example:3128";
  const BootstrapConfig through{"hub1-bootstrap", obs::Secret{kube::to_kubeconfig(config)}, std::nullopt};
  store_.set_bootstraps({through, hub2_.bootstrap()});
  EXPECT_TRUE(until([&] { return proxies.back() == config.proxy_url; }, 10s));
  loop_.run_for(1min);
  store_.set_bootstraps({hub1_.bootstrap(), hub2_.bootstrap()});
  EXPECT_TRUE(until([&] { return proxies.back().empty(); }, 10s));
  loop_.run_for(1min);
  EXPECT_EQ(hub1_.requests().size(), 1U);
  EXPECT_EQ(switches("bootstrap_changed"), 0);
  stop_agents();
}

// Recorded with MCE 5.x and disable-auto-import: hubs wait for Applied, and nothing is applied.
TEST_F(RecordedTest, AReadOnlyWorkIsReportedAsAppliedAndNothingIsTakenFromIt) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  const auto before = store_.bootstraps();
  const auto fresh = hub1_.bootstrap("hub", "fresh").kubeconfig.reveal();
  const json::object secret{{"apiVersion", "v1"},
                            {"kind", "Secret"},
                            {"metadata", json::object{{"name", "bootstrap-hub-kubeconfig"}, {"namespace", "agent"}}},
                            {"stringData", json::object{{"kubeconfig", fresh}}}};
  const auto create = [&](bool read_only) {
    json::object spec{{"workload", json::object{{"manifests", json::array{secret}}}}};
    const json::object same{{"group", ""}, {"resource", "secrets"}, {"name", "x"}, {"namespace", "agent"}};
    if (read_only)
      spec["manifestConfigs"] = json::array{
          json::object{{"resourceIdentifier", same}, {"updateStrategy", json::object{{"type", "ReadOnly"}}}}};
    json::object body{{"metadata", json::object{{"name", "cluster1-klusterlet"}, {"namespace", "cluster1"}}},
                      {"spec", std::move(spec)}};
    loop_.run(hub1_.must(hub1_.server.api().create(ocm::manifest_works, std::move(body))));
  };
  const kube::Key key{"cluster1", "cluster1-klusterlet"};
  const auto is_applied = [&] {
    const auto work = hub1_.server.object(ocm::manifest_works, key);
    return work && kube::is_condition_true(*work, "Applied");
  };
  create(true);
  EXPECT_TRUE(until(is_applied, 10s));
  EXPECT_EQ(store_.bootstraps(), before);
  // The same work, to be applied: that is what makes the difference.
  loop_.run(hub1_.must(hub1_.server.api().remove(ocm::manifest_works, key)));
  create(false);
  EXPECT_TRUE(until(is_applied, 10s));
  EXPECT_NE(store_.bootstraps(), before);
}

}  // namespace
}  // namespace hubferry::klusterlet::test
