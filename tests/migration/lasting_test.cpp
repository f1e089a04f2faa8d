#include "hubferry/kube/config.hpp"
#include "migration/ledger_store.hpp"
#include "migration_test.hpp"

/// What must not keep a rollback or a cleanup from its end, nor lead it astray.
namespace hubferry::migration::test {
namespace {

class LastingTest : public MigrationTest {
 protected:
  static json::object stage_timeout(const char* text) {
    return {{"supportedConfigs", json::object{{"stageTimeout", text}}}};
  }
  Awaitable<> delete_ledger(std::string name, std::string ns = "default") {
    auto removed = co_await global.api().remove(kube::resources::config_maps, Key{ns, name});
    EXPECT_TRUE(removed) << removed.error();
  }
  Awaitable<> write_ledger(std::string name, json::object data) {
    json::object patch{{"data", std::move(data)}};
    auto patched = co_await global.api().merge_patch(kube::resources::config_maps, {"default", name}, std::move(patch));
    EXPECT_TRUE(patched) << patched.error();
  }
};

// The target knows that it has arrived.
TEST_F(LastingTest, AnArrivalThatSomebodyTakesOutOfTheLedgerIsFoundAgain) {
  hubs.faults["target.verify"].hang = true;
  given("m1", {"a", "b"});
  live_until("m1", "Cleaning");
  loop.run(write_ledger("m1", {{"success", R"(["b"])"}}));
  hubs.faults.clear();
  live_until("m1", "Completed");
  EXPECT_EQ(listed("m1", "success"), (std::vector<std::string>{"a", "b"}));
  expect_moved("m1", {"a", "b"}, {"c"});
}

// Nobody would delete it from the source, or return it.
TEST_F(LastingTest, AClusterThatSomebodyTakesOutOfTheLedgerMovesToo) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await write_ledger("m1", {{"all-clusters", R"(["b"])"}});
    co_await reaches("m1", "Completed");
  });
  EXPECT_EQ(listed("m1", "all-clusters"), (std::vector<std::string>{"a", "b"}));
  expect_moved("m1", {"a", "b"}, {"c"});
}

// The operation waits a minute for the one that is stuck, longer than a third of the timeout.
TEST_F(LastingTest, OneStuckClusterDoesNotHideTheOthersHoweverShortTheTimeout) {
  hubs.faults["source.collect"] = {.error = FakeHubs::forbidden()};
  hubs.faults["source.roll_back"] = {.delay = 60s};
  hubs.faults["source.roll_back b"] = {.error = FakeHubs::forbidden()};
  given("m1", {"a", "b"}, stage_timeout("30s"));
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Rollbacking");
    co_await sleep(10min);
    EXPECT_EQ(clusters("m1", "rolledBack"), 1);
    EXPECT_THAT(condition("m1", "ResourceRolledBack"),
                HasSubstr("RollbackPending: 1 cluster pending: b: the manager may not do that"));
    hubs.faults.clear();
    co_await reaches("m1", "Failed");
  });
  expect_moved("m1", {}, {"a", "b", "c"});
}

// An agent in the middle of its registration must come to an end of it, also while the source cannot take it back.
TEST_F(LastingTest, RegistrationsAreApprovedWhileTheSourceIsDown) {
  hubs.travel_time = 1000h;
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await sleep(1min);
    hubs.hub("hub1").reachable = false;
    co_await reaches("m1", "Rollbacking");
    const auto before = hubs.count("hub2 target.await_arrivals");
    co_await sleep(1h);
    EXPECT_GT(hubs.count("hub2 target.await_arrivals"), before);
    EXPECT_TRUE(hubs.hub("hub2").clusters.at("a").accepted) << "the source has not accepted it again";
    hubs.hub("hub1").reachable = true;
    co_await reaches("m1", "Failed");
  });
  expect_moved("m1", {}, {"a", "b", "c"});
}

// The agent of a cluster that could not be copied may have registered on the target all the same, if it lost the
// source.
TEST_F(LastingTest, NoCopyIsDeletedWhileTheTargetDoesNotSayWhoHasRegistered) {
  hubs.faults["target.deploy b"] = {.error = FakeHubs::forbidden()};
  hubs.travel_time = 1000h;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.hub("hub2").clusters["b"] = hubs.hub("hub2").clusters.at("a");
    hubs.faults["target.find_registered"] = {.error = FakeHubs::unreachable("hub2")};
    co_await reaches("m1", "Rollbacking");
    co_await sleep(1h);
    EXPECT_EQ(hubs.hub("hub2").clusters.count("b"), 1U);
    EXPECT_NE(hubs.hub("hub1").clusters.at("b").migrating, "") << "without its claim it could not be detached";
    hubs.faults.clear();
    co_await reaches("m1", "Failed");
  });
}

// What a person gives up on a target that is gone for good must not keep clusters of the source claimed.
TEST_F(LastingTest, AClusterOfWhichTheLostTargetSaysNothingIsReleasedOnceThatIsGivenUp) {
  hubs.faults["target.deploy b"] = {.error = FakeHubs::forbidden()};
  hubs.travel_time = 1000h;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.hub("hub2").reachable = false;
    co_await reaches("m1", "Rollbacking");
    co_await sleep(10min);
    EXPECT_NE(hubs.hub("hub1").clusters.at("b").migrating, "");
    co_await annotate("m1", names::leave_annotation, "hub2");
    co_await reaches("m1", "Failed");
  });
  EXPECT_EQ(hubs.hub("hub1").clusters.at("b").migrating, "");
  EXPECT_TRUE(hubs.hub("hub1").clusters.at("b").accepted);
}

// It never left the source, wherever its agent is now.
TEST_F(LastingTest, AClusterWhoseCopyNoAgentUsesIsRolledBackWithoutASignOfLife) {
  hubs.faults["target.deploy b"] = {.error = FakeHubs::forbidden()};
  hubs.travel_time = 1000h;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.hub("hub2").clusters["b"] = hubs.hub("hub2").clusters.at("a");
    hubs.stranded.insert("b");
    co_await reaches("m1", "Failed");
  });
  EXPECT_EQ(hubs.hub("hub2").clusters.count("b"), 0U);
  expect_moved("m1", {}, {"a", "b", "c"});
}

// The source has dropped its claim already, and accepts it: it must not be accepted by both for ever. Its agent is on
// the source, as its lease there shows.
TEST_F(LastingTest, AClusterThatTurnsUpOnTheTargetAfterTheSourceReleasedItReturns) {
  hubs.faults["target.deploy b"] = {.error = FakeHubs::forbidden()};
  hubs.travel_time = 1000h;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    auto copy = hubs.hub("hub2").clusters.at("a");
    hubs.faults["target.roll_back"].error = FakeHubs::forbidden();
    co_await reaches("m1", "Rollbacking");
    co_await sleep(10min);
    EXPECT_EQ(hubs.hub("hub1").clusters.at("b").migrating, "");
    copy.accepted = copy.available = true;
    copy.seen = hubs.clock.wall_now();
    hubs.hub("hub2").clusters["b"] = copy;
    auto& home = hubs.hub("hub1").clusters.at("b");
    for (int minute = 0; minute < 60; ++minute) {
      co_await sleep(1min);
      home.seen = loop.clock().wall_now();
    }
    EXPECT_FALSE(hubs.hub("hub2").clusters.at("b").accepted);
    hubs.faults.clear();
    co_await reaches("m1", "Failed");
  });
  EXPECT_EQ(hubs.hub("hub2").clusters.count("b"), 0U);
  expect_moved("m1", {}, {"a", "b", "c"});
}

// Denied on the target, an agent that lives there would be on no hub: it may know no other.
TEST_F(LastingTest, AClusterThatLivesOnTheTargetAfterTheSourceReleasedItStaysThere) {
  hubs.faults["target.deploy b"] = {.error = FakeHubs::forbidden()};
  hubs.travel_time = 1000h;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    auto copy = hubs.hub("hub2").clusters.at("a");
    copy.content = hubs.hub("hub1").clusters.at("b").content;
    hubs.faults["target.roll_back"].error = FakeHubs::forbidden();
    co_await reaches("m1", "Rollbacking");
    co_await sleep(10min);
    EXPECT_EQ(hubs.hub("hub1").clusters.at("b").migrating, "");
    copy.accepted = copy.available = true;
    copy.seen = hubs.clock.wall_now();
    hubs.hub("hub2").clusters["b"] = copy;
    hubs.stranded.insert("b");
    for (int minute = 0; minute < 60; ++minute) {
      co_await sleep(1min);
      hubs.hub("hub2").clusters.at("b").seen = loop.clock().wall_now();
      EXPECT_TRUE(hubs.hub("hub2").clusters.at("b").accepted) << minute;
    }
    hubs.faults.clear();
    co_await reaches("m1", "Failed");
  });
  expect_moved("m1", {"b"}, {"a", "c"});
}

// It had returned while the target did not answer, lost the source once more, and registered on the target, which
// accepts it still. Denied and deleted there it would be on no hub.
TEST_F(LastingTest, AClusterThatLeavesTheSourceAgainAfterItsReturnStaysOnTheTarget) {
  for (const auto* operation : {"target.await_arrivals", "target.arrived", "target.deny", "target.roll_back"})
    hubs.faults[operation].error = FakeHubs::unreachable("hub2");
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Rollbacking");
    auto& home = hubs.hub("hub1").clusters.at("a");
    co_await holds([&] { return home.accepted; });
    co_await sleep(1s);
    home.available = true;
    home.seen = loop.clock().wall_now();
    co_await holds([&] { return home.migrating.empty(); });
    hubs.faults.clear();
    co_await renew_leases("hub2", "m1", "Rollbacking");
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a"}, {"b", "c"});
}

// The target has seen it a moment before it left, and says so when it answers again.
TEST_F(LastingTest, AClusterThatHasReturnedLeavesNoCopyOnATargetThatSawItLast) {
  for (const auto* operation : {"target.await_arrivals", "target.arrived", "target.deny", "target.roll_back"})
    hubs.faults[operation].error = FakeHubs::unreachable("hub2");
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Rollbacking");
    auto& home = hubs.hub("hub1").clusters.at("a");
    co_await holds([&] { return home.accepted; });
    co_await sleep(1s);
    home.available = true;
    home.seen = loop.clock().wall_now();
    co_await holds([&] { return home.migrating.empty(); });
    auto& there = hubs.hub("hub2").clusters.at("a");
    there.available = true;
    there.seen = loop.clock().wall_now();
    hubs.faults.clear();
    // Its agent renews its lease here only.
    co_await renew_leases("hub1", "m1", "Rollbacking");
    co_await reaches("m1", "Failed");
  });
  expect_moved("m1", {}, {"a", "b", "c"});
}

// It is on the source again, and its lease on the target, which nobody renews, has a time in the future: it was renewed
// there until it left, by an agent whose clock is hours ahead.
TEST_F(LastingTest, ALeaseWithATimeInTheFutureThatNobodyRenewsDoesNotKeepAClusterOnTheTarget) {
  for (const auto* operation : {"target.await_arrivals", "target.arrived"})
    hubs.faults[operation].error = FakeHubs::unreachable("hub2");
  hubs.faults["source.await_returns"].error = FakeHubs::forbidden();
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Rollbacking");
    auto& home = hubs.hub("hub1").clusters.at("a");
    co_await holds([&] { return home.accepted; });
    hubs.hub("hub2").clusters.at("a").seen = loop.clock().wall_now() + 5h;
    hubs.faults.erase("target.arrived");
    hubs.faults.erase("target.await_arrivals");
    co_await holds([&] { return hubs.count("hub1 source.accepted") > 0; });
    // The period of its lease.
    co_await sleep(1min);
    home.available = true;
    home.seen = loop.clock().wall_now() + 5h;
    hubs.faults.clear();
    co_await reaches("m1", "Failed");
  });
  EXPECT_EQ(hubs.count("hub1 source.detach_arrived"), 0U);
  expect_moved("m1", {}, {"a", "b", "c"});
}

// The target calls a cluster Available for minutes after its agent has left. Both hubs accept it, and the agent is back
// on the source: detached there by that old proof, and then deleted, the cluster could be on no hub any more.
TEST_F(LastingTest, AClusterThatHasReturnedIsNotDetachedByWhatTheTargetSawBefore) {
  for (const auto* operation : {"target.await_arrivals", "target.arrived"})
    hubs.faults[operation].error = FakeHubs::unreachable("hub2");
  hubs.faults["source.await_returns"].error = FakeHubs::forbidden();
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Rollbacking");
    auto& home = hubs.hub("hub1").clusters.at("a");
    co_await holds([&] { return home.accepted; });
    co_await sleep(1s);
    EXPECT_TRUE(hubs.hub("hub2").clusters.at("a").available);
    home.available = true;
    home.seen = loop.clock().wall_now();
    hubs.faults.clear();
    co_await renew_leases("hub1", "m1", "Rollbacking");
    co_await reaches("m1", "Failed");
  });
  EXPECT_EQ(hubs.count("hub1 source.detach_arrived"), 0U);
  expect_moved("m1", {}, {"a", "b", "c"});
}

TEST_F(LastingTest, AClusterThatBothHubsAcceptStaysOnTheTargetIfItRenewsItsLeaseThere) {
  for (const auto* operation : {"target.await_arrivals", "target.arrived"})
    hubs.faults[operation].error = FakeHubs::unreachable("hub2");
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Rollbacking");
    co_await holds([&] { return hubs.hub("hub1").clusters.at("a").accepted; });
    hubs.faults.clear();
    co_await sleep(1h);
    EXPECT_EQ(phase("m1"), "Rollbacking") << "no hub has seen it since";
    EXPECT_EQ(hubs.count("hub1 source.detach_arrived"), 0U);
    co_await renew_leases("hub2", "m1", "Rollbacking");
    co_await reaches("m1", "Completed");
  });
  EXPECT_EQ(hubs.count("hub1 source.detach_arrived"), 1U);
  expect_moved("m1", {"a"}, {"b", "c"});
}

// The ConfigMap is deleted with the namespace, and cannot be created again: the finalizer must go all the same.
TEST_F(LastingTest, DeletingTheNamespaceOfAMigrationEndsIt) {
  hubs.travel_times["b"] = 1000h;
  given("m1", {"a", "b"}, {}, "other");
  live([&]() -> Awaitable<> {
    co_await holds([&] { return phase("m1", "other") == "Registering"; });
    co_await holds([&] { return available_on("hub2").contains("a"); });
    auto removed = co_await global.api().remove(kube::resources::namespaces, Key{"", "other"});
    EXPECT_TRUE(removed) << removed.error();
    co_await vanishes("m1", "other");
    EXPECT_FALSE(global.object(kube::resources::namespaces, {"", "other"}));
  });
  EXPECT_EQ(available_on("hub1"), (std::set<std::string>{"b", "c"}));
  EXPECT_EQ(available_on("hub2"), (std::set<std::string>{"a"}));
  EXPECT_EQ(hubs.hub("hub1").clusters.count("a"), 0u) << "it arrived: the source is cleaned";
  EXPECT_EQ(hubs.hub("hub2").clusters.count("b"), 0u);
  expect_nothing_left("m1");
}

// The spec of now may name others: neither are those touched, nor are the ones forgotten that the migration has
// detached.
TEST_F(LastingTest, ALostLedgerIsRebuiltFromTheHubsIfTheSpecHasChanged) {
  global.ignore_validation_rules();
  hubs.travel_time = 1000h;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await sleep(1min);
    hubs.faults["source.accept"].error = FakeHubs::forbidden();
    co_await reaches("m1", "Rollbacking");
    co_await sleep(10min);
    json::object spec{{"includedManagedClusters", json::array{"c"}}};
    json::object patch{{"spec", std::move(spec)}};
    auto patched = co_await global.api().merge_patch(managed_cluster_migrations, Key{"default", "m1"}, patch);
    EXPECT_TRUE(patched) << patched.error();
    co_await delete_ledger("m1");
    hubs.faults.clear();
    co_await reaches("m1", "Failed");
  });
  EXPECT_THAT(listed("m1", "all-clusters"), testing::ElementsAre("a", "b"));
  expect_moved("m1", {}, {"a", "b", "c"});
}

// A handler may run once more on an object that the cache still holds (seed 563 of the worlds).
TEST_F(LastingTest, NoLedgerIsCreatedForAMigrationThatIsGone) {
  Ledger ledger;
  ledger.all = {"a"};
  LedgerChange replace = [&](Ledger& present) { present = ledger; };
  auto script = [&]() -> Awaitable<> {
    co_await create("m1", {"a"});
    auto cached = migration("m1").json();
    kube::object_in(cached, "metadata")["deletionTimestamp"] = "2030-01-01T00:00:00Z";
    const Migration old{phase::KubeResource{kube::Object{std::move(cached)}}};
    co_await remove("m1");
    auto written = co_await change_ledger(global.api(), old, ledger, replace, nullptr);
    EXPECT_TRUE(written) << written.error().describe();
    EXPECT_FALSE(global.object(kube::resources::config_maps, {"default", "m1"}));
    co_await create("m1", {"a"});
    auto again = co_await change_ledger(global.api(), old, ledger, replace, nullptr);
    EXPECT_TRUE(again) << again.error().describe();
    EXPECT_FALSE(global.object(kube::resources::config_maps, {"default", "m1"})) << "another one of the same name";
  };
  loop.run(script());
}

/// Holds the Lease for ever.
class OwnLease final : public kube::Fence {
 public:
  [[nodiscard]] kube::LeaderEpoch epoch() const override { return {"late", 3}; }
  [[nodiscard]] async::TimePoint until() const override { return async::never; }
  [[nodiscard]] Duration least_time() const override { return {}; }
  Awaitable<bool> confirm() override { co_return true; }
  Awaitable<bool> outrank(std::int64_t) override { co_return true; }
};

// A ledger that does not exist names no writer: what a deposed leader creates would replace what its successor knows.
TEST_F(LastingTest, NoLedgerIsCreatedByAManagerThatTheStatusDoesNotName) {
  OwnLease fence;
  Ledger ledger;
  ledger.all = {"a"};
  LedgerChange replace = [&](Ledger& present) { present = ledger; };
  auto script = [&]() -> Awaitable<> {
    co_await create("m1", {"a"});
    const Migration known{phase::KubeResource{migration("m1")}};
    const auto name_leader = [&](const char* identity) {
      json::object leader{{"epoch", 2}, {"identity", identity}};
      json::object status{{"phase", "Cleaning"}, {"state", json::object{{"leader", std::move(leader)}}}};
      return global.api().merge_patch(managed_cluster_migrations, {"default", "m1"},
                                      json::object{{"status", std::move(status)}}, "status");
    };
    auto named = co_await name_leader("other");
    EXPECT_TRUE(named) << named.error();
    auto refused = co_await change_ledger(global.api(), known, ledger, replace, &fence);
    EXPECT_FALSE(refused);
    EXPECT_FALSE(global.object(kube::resources::config_maps, {"default", "m1"}));
    co_await name_leader("late");
    auto written = co_await change_ledger(global.api(), known, ledger, replace, &fence);
    EXPECT_TRUE(written) << written.error().describe();
    EXPECT_TRUE(global.object(kube::resources::config_maps, {"default", "m1"}));
  };
  loop.run(script());
}

TEST_F(LastingTest, ALostLedgerOfAPlacementIsRebuiltFromTheHubs) {
  hubs.hub("hub1").placements["p"] = {"a", "b"};
  hubs.faults["target.verify"].hang = true;
  given("m1", {}, {{"includedManagedClustersPlacementRef", "p"}});
  live_until("m1", "Cleaning");
  loop.run(delete_ledger("m1"));
  hubs.hub("hub1").placements["p"] = {"c"};
  hubs.faults.clear();
  live_until("m1", "Completed");
  expect_moved("m1", {"a", "b"}, {"c"});
}

TEST_F(LastingTest, ABootstrapKubeconfigIsNeverMadeWithoutTheTargetsAuthority) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Initializing");
    hubs.unreadable_authorities = 3;
    co_await reaches("m1", "Deploying");
  });
  EXPECT_LE(hubs.unreadable_authorities, 0);
  const auto kubeconfig = hubs.hub("hub1").kubeconfigs.begin()->second;
  EXPECT_EQ(kube::parse_kubeconfig(kubeconfig, "bootstrap", std::nullopt).ca_pem, FakeHubs::authority);
}

}  // namespace
}  // namespace hubferry::migration::test
