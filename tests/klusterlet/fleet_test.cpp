#include <gtest/gtest.h>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/fleet_agents.hpp"
#include "hubferry/sim/hub_controllers.hpp"

namespace hubferry::sim {
namespace {

using namespace std::chrono_literals;
using async::Awaitable;

/// A hub with all its controllers.
struct FleetHub {
  FleetHub(std::string hub_name, Network& network, kube::Env env, async::VirtualLoop& loop)
      : server(named(hub_name), env) {
    url = "https://" + hub_name + ".example:6443";
    network.add(url, server);
    HubOptions options;
    options.name = hub_name;
    options.auto_approval = true;
    loop.run(set_up(network, options, env));
    options.bootstrap_kubeconfig = bootstrap.kubeconfig;
    controllers.emplace(server.api(), options, env);
  }

  static Options named(const std::string& name) {
    Options options;
    options.name = name;
    return options;
  }

  Awaitable<> set_up(Network& network, HubOptions options, kube::Env env) {
    co_await install_crds(server.api(), env);
    auto installed = co_await install_hub(server.api(), options);
    EXPECT_TRUE(installed) << installed.error();
    auto text = co_await make_bootstrap_kubeconfig(server.api(), network.address_of(server), 365 * 24h);
    EXPECT_TRUE(text) << text.error();
    bootstrap = {options.name, *text, std::nullopt};
  }

  std::size_t available() const {
    std::size_t count = 0;
    for (const auto& cluster : server.objects(ocm::managed_clusters))
      if (kube::is_condition_true(cluster, ocm::names::available)) ++count;
    return count;
  }

  std::string url;
  Server server;
  klusterlet::BootstrapConfig bootstrap;
  std::optional<HubControllers> controllers;
};

class FleetTest : public testing::Test {
 protected:
  FleetTest() {
    for (auto* hub : {&hub1_, &hub2_}) scope_.spawn(hub->controllers->run());
    loop_.run_ready();
  }
  ~FleetTest() override {
    scope_.stop();
    loop_.run(scope_.join());
  }

  async::VirtualLoop loop_;
  async::Random random_{7};
  obs::Metrics metrics_;
  kube::Env env_{loop_.clock(), random_, metrics_, obs::Logger{}};
  Network network_;
  FleetHub hub1_{"hub1", network_, env_, loop_};
  FleetHub hub2_{"hub2", network_, env_, loop_};
  async::TaskScope scope_{loop_.executor()};
  FleetAgents fleet_{network_, {.upstream = false}, env_};
};

TEST_F(FleetTest, AHundredAgentsRegisterWithTheirHub) {
  for (int i = 0; i < 100; ++i) fleet_.add({"cluster-" + std::to_string(i), {hub1_.bootstrap}, std::nullopt});
  scope_.spawn(fleet_.run());
  loop_.run_for(2min);
  EXPECT_EQ(fleet_.joined_at(hub1_.url), 100U);
  EXPECT_EQ(fleet_.available_at(hub1_.url), 100U);
  EXPECT_EQ(hub1_.available(), 100U);
}

TEST_F(FleetTest, AgentsWithACredentialIssuedBeforehandJoinWithoutRegistering) {
  auto create = [&]() -> Awaitable<> {
    kube::json::object cluster{{"metadata", kube::json::object{{"name", "ready"}}},
                               {"spec", kube::json::object{{"hubAcceptsClient", true}}}};
    auto created = co_await hub1_.server.api().create(ocm::managed_clusters, cluster);
    EXPECT_TRUE(created) << created.error();
  };
  loop_.run(create());
  fleet_.add({"ready",
              {hub1_.bootstrap, hub2_.bootstrap},
              issue_hub_secret(network_, hub1_.server, "ready", hub1_.bootstrap.parse())});
  scope_.spawn(fleet_.run());
  loop_.run_for(1min);
  EXPECT_EQ(fleet_.available_at(hub1_.url), 1U);
  EXPECT_TRUE(hub1_.server.objects(kube::resources::certificate_signing_requests).empty());
}

TEST_F(FleetTest, ARemovedAgentSendsNoMoreHeartbeats) {
  fleet_.add({"one", {hub1_.bootstrap}, std::nullopt});
  EXPECT_THROW(fleet_.add({"one", {hub1_.bootstrap}, std::nullopt}), std::invalid_argument);
  EXPECT_THROW(fleet_.add({"No Name", {hub1_.bootstrap}, std::nullopt}), std::invalid_argument);
  scope_.spawn(fleet_.run());
  loop_.run_for(1min);
  ASSERT_EQ(fleet_.available_at(hub1_.url), 1U);
  EXPECT_TRUE(fleet_.remove("one"));
  EXPECT_FALSE(fleet_.remove("one"));
  loop_.run_for(10min);
  EXPECT_EQ(hub1_.available(), 0U);
  fleet_.add({"late", {hub1_.bootstrap}, std::nullopt});
  loop_.run_for(1min);
  EXPECT_EQ(fleet_.available_at(hub1_.url), 1U);
}

TEST_F(FleetTest, FaultsOnlyDelayRegistration) {
  auto& faults = hub1_.server.faults();
  faults.on({"write"}).rate(0.2).fail(500);
  faults.on({"write"}).rate(0.1).reset_after();
  faults.on({"read"}).rate(0.1).reset_before();
  faults.on({"watch"}).rate(0.1).cut_watch();
  for (int i = 0; i < 10; ++i) fleet_.add({"cluster-" + std::to_string(i), {hub1_.bootstrap}, std::nullopt});
  scope_.spawn(fleet_.run());
  loop_.run_for(30min);
  EXPECT_GE(fleet_.joined_at(hub1_.url), 5U);
  faults.clear();
  loop_.run_for(5min);
  EXPECT_EQ(fleet_.available_at(hub1_.url), 10U);
  // No agent requested more certificates than the limit allows, whatever was lost.
  EXPECT_LE(hub1_.server.objects(kube::resources::certificate_signing_requests).size(), 60U);
}

// Scenario 45: all agents reconnect to a hub that was unreachable, spread over minutes.
TEST_F(FleetTest, AHubThatReturnsGetsItsAgentsBackGradually) {
  for (int i = 0; i < 50; ++i) fleet_.add({"cluster-" + std::to_string(i), {hub1_.bootstrap}, std::nullopt});
  scope_.spawn(fleet_.run());
  loop_.run_for(2min);
  ASSERT_EQ(hub1_.available(), 50U);
  hub1_.server.outage(true);
  loop_.run_for(1h);
  hub1_.server.outage(false);
  hub1_.server.forget_requests();
  std::size_t most = 0;
  for (int second = 0; second < 240; ++second) {
    const auto before = hub1_.server.requests().size();
    loop_.run_for(1s);
    most = std::max(most, hub1_.server.requests().size() - before);
  }
  EXPECT_EQ(hub1_.available(), 50U);
  // Each agent needs some twenty requests to come back, the hub's own controllers relist: far from all at once.
  EXPECT_LT(most, 50U * 20U / 4U);
}

// What a migration does: the source's import controller sends a second bootstrap kubeconfig, then the source denies
// the cluster.
TEST_F(FleetTest, ADeniedAgentSwitchesToAHubFromTheListThatItsHubSent) {
  fleet_.add({"one", {hub1_.bootstrap}, std::nullopt});
  scope_.spawn(fleet_.run());
  loop_.run_for(1min);
  ASSERT_EQ(fleet_.available_at(hub1_.url), 1U);

  auto migrate = [&]() -> Awaitable<> {
    auto& api = hub1_.server.api();
    using kube::json::object;
    object ns{{"metadata", object{{"name", ocm::names::engine_namespace}}}};
    co_await api.create(kube::resources::namespaces, ns);
    object secret{{"metadata", object{{"name", "bootstrap-m1"}, {"namespace", ocm::names::engine_namespace}}},
                  {"stringData", object{{"kubeconfig", hub2_.bootstrap.kubeconfig.reveal()}}}};
    auto put = co_await api.create(kube::resources::secrets, secret);
    EXPECT_TRUE(put) << put.error();
    const kube::json::array list{object{{"name", "bootstrap-m1"}}};
    object config{{"metadata", object{{"name", "migration-m1"}}},
                  {"spec", object{{"multipleHubsConfig",
                                   object{{"genBootstrapKubeConfigStrategy", "IncludeCurrentHub"},
                                          {"bootstrapKubeConfigs",
                                           object{{"type", "LocalSecrets"},
                                                  {"localSecretsConfig", object{{"kubeConfigSecrets", list}}}}}}}}}};
    put = co_await api.create(ocm::klusterlet_configs, config);
    EXPECT_TRUE(put) << put.error();
    object annotate{
        {"metadata", object{{"annotations", object{{ocm::names::klusterlet_config_annotation, "migration-m1"}}}}}};
    put = co_await api.merge_patch(ocm::managed_clusters, {{}, "one"}, annotate);
    EXPECT_TRUE(put) << put.error();
  };
  loop_.run(migrate());
  loop_.run_for(10s);
  ASSERT_EQ(fleet_.store_of("one")->bootstraps().size(), 2U);
  EXPECT_EQ(fleet_.available_at(hub1_.url), 1U) << "a longer list alone is no reason to leave";

  auto deny = [&]() -> Awaitable<> {
    kube::json::object patch{{"spec", kube::json::object{{"hubAcceptsClient", false}}}};
    auto put = co_await hub1_.server.api().merge_patch(ocm::managed_clusters, {{}, "one"}, patch);
    EXPECT_TRUE(put) << put.error();
  };
  loop_.run(deny());
  loop_.run_for(20s);
  EXPECT_EQ(fleet_.available_at(hub2_.url), 1U);
  const auto work = hub2_.server.object(ocm::manifest_works, {"one", "one-klusterlet"});
  ASSERT_TRUE(work);
  EXPECT_TRUE(kube::is_condition_true(*work, "Applied"));
}

}  // namespace
}  // namespace hubferry::sim
