#include <gmock/gmock.h>

#include <boost/json/serialize.hpp>
#include <set>

#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/fleet.hpp"
#include "hubferry/sim/fleet_agents.hpp"
#include "sim/ocm/request_pem.hpp"
#include "sim/sim_test.hpp"
#include "support/traced_world.hpp"

namespace hubferry::sim {
namespace {

namespace resources = kube::resources;
using test::TracedWorld;
using testing::HasSubstr;

WorldOptions small(std::uint64_t seed = 1, std::size_t clusters = 3) {
  WorldOptions options;
  options.clusters = clusters;
  options.seed = seed;
  return options;
}

bool is_available(Server& server, const std::string& cluster) {
  const auto object = server.object(ocm::managed_clusters, {"", cluster});
  return object && kube::is_condition_true(*object, ocm::names::available);
}

TEST(WorldTest, HubsAreRegisteredOnTheGlobalHubAndReachedByTheirSecrets) {
  TracedWorld world{small()};
  for (const std::string hub : {"hub1", "hub2"}) {
    const auto cluster = world.global().object(ocm::managed_clusters, {"", hub});
    ASSERT_TRUE(cluster) << hub;
    EXPECT_NE(cluster->label("global-hub.open-cluster-management.io/deploy-mode"), "");
    EXPECT_TRUE(is_available(world.global(), hub));
    const auto& client = cluster->find({"spec", "managedClusterClientConfigs"})->as_array().at(0).as_object();
    EXPECT_EQ(client.at("url").as_string(), "https://" + hub + ".sim");
    const auto secret = world.global().object(resources::secrets, {hub, "hub-kubeconfig"});
    ASSERT_TRUE(secret);
    EXPECT_EQ(secret->label("hubferry.io/hub-kubeconfig"), "true");
    const auto text = decode_base64(secret->string_at({"data", "kubeconfig"}));
    const auto config = kube::parse_kubeconfig(text, "test", std::nullopt);
    EXPECT_EQ(decode_base64(client.at("caBundle").as_string()), config.ca_pem);
    const auto api = world.network().connect(config);
    EXPECT_EQ(api->name(), hub);
    EXPECT_TRUE(world.run(api->list_all(ocm::managed_clusters, {})));
  }
  EXPECT_FALSE(world
                   .run(world.api("global").serves(
                       kube::Resource{"global-hub.open-cluster-management.io", "v1alpha1", "nothing", "Nothing", true}))
                   .value());
}

// Each hub is a machine of its own.
TEST(WorldTest, TheClockOfAHubCanBeOffAndItsControllersFollowIt) {
  TracedWorld world{small()};
  world.run_for(1min);
  ASSERT_TRUE(is_available(world.server("hub1"), world.world().clusters().front()));
  world.world().set_clock("hub1", 1h);
  kube::json::object map{{"metadata", kube::json::object{{"name", "now"}, {"namespace", "default"}}}};
  for (const auto* hub : {"hub1", "hub2"}) ASSERT_TRUE(world.run(world.api(hub).create(resources::config_maps, map)));
  const auto made_on = [&](const char* hub) {
    return async::parse_time(world.server(hub)
                                 .object(resources::config_maps, {"default", "now"})
                                 ->string_at({"metadata", "creationTimestamp"}));
  };
  EXPECT_GE(made_on("hub1") - made_on("hub2"), 59min);
  EXPECT_LT(made_on("hub2") - world.clock().wall_now(), 1min);
  // Heartbeats of an hour ago.
  world.run_for(2min);
  const auto condition_of_hub1 = [&] {
    const auto cluster = world.server("hub1").object(ocm::managed_clusters, {"", world.world().clusters().front()});
    return std::string{kube::string_at(*kube::find_condition(*cluster, ocm::names::clock_synced), {"status"})};
  };
  EXPECT_EQ(condition_of_hub1(), "False");
  world.world().set_clock("hub1", 0s);
  world.run_for(5min);
  EXPECT_EQ(condition_of_hub1(), "True");
  EXPECT_TRUE(is_available(world.server("hub1"), world.world().clusters().front()));
}

// Leader election needs it, and a manager outside of a cluster has no other default namespace.
TEST(WorldTest, TheGlobalHubHasTheManagersNamespace) {
  TracedWorld world{small()};
  EXPECT_TRUE(world.global().object(resources::namespaces, {"", "hubferry-system"}));
}

TEST(WorldTest, AHubThatCannotBeReachedIsUnknownAfterAWhileAndComesBack) {
  TracedWorld world{small()};
  world.run_for(1h);
  EXPECT_TRUE(is_available(world.global(), "hub1"));
  EXPECT_TRUE(is_available(world.global(), "hub2"));
  world.server("hub2").outage(true);
  world.run_for(7min);
  EXPECT_TRUE(is_available(world.global(), "hub1"));
  EXPECT_FALSE(is_available(world.global(), "hub2"));
  world.server("hub2").outage(false);
  world.run_for(2min);
  EXPECT_TRUE(is_available(world.global(), "hub2"));
}

TEST(WorldTest, ManagedServiceAccountsAreServedIfEnabled) {
  const auto asks = [](bool wanted) {
    auto options = small();
    options.managed_service_accounts = wanted;
    TracedWorld world{options};
    const auto served = world.run(world.api("global").serves(ocm::managed_service_accounts)).value();
    if (wanted) {
      json::object account{{"metadata", json::object{{"name", "m"}, {"namespace", "hub2"}}},
                           {"spec", json::object{{"rotation", json::object{{"validity", "24h0m0s"}}}}}};
      EXPECT_TRUE(world.run(world.api("global").create(ocm::managed_service_accounts, account)));
      world.run_for(5s);
      EXPECT_TRUE(world.global().object(resources::secrets, {"hub2", "m"}));
    }
    return served;
  };
  EXPECT_TRUE(asks(true));
  EXPECT_FALSE(asks(false));
}

TEST(WorldTest, TheFirstHubHasTheFleetAndItsControllersHaveProcessedIt) {
  TracedWorld world{small(5, 20)};
  auto& hub = world.server("hub1");
  EXPECT_EQ(world.world().clusters().size(), 20U);
  EXPECT_EQ(hub.count(ocm::managed_clusters), 20U);
  EXPECT_EQ(world.server("hub2").count(ocm::managed_clusters), 0U);
  for (const auto& name : world.world().clusters()) {
    EXPECT_TRUE(is_available(hub, name));
    EXPECT_TRUE(hub.object(resources::namespaces, {"", name}));
    EXPECT_TRUE(hub.object(ocm::klusterlet_addon_configs, {name, name}));
    EXPECT_TRUE(hub.object(resources::leases, {name, "managed-cluster-lease"}));
    EXPECT_TRUE(hub.object(ocm::manifest_works, {name, name + "-klusterlet"}));
    EXPECT_TRUE(
        hub.object(resources::role_bindings, {name, "open-cluster-management:managedcluster:" + name + ":work"}));
    const auto cluster = hub.object(ocm::managed_clusters, {"", name});
    EXPECT_EQ(cluster->find({"spec", "taints"}), nullptr);
    EXPECT_NE(cluster->find({"status", "clusterClaims"}), nullptr);
  }
}

TEST(WorldTest, AgentsKeepTheFleetAvailable) {
  TracedWorld world{small(2, 10)};
  world.run_for(2h);
  for (const auto& name : world.world().clusters()) EXPECT_TRUE(is_available(world.server("hub1"), name)) << name;
  EXPECT_EQ(world.world().agents().available_at("https://hub1.sim"), 10U);
}

// What a migration does, by hand: from a KlusterletConfig to a cluster that has joined the other hub.
TEST(WorldTest, AnAgentSwitchesToTheHubThatItsHubSentWhenDenied) {
  TracedWorld world{small(2, 2)};
  const auto name = world.world().clusters().front();
  auto& source = world.api("hub1");
  const auto must = [&](Awaitable<kube::Result<kube::Object>> call) {
    const auto result = world.run(std::move(call));
    EXPECT_TRUE(result) << (result ? "" : result.error().describe());
  };
  world.run_for(1min);
  must(source.create(
      resources::secrets,
      {{"metadata", json::object{{"name", "bootstrap-m"}, {"namespace", "multicluster-engine"}}},
       {"stringData", json::object{{"kubeconfig", world.world().hubs().bootstrap_kubeconfig("hub2").reveal()}}}}));
  const json::array names{json::object{{"name", "bootstrap-m"}}};
  must(source.create(
      ocm::klusterlet_configs,
      {{"metadata", json::object{{"name", "migration-m"}}},
       {"spec", json::object{{"bootstrapKubeConfigs",
                              json::object{{"type", "LocalSecrets"},
                                           {"localSecretsConfig", json::object{{"kubeConfigSecrets", names}}}}}}}}));
  must(source.merge_patch(
      ocm::managed_clusters, {"", name},
      {{"metadata", json::object{{"annotations", json::object{{"agent.open-cluster-management.io/klusterlet-config",
                                                               "migration-m"}}}}}}));
  world.run_for(1min);
  const auto work = world.server("hub1").object(ocm::manifest_works, {name, name + "-klusterlet"});
  ASSERT_TRUE(work);
  EXPECT_TRUE(kube::is_condition_true(*work, "Applied"));
  must(source.merge_patch(ocm::managed_clusters, {"", name}, {{"spec", json::object{{"hubAcceptsClient", false}}}}));
  world.run_for(2min);
  EXPECT_TRUE(is_available(world.server("hub2"), name));
  EXPECT_TRUE(is_available(world.server("hub1"), world.world().clusters().back()));
  world.run_for(10min);
  EXPECT_FALSE(is_available(world.server("hub1"), name));
  EXPECT_TRUE(is_available(world.server("hub2"), name));
}

TEST(WorldTest, TheSameSeedGivesTheSameTimelineAndAnotherSeedAnother) {
  const auto live = [](std::uint64_t seed) {
    auto options = small(seed, 8);
    options.faults =
        FaultScript::parse("- {verb: write, rate: 0.05, fail: 500}\n- {rate: 0.02, reset: after}", "faults");
    TracedWorld world{options};
    for (int i = 0; i < 5; ++i) {
      json::object cluster{{"metadata", json::object{{"generateName", "extra-"}}}};
      (void)world.run(world.api("hub2").create(ocm::managed_clusters, cluster));
    }
    world.run_for(20min);
    return world.timeline();
  };
  const auto first = live(3);
  EXPECT_EQ(first, live(3));
  EXPECT_NE(first, live(4));
  EXPECT_THAT(first, testing::StartsWith("seed 3\n"));
  EXPECT_THAT(first, HasSubstr("kubernetes-admin create managedclusters.cluster.open-cluster-management.io extra-"));
}

TEST(WorldTest, FaultsBeginWhenTheHubsHaveProcessedTheirClusters) {
  auto options = small();
  options.faults = FaultScript::parse("- {server: hub1, always: true, fail: 429}", "faults");
  TracedWorld world{options};
  for (const auto& cluster : world.world().clusters()) EXPECT_TRUE(is_available(world.server("hub1"), cluster));
  EXPECT_FALSE(world.run(world.api("hub1").list_all(ocm::managed_clusters, {})));
  EXPECT_TRUE(world.run(world.api("hub2").list_all(ocm::managed_clusters, {})));
}

TEST(WorldTest, OneServerCannotHaveTheNameOfAnother) {
  WorldOptions options;
  options.hubs = {"hub1", "hub1"};
  EXPECT_THROW(VirtualWorld{options}, std::runtime_error);
  options.hubs = {"global"};
  EXPECT_THROW(VirtualWorld{options}, std::runtime_error);
  options.hubs = {};
  options.clusters = 1;
  EXPECT_THROW(VirtualWorld{options}, std::runtime_error);
}

TEST(FleetTest, TheSamePlanGivesTheSameObjects) {
  FleetPlan plan;
  plan.clusters = 50;
  const auto text = [&](std::size_t index) {
    std::string all;
    for (const auto& object : fleet_objects(plan, index, {}))
      all += boost::json::serialize(object.object) + boost::json::serialize(object.status);
    return all;
  };
  const auto before = text(17);
  EXPECT_EQ(text(17), before);
  plan.clusters = 5000;
  EXPECT_EQ(text(17), before) << "the objects of one do not depend on the number of clusters";
  plan.seed = 2;
  EXPECT_NE(text(17), before);
}

TEST(FleetTest, AboutATenthIsInstalledAndATenthOnBareMetal) {
  FleetPlan plan;
  plan.clusters = 2000;
  std::size_t installed = 0;
  std::size_t bare_metal = 0;
  std::size_t referenced = 0;
  for (std::size_t i = 0; i < plan.clusters; ++i) {
    std::set<std::string> secrets;
    bool machines = false;
    for (const auto& [resource, object, status] : fleet_objects(plan, i, {})) {
      if (resource == resources::secrets) secrets.emplace(kube::string_at(object, {"metadata", "name"}));
      if (resource == ocm::cluster_deployments) {
        ++installed;
        EXPECT_TRUE(secrets.contains(std::string{kube::string_at(object, {"spec", "pullSecretRef", "name"})}));
      }
      if (resource == ocm::bare_metal_hosts) {
        machines = true;
        ++referenced;
        EXPECT_TRUE(secrets.contains(std::string{kube::string_at(object, {"spec", "bmc", "credentialsName"})}));
      }
    }
    bare_metal += machines ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(installed), 200, 60);
  EXPECT_NEAR(static_cast<double>(bare_metal), 200, 60);
  EXPECT_GT(referenced, bare_metal);
}

/// How many objects of each kind a cluster of the plan has.
std::map<std::string, int> kinds_of_first_cluster(const FleetPlan& plan) {
  std::map<std::string, int> count;
  for (const auto& object : fleet_objects(plan, 0, {})) ++count[object.resource.kind];
  return count;
}

TEST(FleetTest, ATelcoClusterHasThreeMachinesAndTwelveSecretsThatMove) {
  FleetPlan plan;
  plan.clusters = 1;
  plan.kind = FleetKind::telco;
  auto count = kinds_of_first_cluster(plan);
  EXPECT_EQ(count["ClusterDeployment"], 1);
  EXPECT_EQ(count["ImageClusterInstall"], 1);
  EXPECT_EQ(count["BareMetalHost"], 3);
  EXPECT_EQ(count["Secret"], 13) << "that of the import stays";
}

TEST(FleetTest, ASmallClusterHasNoneOfThemAndAsManySecretsAsPlanned) {
  FleetPlan plan;
  plan.clusters = 1;
  plan.kind = FleetKind::small;
  plan.secrets = 5;
  auto count = kinds_of_first_cluster(plan);
  EXPECT_EQ(count["ManagedCluster"], 1);
  EXPECT_EQ(count["ClusterDeployment"] + count["BareMetalHost"], 0);
  EXPECT_EQ(count["Secret"], 6);
}

TEST(FleetTest, CreatingTwiceChangesNothing) {
  TracedWorld world{small(1, 10)};
  const auto version = world.server("hub1").resource_version();
  FleetPlan plan;
  plan.clusters = 10;
  world.run(create_fleet(world.api("hub1"), plan, world.env()));
  EXPECT_EQ(world.server("hub1").resource_version(), version);
}

class FaultScriptTest : public SimTest {
 protected:
  static std::string complaint(std::string_view text) {
    try {
      (void)FaultScript::parse(text, "f");
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return {};
  }
};

TEST_F(FaultScriptTest, RulesAreForTheServersThatTheyName) {
  const auto script = FaultScript::parse(R"(
- {server: sim, verb: create, resource: configmaps, times: 2, fail: 503, retryAfter: 7}
- {server: other, always: true, fail: 500}
- {verb: get, name: slow, always: true, delay: 2s}
- {verb: get, name: slower, always: true, delay: {uniform: [3s, 4s]}}
)",
                                         "f");
  script.apply("sim", server_.faults());
  auto test = [&]() -> Awaitable<> {
    for (int i = 0; i < 2; ++i) {
      auto failed = co_await api_.create(kube::resources::config_maps, config_map("a"));
      CO_ASSERT_TRUE(!failed);
      EXPECT_EQ(failed.error().status, 503);
      EXPECT_EQ(failed.error().retry_after, 7s);
    }
    auto made = co_await api_.create(kube::resources::config_maps, config_map("a"));
    EXPECT_TRUE(made);
    const auto before = clock_.now();
    (void)co_await api_.get(kube::resources::config_maps, {"default", "slow"});
    EXPECT_EQ(clock_.now() - before, 2s);
    (void)co_await api_.get(kube::resources::config_maps, {"default", "slower"});
    EXPECT_GE(clock_.now() - before, 5s);
    EXPECT_LE(clock_.now() - before, 6s);
  };
  loop_.run(test());
}

TEST_F(FaultScriptTest, JsonIsUnderstoodTooAndNothingIsNoRule) {
  const auto script = FaultScript::parse(R"([{"server":"hub1","rate":0.5,"reset":"before"}])", "f");
  EXPECT_THAT(script.servers(), testing::ElementsAre("hub1"));
  EXPECT_TRUE(FaultScript::parse("", "f").empty());
  EXPECT_TRUE(FaultScript::parse("[]", "f").empty());
}

TEST_F(FaultScriptTest, InvalidRulesAreNamed) {
  EXPECT_THAT(complaint("{fail: 500}"), HasSubstr("f: must be a single list of rules"));
  EXPECT_THAT(complaint("- 7"), HasSubstr("f: rule 1 is not a mapping"));
  EXPECT_THAT(complaint("- {fail: 500}\n- {verb: get}"), HasSubstr("f: rule 2 needs exactly one of fail"));
  EXPECT_THAT(complaint("- {fail: 500, compact: true}"), HasSubstr("needs exactly one of"));
  EXPECT_THAT(complaint("- {fail: no}"), HasSubstr("fail must be an integer of at least 400"));
  EXPECT_THAT(complaint("- {fail: 500, rate: 2}"), HasSubstr("rate must be a number from 0 to 1"));
  EXPECT_THAT(complaint("- {fail: 500, times: 0}"), HasSubstr("times must be an integer of at least 1"));
  EXPECT_THAT(complaint("- {fail: 500, times: 1, rate: 0.1}"), HasSubstr("more than one of times, rate and always"));
  EXPECT_THAT(complaint("- {delay: soon}"), HasSubstr("delay must be a duration such as 100ms"));
  EXPECT_THAT(complaint("- {delay: {normal: [1s, 2s]}}"), HasSubstr("delay must be a duration, {uniform"));
  EXPECT_THAT(complaint("- {reset: never}"), HasSubstr("reset must be before or after"));
  EXPECT_THAT(complaint("- {watch: close}"), HasSubstr("watch must be drop or cut"));
  EXPECT_THAT(complaint("- {fail: 500, verbs: get}"), HasSubstr("unknown field: verbs"));
  EXPECT_THAT(complaint("- {verb: 7, fail: 500}"), HasSubstr("verb must be a string"));
  EXPECT_THAT(complaint("- {fail: [500"), HasSubstr("f, line 1"));
}

}  // namespace
}  // namespace hubferry::sim
