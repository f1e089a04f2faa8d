#include "../worlds/wire.hpp"
#include "hubferry/migration/phases.hpp"
#include "whole_world.hpp"

/// Hubs that are slow, or that only the manager cannot reach.
namespace hubferry::migration::test {
namespace {

using testing::HasSubstr;

std::map<std::string, Snapshot> snapshots(WholeWorld& whole) {
  std::map<std::string, Snapshot> all;
  for (const auto& server : whole.world.world().servers()) all[server] = whole.snapshot(server);
  return all;
}

/// Without the permissions that a hub's own controllers grant an agent: of those that the simulated hub has, one
/// creates and another deletes them, and a cluster that goes at once may leave one behind.
Snapshot without_agents_permissions(const Snapshot& all) {
  Snapshot rest;
  for (const auto& entry : all)
    if (entry.first.find("open-cluster-management:managedcluster:") == std::string::npos) rest.insert(entry);
  return rest;
}

// Creates that are on their way when the migration is deleted take effect all the same, long after their sender has
// given up: the finalizer waits for them.
class SlowTarget : public testing::TestWithParam<int> {};

TEST_P(SlowTarget, DeletingAMigrationInDeployingLeavesNothingThere) {
  worlds::Wire wire{async::Random{1}};
  // Longer than a request is awaited, shorter than an API server executes one.
  wire.faults.on({"create", "managedclusters"}).always().delay(sim::Latency::fixed(45s));
  WholeWorld whole{4, static_cast<std::uint64_t>(GetParam())};
  whole.wire = [&](const std::string& hub, std::shared_ptr<kube::Api> api) {
    if (hub != "hub2") return api;
    return worlds::make_faulty_api(std::move(api), wire, whole.world.clock(),
                                   [&](Awaitable<> task) { whole.world.spawn(std::move(task)); });
  };
  const auto names = whole.world.world().clusters();
  auto before = snapshots(whole);
  for (const auto* hub : {"hub1", "hub2"}) before[hub] = without_agents_permissions(before[hub]);
  whole.start_manager();
  whole.migrate("m1", {names.begin(), names.end()});
  ASSERT_TRUE(whole.run_until([&] { return whole.phase("m1") == phases::deploying; }));
  whole.world.run_for(std::chrono::milliseconds{GetParam()});
  ASSERT_EQ(whole.phase("m1"), phases::deploying);
  EXPECT_TRUE(whole.world.run(whole.world.api("global").remove(managed_cluster_migrations, {"default", "m1"})));
  whole.run_until_ended({"m1"});
  EXPECT_EQ(whole.phase("m1"), "gone") << whole.describe("m1");
  whole.world.run_for(10min);
  for (const auto& name : names) EXPECT_TRUE(whole.is_available("hub1", name)) << name;
  expect_clean_move(whole, before, {}, {}, without_agents_permissions);
}

/// One object that a migration needs, where it is created.
struct OwnObject {
  const char* server;
  kube::Resource resource;
  kube::Key key;
  bool accounts = false;  // with ManagedServiceAccounts
};

// Its creation has no answer, so it is repeated; then the migration is deleted, and with it that object. The first
// creation takes effect after that.
class SlowCreation : public testing::TestWithParam<OwnObject> {};

TEST_P(SlowCreation, AnObjectThatAppearsAfterItsSecondCreationWasDeletedDoesNotStay) {
  const auto& [server, resource, key, accounts] = GetParam();
  worlds::Wire wire{async::Random{1}};
  wire.faults.on({.verb = "create", .resource = resource.plural}).delay(sim::Latency::fixed(45s));
  WholeWorld whole{2, 1, accounts};
  whole.wire = [&](const std::string& hub, std::shared_ptr<kube::Api> api) {
    if (hub != server) return api;
    return worlds::make_faulty_api(std::move(api), wire, whole.world.clock(),
                                   [&](Awaitable<> task) { whole.world.spawn(std::move(task)); });
  };
  const auto names = whole.world.world().clusters();
  auto before = snapshots(whole);
  for (const auto* hub : {"hub1", "hub2"}) before[hub] = without_agents_permissions(before[hub]);
  whole.start_manager();
  whole.migrate("m1", {names.begin(), names.end()});
  const auto began = whole.world.clock().now();
  ASSERT_TRUE(whole.run_until([&] { return whole.world.server(server).object(resource, key).has_value(); }));
  EXPECT_GT(whole.world.clock().now() - began, 30s) << "the second creation";
  EXPECT_LT(whole.world.clock().now() - began, 44s);
  EXPECT_TRUE(whole.world.run(whole.world.api("global").remove(managed_cluster_migrations, {"default", "m1"})));
  whole.run_until_ended({"m1"});
  EXPECT_EQ(whole.phase("m1"), "gone") << whole.describe("m1");
  whole.world.run_for(10min);
  expect_clean_move(whole, before, {}, {}, without_agents_permissions);
}

INSTANTIATE_TEST_SUITE_P(
    Of, SlowCreation,
    testing::Values(OwnObject{"hub1", ocm::klusterlet_configs, {"", "migration-m1"}},
                    OwnObject{"hub1", kube::resources::secrets, {"multicluster-engine", "bootstrap-m1"}},
                    OwnObject{"hub2", kube::resources::namespaces, {"", "hubferry-bootstrap"}},
                    OwnObject{"hub2", kube::resources::service_accounts, {"hubferry-bootstrap", "bootstrap-m1"}},
                    OwnObject{"hub2", kube::resources::cluster_roles, {"", "global-hub-migration-m1-sar"}},
                    OwnObject{"hub2", kube::resources::cluster_role_bindings, {"", "global-hub-migration-m1-sar"}},
                    OwnObject{"global", ocm::managed_service_accounts, {"hub2", "m1"}, true}),
    [](const auto& param) { return param.param.resource.kind; });

// A manager dies with a creation on its way, which takes effect once its successor has moved the clusters.
TEST(QuickSuccessor, LeavesNothingOfWhatItsPredecessorHadSent) {
  worlds::Wire wire{async::Random{1}};
  wire.faults.on({.verb = "create", .resource = "klusterletconfigs"}).delay(sim::Latency::fixed(59s));
  WholeWorld whole{1, 1, false};
  whole.wire = [&](const std::string& hub, std::shared_ptr<kube::Api> api) {
    if (hub != "hub1") return api;
    return worlds::make_faulty_api(std::move(api), wire, whole.world.clock(),
                                   [&](Awaitable<> task) { whole.world.spawn(std::move(task)); });
  };
  const auto names = whole.world.world().clusters();
  const auto before = snapshots(whole);
  whole.start_manager();
  whole.migrate("m1", {names.begin(), names.end()});
  const auto is_sent = [&] {
    return whole.world.server("hub1")
        .object(kube::resources::secrets, {"multicluster-engine", "bootstrap-m1"})
        .has_value();
  };
  ASSERT_TRUE(whole.run_until(is_sent));
  whole.world.run_for(1s);
  whole.stop_manager();
  whole.start_manager();
  whole.run_until_ended({"m1"});
  EXPECT_EQ(whole.phase("m1"), "Completed") << whole.describe("m1");
  whole.world.run_for(10min);
  expect_clean_move(whole, before, {names.begin(), names.end()}, {"m1"});
}

// A node that boots with a wrong clock: NTP sets it right a second later.
TEST(ClockThatIsSetRight, DoesNotDelayTheEndOfAMigrationThatWasTakenOver) {
  WholeWorld whole{1};
  const auto names = whole.world.world().clusters();
  whole.start_manager();
  whole.migrate("m1", {names.begin(), names.end()});
  ASSERT_TRUE(whole.run_until([&] { return whole.phase("m1") == phases::cleaning; }));
  whole.stop_manager();
  whole.clock.set_ahead(1h);
  whole.start_manager();
  whole.world.run_for(1s);
  whole.clock.set_ahead(0s);
  whole.run_until_ended({"m1"}, 10min);
  EXPECT_EQ(whole.phase("m1"), "Completed") << whole.describe("m1");
}

INSTANTIATE_TEST_SUITE_P(Milliseconds, SlowTarget, testing::Values(300, 1000, 4000, 15000, 29000, 40000));

// The agents reach the target, the manager does not: what it does on the source must not depend on what it cannot see.
class SeveredTarget : public testing::TestWithParam<int> {};

TEST_P(SeveredTarget, IsWaitedForAndNoClusterStaysAcceptedByBoth) {
  WholeWorld whole{3, static_cast<std::uint64_t>(GetParam())};
  const auto names = whole.world.world().clusters();
  whole.start_manager();
  whole.migrate("m1", {names.begin(), names.end()});
  ASSERT_TRUE(whole.run_until([&] { return whole.phase("m1") == phases::registering; }));
  whole.world.run_for(std::chrono::milliseconds{GetParam()});
  ASSERT_EQ(whole.phase("m1"), "Registering");
  whole.lines["hub2"].severed = true;
  // Beyond the timeout of Registering, and long into the rollback.
  whole.world.run_for(1h);
  const auto migration = whole.world.global().object(managed_cluster_migrations, {"default", "m1"});
  ASSERT_TRUE(migration);
  // If all had arrived by then, only the cleanup is left.
  const auto* condition = kube::find_condition(*migration, condition_of(whole.phase("m1")));
  ASSERT_NE(condition, nullptr);
  EXPECT_THAT(std::string{kube::string_at(*condition, {"reason"})},
              testing::AnyOf("RollbackPending", "CleanupPending"));
  EXPECT_THAT(std::string{kube::string_at(*condition, {"message"})}, HasSubstr("hub 'hub2'"));
  int accepted_by_both = 0;
  for (const auto& name : names)
    accepted_by_both += whole.is_accepted("hub1", name) && whole.is_available("hub2", name) ? 1 : 0;
  RecordProperty("accepted_by_both", accepted_by_both);
  for (const auto& name : names)
    EXPECT_TRUE(whole.is_accepted("hub1", name) || whole.is_accepted("hub2", name)) << name;

  whole.lines["hub2"].severed = false;
  whole.run_until_ended({"m1"}, 6h);
  EXPECT_TRUE(whole.phase("m1") == "Completed" || whole.phase("m1") == "Failed") << whole.describe("m1");
  whole.world.run_for(10min);
  for (const auto& name : names) {
    EXPECT_NE(whole.is_accepted("hub1", name), whole.is_accepted("hub2", name)) << name << whole.describe("m1");
    EXPECT_TRUE(whole.is_available(whole.is_accepted("hub1", name) ? "hub1" : "hub2", name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(MillisecondsAfterTheCutOver, SeveredTarget, testing::Values(0, 50, 100, 125, 150, 200, 250));

// Registering has ended meanwhile and the source accepts the clusters again, but their agents live on the target.
class LivingOnASeveredTarget : public testing::TestWithParam<sim::ImportController> {};

TEST_P(LivingOnASeveredTarget, AClusterWithWorksOutstandingEndsOnOneHub) {
  WholeWorld whole{2, 1, true, GetParam()};
  const auto names = whole.world.world().clusters();
  auto& faults = whole.world.server("hub2").faults();
  faults.on({.verb = "write", .resource = "manifestworks", .subresource = "status"}).always().fail(500);
  whole.start_manager();
  whole.migrate("m1", {names.begin(), names.end()});
  const auto all_on_hub2 = [&] {
    return std::ranges::all_of(names, [&](const auto& name) { return whole.is_available("hub2", name); });
  };
  ASSERT_TRUE(whole.run_until(all_on_hub2)) << whole.describe("m1");
  ASSERT_EQ(whole.phase("m1"), phases::registering);
  whole.lines["hub2"].severed = true;
  whole.world.run_for(1h);
  for (const auto& name : names) {
    EXPECT_TRUE(whole.is_accepted("hub1", name)) << name << whole.describe("m1");
    EXPECT_TRUE(whole.is_available("hub2", name)) << name;
  }
  whole.lines["hub2"].severed = false;
  whole.world.run_for(30min);
  for (const auto& name : names) {
    EXPECT_FALSE(whole.is_accepted("hub1", name)) << name << whole.describe("m1");
    EXPECT_TRUE(whole.is_accepted("hub2", name) && whole.is_available("hub2", name)) << name;
  }
  EXPECT_EQ(whole.phase("m1"), phases::rollbacking);
  faults.clear();
  whole.run_until_ended({"m1"});
  EXPECT_EQ(whole.phase("m1"), "Completed") << whole.describe("m1");
  for (const auto& name : names) {
    EXPECT_FALSE(whole.exists("hub1", name)) << name;
    EXPECT_TRUE(whole.is_available("hub2", name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(On, LivingOnASeveredTarget,
                         testing::Values(sim::ImportController::mce_2_17, sim::ImportController::mce_5_x));

}  // namespace
}  // namespace hubferry::migration::test
