#include <gmock/gmock.h>

#include <boost/json/serialize.hpp>

#include "hubferry/kube/conditions.hpp"
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
  options.upstream_agents = true;
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
  void start(const std::string& name, const std::string& from, const std::string& to, const char* timeout = "10m") {
    json::object spec{{"from", from},
                      {"to", to},
                      {"includedManagedClusters", json::array{cluster_}},
                      {"supportedConfigs", json::object{{"stageTimeout", timeout}}}};
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

INSTANTIATE_TEST_SUITE_P(On, WorkloadTest,
                         testing::Values(sim::ImportController::mce_2_17, sim::ImportController::mce_5_x),
                         [](const auto& info) {
                           return info.param == sim::ImportController::mce_2_17 ? "Mce217" : "Mce5x";
                         });

}  // namespace
}  // namespace hubferry::migration::test
