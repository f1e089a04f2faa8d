#include "hubferry/kube/edit.hpp"
#include "migration_test.hpp"

/// Admission, deletion, and requested rollbacks.
namespace hubferry::migration::test {
namespace {

class QueueTest : public MigrationTest {};

TEST_F(QueueTest, UnrelatedMigrationsRunConcurrently) {
  given("m1", {"a"});
  given("m2", {"b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    EXPECT_EQ(phase("m2"), "Registering");
    co_await reaches("m1", "Completed");
    co_await reaches("m2", "Completed");
  });
  expect_moved("m1", {"a", "b"}, {"c"});
}

TEST_F(QueueTest, AMigrationWaitsForTheOneThatHasItsClusterThenStarts) {
  given("m1", {"a"});
  given("m2", {"a", "b"}, {{"from", "hub1"}});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    EXPECT_EQ(phase("m2"), "Pending");
    EXPECT_THAT(condition("m2", "MigrationStarted"),
                HasSubstr("False Waiting: waiting for migration default/m1, which has cluster a"));
    co_await reaches("m1", "Completed");
    const auto freed = loop.clock().now();
    co_await reaches("m2", "Failed");
    EXPECT_LT(loop.clock().now() - freed, 5s);
  });
  // By then the cluster has moved.
  EXPECT_THAT(condition("m2", "ResourceValidated"), HasSubstr("a on hub1: ClusterNotFound"));
}

TEST_F(QueueTest, NoMoreMigrationsRunThanAllowed) {
  options.max_concurrent = 1;
  given("m1", {"a"});
  loop.run(sleep(2s));
  given("m2", {"b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    EXPECT_EQ(phase("m2"), "Pending");
    EXPECT_THAT(condition("m2", "MigrationStarted"), HasSubstr("no more run at once"));
    co_await reaches("m2", "Completed");
  });
  expect_moved("m1", {"a", "b"}, {"c"});
}

TEST_F(QueueTest, APlacementThatSelectsAClusterOfAnotherMigrationReturnsToPending) {
  hubs.hub("hub1").placements["edge"] = {"a", "b"};
  given("m1", {"a"});
  given("m2", {}, {{"includedManagedClustersPlacementRef", "edge"}});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    EXPECT_EQ(phase("m2"), "Pending");
    EXPECT_THAT(condition("m2", "MigrationStarted"), HasSubstr("default/m1, which has cluster a"));
    hubs.hub("hub1").placements["edge"] = {"b"};
    co_await reaches("m2", "Completed");
  });
  expect_moved("m2", {"a", "b"}, {"c"});
}

// Only the ledger knows what a placement selected.
TEST_F(QueueTest, AfterARestartAPlacementsClustersAreStillClaimed) {
  hubs.hub("hub1").placements["edge"] = {"a"};
  given("m1", {}, {{"includedManagedClustersPlacementRef", "edge"}});
  live_until("m1", "Registering");
  given("m2", {"a"});
  live([&]() -> Awaitable<> {
    co_await sleep(5s);
    EXPECT_THAT(condition("m2", "MigrationStarted"), HasSubstr("default/m1, which has cluster a"));
    co_await reaches("m1", "Completed");
    co_await reaches("m2", "Failed");
  });
}

TEST_F(QueueTest, MigrationsOfOneNameInTwoNamespacesRunOneAfterTheOther) {
  given("same", {"a"});
  given("same", {"b"}, {}, "other");
  live([&]() -> Awaitable<> {
    co_await reaches("same", "Registering");
    EXPECT_EQ(phase("same", "other"), "Pending");
    co_await reaches("same", "Completed");
    co_await reaches("same", "Completed", "other");
  });
  expect_moved("same", {"a", "b"}, {"c"});
}

TEST_F(QueueTest, MigrationsOutsideTheWatchedNamespaceAreIgnored) {
  options.watch_namespace = "default";
  given("m1", {"a"});
  given("m2", {"b"}, {}, "other");
  live_until("m1", "Completed");
  EXPECT_EQ(phase("m2", "other"), "");
}

TEST_F(QueueTest, EndedMigrationsAreLeftAlone) {
  given("m1", {"a"});
  live_until("m1", "Completed");
  const auto version = migration("m1").resource_version();
  const std::string before{version};
  global.forget_requests();
  live([&]() -> Awaitable<> { co_await sleep(1h); });
  EXPECT_EQ(migration("m1").resource_version(), before);
}

class SpecChangeTest : public MigrationTest {
 protected:
  Awaitable<kube::Result<kube::Object>> change_spec(json::object changes) {
    json::object patch{{"spec", std::move(changes)}};
    const Key key{"default", "m1"};
    co_return co_await global.api().merge_patch(managed_cluster_migrations, key, std::move(patch));
  }
};

TEST_F(SpecChangeTest, TheServerRefusesOtherHubsAlwaysAndOtherClustersOnceTheyAreValidated) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    auto earlier = co_await change_spec({{"includedManagedClusters", json::array{"a", "b"}}});
    EXPECT_TRUE(earlier) << "nothing has begun";
    auto other_hub = co_await change_spec({{"to", "hub3"}});
    EXPECT_FALSE(other_hub);
    co_await reaches("m1", "Registering");
    auto more = co_await change_spec({{"includedManagedClusters", json::array{"a", "b", "c"}}});
    CO_ASSERT_TRUE(!more);
    EXPECT_THAT(more.error().message, HasSubstr("cannot be changed after Validating; create another one"));
    auto selected =
        co_await change_spec({{"includedManagedClusters", nullptr}, {"includedManagedClustersPlacementRef", "edge"}});
    EXPECT_FALSE(selected);
    auto timeout = co_await change_spec({{"supportedConfigs", json::object{{"stageTimeout", "1h"}}}});
    EXPECT_TRUE(timeout) << timeout.error();
    co_await reaches("m1", "Completed");
  });
  EXPECT_EQ(condition("m1", "SpecChanged"), "none");
  expect_moved("m1", {"a", "b"}, {"c"});
}

// An API server before 1.25 knows no rules.
TEST_F(SpecChangeTest, OnAnOldServerAnEventAndAConditionSayThatTheChangeIsIgnored) {
  global.ignore_validation_rules();
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    auto more = co_await change_spec({{"includedManagedClusters", json::array{"a", "b"}}});
    EXPECT_TRUE(more) << more.error();
    co_await sleep(1s);
    EXPECT_THAT(events("ChangeIgnored"), testing::ElementsAre(HasSubstr("Create another migration")));
    co_await reaches("m1", "Completed");
  });
  EXPECT_THAT(condition("m1", "SpecChanged"), HasSubstr("True ChangeIgnored: the hubs or clusters in the spec"));
  expect_moved("m1", {"a"}, {"b", "c"});
}

TEST_F(SpecChangeTest, AFinishedMigrationThatIsAppliedOnceMoreStaysAsItIs) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Completed");
    const std::string before{migration("m1").resource_version()};
    json::object spec{{"from", "hub1"}, {"to", "hub2"}, {"includedManagedClusters", json::array{"a"}}};
    json::object metadata{{"name", "m1"}, {"namespace", "default"}};
    json::object object{{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
    auto applied = co_await global.api().apply(managed_cluster_migrations, std::move(object), true);
    EXPECT_TRUE(applied) << applied.error();
    co_await sleep(1h);
    EXPECT_EQ(migration("m1").resource_version(), before);
  });
  EXPECT_EQ(events("Validating").size(), 1u);
  expect_moved("m1", {"a"}, {"b", "c"});
}

// `kubectl wait`, Flux and Argo CD do not believe a condition that is older than the spec: they would wait for ever.
TEST_F(SpecChangeTest, ASettingThatIsChangedAfterTheEndIsObserved) {
  hubs.travel_times["b"] = 1000h;
  given("m1", {"a"});
  given("m2", {"b"});
  const auto observed = [&](const std::string& name, const char* type) -> std::int64_t {
    const auto object = migration(name);
    const auto* found = kube::find_condition(object, type);
    return found == nullptr ? -1 : found->at("observedGeneration").to_number<std::int64_t>();
  };
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Completed");
    co_await reaches("m2", "Failed");
    const auto failure = condition("m2", "Succeeded");
    for (const auto* name : {"m1", "m2"}) {
      json::object patch{{"spec", json::object{{"ttlSecondsAfterFinished", 86400}}}};
      auto changed = co_await global.api().merge_patch(managed_cluster_migrations, {"default", name}, patch);
      CO_ASSERT_TRUE(changed);
      co_await sleep(1s);
      EXPECT_EQ(migration(name).generation(), 2);
      EXPECT_EQ(migration(name).find({"status", "observedGeneration"})->to_number<int>(), 2) << name;
      for (const auto* type : {"Ready", "Succeeded"}) EXPECT_EQ(observed(name, type), 2) << name << " " << type;
    }
    EXPECT_EQ(observed("m2", "Stalled"), 2);
    EXPECT_THAT(condition("m1", "Succeeded"), HasSubstr("True Completed: 1 cluster migrated"));
    EXPECT_EQ(condition("m2", "Succeeded"), failure);
    const std::string before{migration("m1").resource_version()};
    co_await sleep(1h);
    EXPECT_EQ(migration("m1").resource_version(), before);
    co_await sleep(24h);
    EXPECT_FALSE(exists("m1")) << "its time is up nevertheless";
  });
}

// An API server before 1.25 lets somebody do that, too.
TEST_F(SpecChangeTest, OnAnOldServerAChangeOfTheClustersAfterTheEndIsNamed) {
  global.ignore_validation_rules();
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Completed");
    auto more = co_await change_spec({{"includedManagedClusters", json::array{"a", "b"}}});
    EXPECT_TRUE(more) << more.error();
    co_await sleep(1s);
  });
  EXPECT_THAT(condition("m1", "SpecChanged"), HasSubstr("True ChangeIgnored: the hubs or clusters in the spec"));
  expect_moved("m1", {"a"}, {"b", "c"});
}

class DeletionTest : public MigrationTest, public testing::WithParamInterface<const char*> {};

// In every phase: what was done is undone, and the finalizer is removed.
TEST_P(DeletionTest, StopsTheMigrationAndRollsItBack) {
  const std::string phase = GetParam();
  if (phase == "Pending") {
    given("m0", {"a"});
    loop.run(sleep(2s));
  }
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    if (phase == "Rollbacking") hubs.faults["source.collect"] = {.error = FakeHubs::forbidden()};
    co_await reaches("m1", phase);
    co_await remove("m1");
    const auto deleted = loop.clock().now();
    co_await vanishes("m1");
    EXPECT_LT(loop.clock().now() - deleted, 2min);
    if (phase == "Pending") co_await reaches("m0", "Completed");
    co_await sleep(1min);
  });
  if (phase == "Pending") {
    expect_moved("m1", {"a"}, {"b", "c"});
  } else if (phase == "Cleaning" || phase == "Completed") {
    expect_moved("m1", {"a", "b"}, {"c"});
  } else {
    expect_moved("m1", {}, {"a", "b", "c"});
  }
  EXPECT_FALSE(global.object(kube::resources::config_maps, {"default", "m1"}));
}

INSTANTIATE_TEST_SUITE_P(Phases, DeletionTest,
                         testing::Values("Pending", "Validating", "Initializing", "Deploying", "Registering",
                                         "Rollbacking", "Cleaning", "Completed"));

// Its last status cannot be written any more, but people look for what became of it.
TEST_F(MigrationTest, ADeletedMigrationHasAnEventForItsEnd) {
  hubs.travel_time = 1000h;
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await sleep(1min);
    co_await remove("m1");
    co_await vanishes("m1");
    co_await sleep(1s);
  });
  EXPECT_THAT(events("Cancelled"), testing::ElementsAre(HasSubstr("deleted: 0 clusters migrated, 1 rolled back")));
}

TEST_F(MigrationTest, DeletedAfterSomeClustersArrivedThoseStayAndTheOthersReturn) {
  hubs.travel_times["b"] = 5min;
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await sleep(1min);
    EXPECT_EQ(clusters("m1", "migrated"), 1);
    co_await remove("m1");
    co_await vanishes("m1");
  });
  expect_moved("m1", {"a"}, {"b", "c"});
}

TEST_F(MigrationTest, DeletedDuringAnOutageOfTheTargetTheSourceIsRestored) {
  hubs.travel_time = 1h;
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await sleep(10s);
    hubs.hub("hub2").reachable = false;
    co_await remove("m1");
    co_await holds([&] { return hubs.count("hub1 source.roll_back") > 0; });
    co_await sleep(5h);
    EXPECT_TRUE(exists("m1")) << "its copies are still on the target";
    EXPECT_EQ(available_on("hub1"), (std::set<std::string>{"a", "b", "c"}));
    EXPECT_FALSE(hubs.hub("hub1").clusters.at("a").marked);
    EXPECT_TRUE(hubs.hub("hub1").kubeconfigs.empty());
    hubs.hub("hub2").reachable = true;
    co_await vanishes("m1");
  });
  expect_moved("m1", {}, {"a", "b", "c"});
}

// A target that never comes back: only a person can say so, by naming what stays.
TEST_F(MigrationTest, DeletedAfterTheTargetIsLostItGoesOnceAPersonNamesWhatStays) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    hubs.hub("hub2").reachable = false;
    co_await remove("m1");
    co_await sleep(1h);
    co_await annotate("m1", names::leave_annotation, "hub3");
    co_await sleep(1h);
    EXPECT_TRUE(exists("m1")) << "that is not what stays";
    co_await annotate("m1", names::leave_annotation, "hub2");
    const auto named = loop.clock().now();
    co_await vanishes("m1");
    EXPECT_LT(loop.clock().now() - named, 1min);
  });
  EXPECT_TRUE(hubs.hub("hub1").clusters.at("a").accepted);
  EXPECT_EQ(hubs.hub("hub2").clusters.count("a"), 1u);
}

class RequestTest : public MigrationTest {
 protected:
  /// A migration whose rollback could not reach the source, and that a person ended.
  Awaitable<> fail_with_a_bad_rollback() {
    hubs.faults["source.collect"] = {.error = FakeHubs::forbidden()};
    hubs.faults["source.roll_back"] = {.error = FakeHubs::forbidden()};
    co_await reaches("m1", "Rollbacking");
    co_await annotate("m1", names::leave_annotation, "hub1,hub2");
    co_await reaches("m1", "Failed");
    EXPECT_THAT(condition("m1", "ResourceRolledBack"), HasSubstr("False LeftBehind"));
    co_await annotate("m1", names::leave_annotation, "");
    EXPECT_TRUE(hubs.hub("hub1").clusters.at("a").marked);
    hubs.faults.clear();
  }
};

TEST_F(RequestTest, ARequestedRollbackIsRetriedWithAFreshDeadline) {
  given("m1", {"a", "b"});
  live([&]() -> Awaitable<> {
    co_await fail_with_a_bad_rollback();
    co_await sleep(5h);
    co_await annotate("m1", names::request_annotation, "rollback");
    co_await holds([&] { return phase("m1") == "Rollbacking"; });
    co_await reaches("m1", "Failed");
  });
  EXPECT_THAT(condition("m1", "ResourceRolledBack"), HasSubstr("True ResourceRolledBack"));
  EXPECT_EQ(migration("m1").annotation(names::request_annotation), "");
  expect_moved("m1", {}, {"a", "b", "c"});
  EXPECT_EQ(clusters("m1", "rolledBack"), 2);
}

TEST_F(RequestTest, AnotherValueOrPhaseIsAnsweredWithAnEventAndTheRequestIsRemoved) {
  given("m1", {"a"});
  given("m2", {"b"});
  const auto answered = [&](const std::string& name) {
    return [this, name] { return migration(name).annotation(names::request_annotation).empty(); };
  };
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await annotate("m1", names::request_annotation, "rollback");
    co_await holds(answered("m1"));
    co_await reaches("m2", "Completed");
    co_await annotate("m2", names::request_annotation, "rollback");
    co_await holds(answered("m2"));
    co_await reaches("m1", "Completed");
    co_await annotate("m1", names::request_annotation, "retry");
    co_await holds(answered("m1"));
    co_await sleep(1h);
  });
  EXPECT_EQ(phase("m1"), "Completed");
  EXPECT_EQ(phase("m2"), "Completed");
  EXPECT_THAT(events("RequestRefused"),
              testing::ElementsAre(HasSubstr("rollback is not granted: the migration runs; delete it"),
                                   HasSubstr("retry is not granted: the only request there is"),
                                   HasSubstr("rollback is not granted: the clusters have arrived")))
      << "by migration, then by time";
  expect_moved("m1", {"a", "b"}, {"c"});
}

TEST_F(RequestTest, AClusterThatArrivedMeanwhileStaysAndTheMigrationCompletes) {
  hubs.travel_time = 1000h;
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Registering");
    co_await sleep(1min);
    hubs.hub("hub2").reachable = false;
    hubs.hub("hub1").reachable = false;
    co_await reaches("m1", "Rollbacking");
    co_await annotate("m1", names::leave_annotation, "hub1,hub2");
    co_await reaches("m1", "Failed");
    co_await annotate("m1", names::leave_annotation, "");
    hubs.hub("hub1").reachable = hubs.hub("hub2").reachable = true;
    auto& there = hubs.hub("hub2").clusters.at("a");
    there.available = there.accepted = true;
    there.seen = loop.clock().wall_now();
    hubs.hub("hub1").clusters.at("a").available = false;
    co_await annotate("m1", names::request_annotation, "rollback");
    co_await reaches("m1", "Completed");
  });
  EXPECT_EQ(available_on("hub2"), (std::set<std::string>{"a"}));
  EXPECT_EQ(hubs.hub("hub1").clusters.count("a"), 0u);
}

// A manager that crashes between accepting a rollback and recording it leaves an ended migration with a finalizer.
TEST_F(RequestTest, AnEndedMigrationWithAFinalizerCanBeDeleted) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await fail_with_a_bad_rollback();
    co_await create("m2", {"b"});
    co_await reaches("m2", "Completed");
    for (const auto* name : {"m1", "m2"}) {
      const Key key{"default", name};
      auto held = co_await kube::add_finalizer(global.api(), managed_cluster_migrations, key, names::finalizer);
      EXPECT_TRUE(held);
      co_await remove(name);
      co_await vanishes(name);
    }
  });
  EXPECT_FALSE(hubs.hub("hub1").clusters.at("a").marked);
  EXPECT_EQ(available_on("hub2"), (std::set<std::string>{"b"}));
}

TEST_F(RequestTest, ItWaitsForAMigrationThatHasTheClusterNow) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await fail_with_a_bad_rollback();
    hubs.hub("hub1").clusters.at("a").migrating.clear();
    co_await create("m2", {"a"});
    co_await reaches("m2", "Registering");
    co_await annotate("m1", names::request_annotation, "rollback");
    co_await sleep(5s);
    EXPECT_THAT(condition("m1", "ResourceRolledBack"), HasSubstr("default/m2, which has cluster a"));
    co_await reaches("m2", "Completed");
    co_await reaches("m1", "Failed");
  });
  EXPECT_EQ(available_on("hub2"), (std::set<std::string>{"a"}));
}

class TimeToLiveTest : public MigrationTest {};

TEST_F(TimeToLiveTest, AnEndedMigrationIsDeletedWhenItsTimeIsUpAndNotBefore) {
  hubs.travel_times["b"] = 1000h;
  given("m1", {"a"}, {{"ttlSecondsAfterFinished", 3600}});
  given("m2", {"b"}, {{"ttlSecondsAfterFinished", 0}});
  given("m3", {"c"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Completed");
    co_await sleep(59min);
    EXPECT_TRUE(exists("m1"));
    co_await sleep(1min + 1s);
    EXPECT_FALSE(exists("m1"));
    co_await vanishes("m2");
    co_await sleep(24h);
  });
  EXPECT_EQ(events("Failed").size(), 1u) << "m2 had ended, then it was deleted";
  EXPECT_EQ(phase("m3"), "Completed");
}

// It may be edited after the end, and counts for a manager that came later.
TEST_F(TimeToLiveTest, CountsFromTheEndForTheNextManagerAndWhenItIsSetLater) {
  given("m1", {"a"}, {{"ttlSecondsAfterFinished", 3600}});
  given("m2", {"b"});
  live_until("m2", "Completed");
  live([&]() -> Awaitable<> {
    co_await sleep(2h);
    EXPECT_FALSE(exists("m1"));
    EXPECT_TRUE(exists("m2"));
    json::object patch{{"spec", json::object{{"ttlSecondsAfterFinished", 60}}}};
    const Key key{"default", "m2"};
    auto edited = co_await global.api().merge_patch(managed_cluster_migrations, key, std::move(patch));
    EXPECT_TRUE(edited) << edited.error();
    co_await sleep(1s);
    EXPECT_FALSE(exists("m2"));
  });
}

class CredentialTest : public MigrationTest {
 protected:
  CredentialTest() {
    auto put = [&]() -> Awaitable<> {
      json::object addon{{"metadata", json::object{{"name", "managed-serviceaccount"}, {"namespace", "hub2"}}},
                         {"spec", json::object{}}};
      auto created = co_await global.api().create(ocm::managed_cluster_addons, addon);
      EXPECT_TRUE(created) << created.error();
    };
    loop.run(put());
  }
  Awaitable<> deliver_token(std::string token) {
    json::object labels{{"authentication.open-cluster-management.io/is-managed-serviceaccount", "true"}};
    json::object secret{
        {"metadata", json::object{{"name", "m1"}, {"namespace", "hub2"}, {"labels", std::move(labels)}}},
        {"stringData", json::object{{"token", token}, {"ca.crt", ""}}}};
    // As the add-on does it: who deletes the account need not delete Secrets.
    const auto account = *global.object(ocm::managed_service_accounts, {"hub2", "m1"});
    EXPECT_TRUE(kube::set_owner(secret, ocm::managed_service_accounts, account));
    auto created = co_await global.api().create(kube::resources::secrets, secret);
    EXPECT_TRUE(created) << created.error();
  }
};

TEST_F(CredentialTest, AManagedServiceAccountIsCreatedAndItsTokenAwaited) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await holds([&] { return global.count(ocm::managed_service_accounts) == 1; });
    const auto account = *global.object(ocm::managed_service_accounts, {"hub2", "m1"});
    EXPECT_EQ(account.label("owner"), "managedclustermigration");
    EXPECT_EQ(account.label(hubagent::migration_label), migration("m1").uid());
    EXPECT_EQ(account.string_at({"spec", "rotation", "validity"}), "24h0m0s");
    co_await sleep(1min);
    EXPECT_EQ(phase("m1"), "Initializing");
    co_await deliver_token("token-for-system:serviceaccount:open-cluster-management-agent-addon:m1");
    const auto delivered = loop.clock().now();
    co_await reaches("m1", "Deploying");
    EXPECT_LT(loop.clock().now() - delivered, 2s);
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a"}, {"b", "c"});
  EXPECT_EQ(hubs.count("hub2 target.issue_token"), 0u);
  EXPECT_FALSE(global.object(kube::resources::secrets, {"hub2", "m1"}));
}

TEST_F(CredentialTest, ATokenThatNeverAppearsIsNamedWhileItIsAwaitedAndThenATimeout) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Initializing");
    co_await sleep(2s);
    EXPECT_THAT(condition("m1", "ResourceInitialized"),
                HasSubstr("; waiting: Secret hub2/m1 of the global hub with the token of ManagedServiceAccount"));
    co_await reaches("m1", "Failed");
  });
  EXPECT_THAT(condition("m1", "ResourceInitialized"),
              HasSubstr("False Timeout: no credential for hub 'hub2': Secret hub2/m1"));
  expect_moved("m1", {}, {"a", "b", "c"});
}

TEST_F(CredentialTest, AForeignManagedServiceAccountIsNotChanged) {
  auto put = [&]() -> Awaitable<> {
    json::object account{{"metadata", json::object{{"name", "m1"}, {"namespace", "hub2"}}},
                         {"spec", json::object{{"rotation", json::object{{"enabled", true}}}}}};
    auto created = co_await global.api().create(ocm::managed_service_accounts, account);
    EXPECT_TRUE(created) << created.error();
  };
  loop.run(put());
  given("m1", {"a"});
  live_until("m1", "Failed");
  EXPECT_THAT(condition("m1", "ResourceInitialized"), HasSubstr("does not belong to this migration"));
  EXPECT_EQ(global.count(ocm::managed_service_accounts), 1u);
}

}  // namespace
}  // namespace hubferry::migration::test
