#include <gmock/gmock.h>

#include <boost/json/serialize.hpp>
#include <tuple>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/fleet_agents.hpp"
#include "simulated_manager.hpp"

/// What hubs have deployed on a cluster, over a migration and back. The clusters' agents behave as those of Open
/// Cluster Management: they register until they succeed, and evict what the hub that they left has deployed.
namespace hubferry::migration::test {
namespace {

namespace json = boost::json;
using kube::Key;
using namespace std::chrono_literals;

constexpr auto grace = 1min;

sim::WorldOptions options_for(sim::ImportController import_controller) {
  sim::WorldOptions options;
  options.clusters = 1;
  options.import_controller = import_controller;
  options.auto_approval = false;
  options.cluster_servers = true;
  options.eviction_grace = grace;
  options.server.latency = sim::Latency::uniform(1ms, 15ms);
  return options;
}

class WorkloadTest : public testing::TestWithParam<sim::ImportController> {
 protected:
  void SetUp() override { world_.run_for(5s); }
  void TearDown() override {
    manager_.stop();
    if (HasFailure()) std::cerr << world_.timeline();
  }

  void put_work(const std::string& hub, const std::string& name, json::object labels = {}) {
    const json::object space{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", json::object{{"name", name}}}};
    const json::object inside{{"name", name}, {"namespace", name}};
    const json::object settings{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", inside}};
    const json::object server{{"apiVersion", "apps/v1"},
                              {"kind", "Deployment"},
                              {"metadata", inside},
                              {"spec", json::object{{"replicas", 1}}}};
    json::object work{
        {"metadata", json::object{{"name", name}, {"namespace", cluster_}, {"labels", std::move(labels)}}},
        {"spec", json::object{{"workload", json::object{{"manifests", json::array{space, settings, server}}}}}}};
    auto made = world_.run(world_.api(hub).create(ocm::manifest_works, std::move(work)));
    ASSERT_TRUE(made) << made.error();
    world_.run_for(2s);
  }
  /// The uids of what the work has deployed; empty: it is not there.
  std::string deployed(const std::string& name) {
    const kube::Resource deployments{"apps", "v1", "deployments", "Deployment", true};
    const auto settings = world_.server(cluster_).object(kube::resources::config_maps, Key{name, name});
    const auto server = world_.server(cluster_).object(deployments, Key{name, name});
    if (!settings || !server) return "";
    return std::string{settings->uid()} + " " + std::string{server->uid()};
  }
  void start(const std::string& name, const std::string& from, const std::string& to, const char* timeout = "10m",
             bool restart_agents = false) {
    json::object configs{{"stageTimeout", timeout}, {"restartAgents", restart_agents}};
    json::object spec{{"from", from},
                      {"to", to},
                      {"includedManagedClusters", json::array{cluster_}},
                      {"supportedConfigs", std::move(configs)}};
    json::object object{{"metadata", json::object{{"name", name}, {"namespace", "default"}}},
                        {"spec", std::move(spec)}};
    auto created = world_.run(world_.api("global").create(managed_cluster_migrations, std::move(object)));
    ASSERT_TRUE(created) << created.error();
  }
  std::string phase(const std::string& name) {
    const auto now = world_.global().object(managed_cluster_migrations, {"default", name});
    return now ? std::string{now->string_at({"status", "phase"})} : "gone";
  }
  void expect_phase(const std::string& name, const std::string& expected) {
    const auto is_over = [&] {
      return phase(name) == expected || phase(name) == "Completed" || phase(name) == "Failed";
    };
    for (int second = 0; second < 1200 && !is_over(); ++second) world_.run_for(1s);
    const auto now = world_.global().object(managed_cluster_migrations, {"default", name});
    EXPECT_EQ(phase(name), expected) << json::serialize(*now->find({"status"}));
  }
  void migrate(const std::string& name, const std::string& from, const std::string& to) {
    start(name, from, to);
    expect_phase(name, "Completed");
  }
  bool accepts(const std::string& hub) {
    const auto found = world_.server(hub).object(ocm::managed_clusters, Key{{}, cluster_});
    const auto* value = found ? found->find({"spec", "hubAcceptsClient"}) : nullptr;
    return value != nullptr && *value == true;
  }

  /// The agent is registering on the target when that is lost: it has left the source, and nobody approves its request.
  void lose_target_while_the_agent_registers(bool restart_agents) {
    auto& faults = world_.server("hub2").faults();
    faults.on({.verb = "write", .resource = "certificatesigningrequests", .subresource = "approval"})
        .always()
        .fail(500);
    start("there", "hub1", "hub2", "2m", restart_agents);
    const auto requested = [&] {
      return !world_.server("hub2").objects(kube::resources::certificate_signing_requests).empty();
    };
    for (int step = 0; step < 1200 && (accepts("hub1") || !requested()); ++step) world_.run_for(100ms);
    ASSERT_TRUE(requested());
    faults.outage(true);
    expect_phase("there", "Rollbacking");
  }
  void give_the_source_the_admin_kubeconfig() {
    const auto text = kube::to_kubeconfig(world_.world().admin_config(cluster_));
    json::object data{{"data", json::object{{"kubeconfig", kube::encode_base64(text)}}}};
    auto secret = data;
    secret["metadata"] = json::object{{"name", cluster_ + "-admin-kubeconfig"}, {"namespace", cluster_}};
    auto made = world_.run(world_.api("hub1").create(kube::resources::secrets, secret));
    if (made) return;
    const Key key{cluster_, cluster_ + "-admin-kubeconfig"};
    EXPECT_TRUE(world_.run(world_.api("hub1").merge_patch(kube::resources::secrets, key, std::move(data))));
  }
  std::string condition(const std::string& type) {
    const auto now = world_.global().object(managed_cluster_migrations, {"default", "there"});
    const auto* found = kube::find_condition(*now, type);
    return found == nullptr ? "" : std::string{kube::string_at(*found, {"message"})};
  }

  sim::VirtualWorld world_{options_for(GetParam())};
  std::string cluster_ = world_.world().clusters().front();
  SimulatedManager manager_{world_, {.identity = "manager"}};
};

TEST_P(WorkloadTest, WhatUsersHaveDeployedKeepsItsUidOverAMigrationAndBack) {
  put_work("hub1", "app");
  put_work("hub1", "addon", {{ocm::names::addon_name_label, "search"}});
  const auto before = deployed("app");
  ASSERT_NE(before, "");
  ASSERT_NE(deployed("addon"), "");
  migrate("there", "hub1", "hub2");
  world_.run_for(2 * grace);
  EXPECT_EQ(deployed("app"), before);
  EXPECT_EQ(deployed("addon"), "") << "what is not copied is evicted";
  EXPECT_TRUE(world_.server("hub2").object(ocm::manifest_works, Key{cluster_, "app"}));
  EXPECT_FALSE(world_.server("hub1").object(ocm::manifest_works, Key{cluster_, "app"}));
  migrate("back", "hub2", "hub1");
  world_.run_for(2 * grace);
  EXPECT_EQ(deployed("app"), before);
  const auto owners = world_.server(cluster_)
                          .object(kube::resources::config_maps, Key{"app", "app"})
                          ->find({"metadata", "ownerReferences"})
                          ->as_array()
                          .size();
  EXPECT_EQ(owners, 1U) << "the work on hub1 only";
}

// The suite's own proof that an arrival is one: the agent comes back to the target.
TEST_P(WorkloadTest, AnAgentThatIsRestartedAfterTheMigrationStaysOnTheTarget) {
  migrate("there", "hub1", "hub2");
  const auto renewal = [&] {
    const auto lease = world_.server("hub2").object(kube::resources::leases, ocm::lease_key(cluster_));
    return lease ? std::string{lease->string_at({"spec", "renewTime"})} : "";
  };
  const auto before = renewal();
  world_.world().agents().restart(cluster_);
  world_.run_for(2min);
  EXPECT_NE(renewal(), before);
  EXPECT_EQ(world_.world().agents().joined_at("https://hub2.sim"), 1U);
}

// The agent has applied the klusterlet's work of the target, and knows no other hub any more: denied there, it would be
// on none. Only what keeps a user's workload on the cluster is outstanding.
TEST_P(WorkloadTest, ARollbackDoesNotDenyAClusterThatIsAliveOnTheTargetWithWorksOutstanding) {
  put_work("hub1", "app");
  auto& faults = world_.server("hub2").faults();
  faults.on({.verb = "write", .resource = "manifestworks", .subresource = "status", .name = "app"}).always().fail(500);
  start("there", "hub1", "hub2", "2m");
  expect_phase("there", "Rollbacking");
  world_.run_for(10min);
  const auto& agents = world_.world().agents();
  EXPECT_EQ(agents.joined_at("https://hub2.sim"), 1U) << agents.joined_at("https://hub1.sim") << " on hub1";
  EXPECT_TRUE(accepts("hub2"));
  EXPECT_EQ(phase("there"), "Rollbacking");
  faults.clear();
  expect_phase("there", "Completed");
  EXPECT_EQ(agents.joined_at("https://hub2.sim"), 1U);
}

// Nothing of the source reaches an agent that is registering elsewhere, and a target that is lost cannot let it finish.
TEST_P(WorkloadTest, ARollbackWhoseTargetIsLostWaitsForAPersonToRestartTheAgentAndSaysSo) {
  lose_target_while_the_agent_registers(false);
  world_.run_for(20min);
  const auto& agents = world_.world().agents();
  EXPECT_EQ(phase("there"), "Rollbacking");
  EXPECT_TRUE(accepts("hub1"));
  EXPECT_EQ(agents.joined_at("https://hub1.sim"), 0U);
  EXPECT_THAT(
      condition(conditions::rolled_back),
      testing::AllOf(testing::HasSubstr(cluster_), testing::HasSubstr("delete its pod klusterlet-agent in namespace "
                                                                      "open-cluster-management-agent")));
  const kube::Resource pods{"", "v1", "pods", "Pod", true};
  EXPECT_TRUE(world_.run(world_.api(cluster_).remove(pods, {ocm::names::agent_namespace, "klusterlet-agent"})));
  world_.run_for(2min);
  EXPECT_EQ(agents.joined_at("https://hub1.sim"), 1U);
  world_.server("hub2").faults().outage(false);
  expect_phase("there", "Failed");
  EXPECT_EQ(agents.joined_at("https://hub1.sim"), 1U);
}

TEST_P(WorkloadTest, ARollbackWhoseTargetIsLostRestartsTheAgentIfTheUserWantsIt) {
  give_the_source_the_admin_kubeconfig();
  lose_target_while_the_agent_registers(true);
  world_.run_for(20min);
  EXPECT_EQ(world_.world().agents().joined_at("https://hub1.sim"), 1U) << condition(conditions::rolled_back);
  EXPECT_EQ(phase("there"), "Rollbacking") << "until the target is back, or given up";
  world_.server("hub2").faults().outage(false);
  expect_phase("there", "Failed");
  EXPECT_EQ(world_.world().agents().joined_at("https://hub1.sim"), 1U);
}

TEST_P(WorkloadTest, AnAgentThatCannotBeRestartedIsNamedWithTheReason) {
  lose_target_while_the_agent_registers(true);
  const Key key{cluster_, cluster_ + "-admin-kubeconfig"};
  (void)world_.run(world_.api("hub1").remove(kube::resources::secrets, key));
  world_.run_for(20min);
  EXPECT_THAT(condition(conditions::rolled_back),
              testing::HasSubstr("cannot restart the agent of cluster " + cluster_ + ": there is no Secret"));
}

// Their tokens are revoked; all the same they are not the cluster's own, and each migration would leave one more.
TEST_P(WorkloadTest, NoBootstrapSecretOfTheMigrationStaysOnTheCluster) {
  const auto bootstrap_secrets = [&] {
    std::vector<std::string> names;
    for (const auto& secret : world_.server(cluster_).objects(kube::resources::secrets))
      if (secret.name().starts_with("bootstrap-")) names.emplace_back(secret.name());
    return names;
  };
  const auto works_on = [&](const std::string& hub) {
    std::vector<std::string> names;
    for (const auto& work : world_.server(hub).objects(ocm::manifest_works)) names.emplace_back(work.name());
    return names;
  };
  for (const auto& [name, from, to] : {std::tuple{"there", "hub1", "hub2"}, std::tuple{"back", "hub2", "hub1"}}) {
    migrate(name, from, to);
    world_.run_for(10s);
    EXPECT_THAT(bootstrap_secrets(), testing::ElementsAre(ocm::names::bootstrap_secret)) << name;
    EXPECT_THAT(works_on(to), testing::ElementsAre(cluster_ + "-klusterlet")) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(On, WorkloadTest,
                         testing::Values(sim::ImportController::mce_2_17, sim::ImportController::mce_5_x),
                         [](const auto& info) {
                           return info.param == sim::ImportController::mce_2_17 ? "Mce217" : "Mce5x";
                         });

}  // namespace
}  // namespace hubferry::migration::test
