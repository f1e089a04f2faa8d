#include "hub_test.hpp"

namespace hubferry::hubagent {
namespace {

using namespace ocm::names;

class RollBackTest : public HubTest {
 protected:
  Awaitable<> put_lease(std::string name) {
    json::object lease;
    lease["metadata"] = json::object{{"name", cluster_lease}, {"namespace", name}};
    lease["spec"] = json::object{{"renewTime", async::format_micro_time(clock_.wall_now())}};
    co_await put(*hub1_, kube::resources::leases, lease);
  }
  Awaitable<> beat(std::string name, async::Duration off = {}) {
    json::object body;
    body["spec"] = json::object{{"renewTime", async::format_micro_time(clock_.wall_now() + off)}};
    auto beaten = co_await hub1_->server.api().merge_patch(kube::resources::leases, {name, cluster_lease}, body);
    EXPECT_TRUE(beaten);
  }
};

TEST_F(RollBackTest, TheSourceIsRestored) {
  for (const auto stage : {Stage::initializing, Stage::deploying}) {
    reset();
    run([&]() -> Awaitable<> {
      for (const char* name : {"c1", "c2"}) {
        co_await put_cluster(*hub1_, name);
        co_await put_machinery(*hub1_, name);
      }
      co_await patch(*hub1_, ocm::managed_clusters, {{}, "c2"},
                     R"({"metadata": {"annotations": {"import.open-cluster-management.io/disable-auto-import": "",
                        "agent.open-cluster-management.io/klusterlet-config": "mine", "a": "b"}}})");
      co_await patch(*hub1_, ocm::bare_metal_hosts, {"c2", "host"},
                     R"({"metadata": {"annotations": {"baremetalhost.metal3.io/paused": "by me"}}})");
      const auto before = content_of(hub1_->server);
      auto begun = co_await hub1_->source->initialize(migration_, {"c1", "c2"}, kubeconfig_);
      CO_ASSERT_TRUE(begun);
      EXPECT_EQ(cluster(*hub1_, "c2").annotation(klusterlet_config_annotation), "migration-move-mine");
      auto undone = co_await hub1_->source->roll_back(migration_, stage, {"c1", "c2", "gone"});
      CO_ASSERT_TRUE(undone);
      EXPECT_TRUE(undone->failed.empty()) << "a missing cluster needs no rollback";
      auto removed = co_await hub1_->source->delete_migration_objects(migration_);
      CO_ASSERT_TRUE(removed);
      EXPECT_THAT(differences(before, content_of(hub1_->server)), IsEmpty());
      const auto version = hub1_->server.resource_version();
      auto again = co_await hub1_->source->roll_back(migration_, stage, {"c1", "c2"});
      EXPECT_TRUE(again && again->failed.empty());
      EXPECT_EQ(hub1_->server.resource_version(), version);
    });
  }
}

// Available is still True from before the cut-over: only a new heartbeat proves that the cluster is back.
TEST_F(RollBackTest, ADetachedClusterIsBackWhenItRenewsItsLease) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await put_lease("c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    CO_ASSERT_TRUE(begun && detached);
    std::optional<async::TimePoint> back;
    auto undo = [&]() -> Awaitable<> {
      auto undone = co_await hub1_->source->roll_back(migration_, Stage::registering, {"c1"});
      EXPECT_TRUE(undone && undone->failed.empty());
      back = clock_.now();
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(undo());
      co_await clock_.sleep_for(1s);
      EXPECT_EQ(cluster(*hub1_, "c1")->at("spec").at("hubAcceptsClient"), true);
      EXPECT_EQ(cluster(*hub1_, "c1").annotation(migrating_annotation), "uid-1") << "until it is back";
      co_await clock_.sleep_for(10min);
      EXPECT_FALSE(back) << "Available is True, from before";
      // The hub creates a lease that is missing, which is no sign of life of the cluster.
      co_await hub1_->server.api().remove(kube::resources::leases, {"c1", cluster_lease});
      co_await put_lease("c1");
      co_await clock_.sleep_for(1min);
      EXPECT_FALSE(back);
      co_await beat("c1");
      co_await clock_.sleep_for(1s);
      EXPECT_TRUE(back.has_value());
      EXPECT_EQ(cluster(*hub1_, "c1").find({"metadata", "annotations"}), nullptr);
      scope.stop();
    };
    co_await async::with_scope(both);
  });
}

TEST_F(RollBackTest, ADetachedClusterMustAlsoBeAvailableAndAMissingOneFails) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await put_lease("c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    CO_ASSERT_TRUE(begun && detached);
    auto away = managed_cluster("c1", "Unknown");
    json::object status;
    status["status"] = away.at("status");
    co_await hub1_->server.api().merge_patch(ocm::managed_clusters, {{}, "c1"}, status, "status");
    std::optional<Outcome> result;
    auto undo = [&]() -> Awaitable<> {
      auto undone = co_await hub1_->source->roll_back(migration_, Stage::registering, {"c1", "gone"});
      EXPECT_TRUE(undone);
      if (undone) result = *undone;
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(undo());
      co_await clock_.sleep_for(1s);
      co_await beat("c1");
      co_await clock_.sleep_for(1min);
      EXPECT_FALSE(result) << "it beats, but is not Available";
      json::object back;
      back["status"] = managed_cluster("c1").at("status");
      co_await hub1_->server.api().merge_patch(ocm::managed_clusters, {{}, "c1"}, back, "status");
      co_await clock_.sleep_for(1s);
      scope.stop();
    };
    co_await async::with_scope(both);
    CO_ASSERT_TRUE(result.has_value());
    EXPECT_THAT(result->done, ElementsAre("c1"));
    EXPECT_THAT(reasons_of(*result), ElementsAre("gone: ClusterNotFound"));
  });
}

// A cluster that is being deleted is not there to return to.
TEST_F(RollBackTest, AClusterThatIsBeingDeletedIsNotAccepted) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    CO_ASSERT_TRUE(begun && detached);
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"metadata": {"finalizers": ["hub/cleanup"]}})");
    co_await hub1_->server.api().remove(ocm::managed_clusters, {{}, "c1"});
    auto accepted = co_await hub1_->source->accept(migration_, {"c1"});
    CO_ASSERT_TRUE(accepted);
    EXPECT_THAT(reasons_of(*accepted), ElementsAre("c1: ClusterNotAvailable"));
    EXPECT_EQ(cluster(*hub1_, "c1")->at("spec").at("hubAcceptsClient"), false);
  });
}

// Another process continues where the first one stopped: what it waits for is on the ManagedCluster.
TEST_F(RollBackTest, AReturnIsSeenByAnotherProcessToo) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await put_lease("c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    auto accepted = co_await hub1_->source->accept(migration_, {"c1"});
    CO_ASSERT_TRUE(begun && detached && accepted);
    std::vector<std::string> back;
    auto wait = [&]() -> Awaitable<> {
      co_await hub1_->source->await_returns(migration_, {"c1"}, [&](const std::string& name) { back.push_back(name); });
    };
    const bool returned = co_await async::before_deadline(clock_, clock_.now() + 10min, wait());
    EXPECT_FALSE(returned);
    co_await beat("c1");
    co_await wait();
    EXPECT_THAT(back, ElementsAre("c1"));
  });
}

// Accepted by both hubs, it may have come back and left again while nobody was looking. Available is True for minutes
// after that, or for hours if its clock is fast.
TEST_F(RollBackTest, ARenewalOfAnEarlierRoundIsNoReturn) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"late", "ahead"}) {
      co_await put_cluster(*hub1_, name);
      co_await put_lease(name);
    }
    const ClusterNames names{"late", "ahead"};
    auto begun = co_await hub1_->source->initialize(migration_, names, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, names);
    auto accepted = co_await hub1_->source->accept(migration_, names);
    CO_ASSERT_TRUE(begun && detached && accepted);
    std::set<std::string> back;
    const auto is_back_within = [&](async::Duration time) -> Awaitable<bool> {
      auto wait = hub1_->source->await_returns(migration_, names, [&](const std::string& name) { back.insert(name); });
      const auto ended = co_await async::before_deadline(clock_, clock_.now() + time, std::move(wait));
      co_return ended.has_value();
    };
    EXPECT_FALSE(co_await is_back_within(1min));
    co_await beat("late");
    co_await beat("ahead", 5h);
    co_await clock_.sleep_for(1h);
    auto again = co_await hub1_->source->accept(migration_, names);
    CO_ASSERT_TRUE(again);
    EXPECT_FALSE(co_await is_back_within(1h));
    EXPECT_THAT(back, IsEmpty());
    auto renew = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(1min);
      co_await beat("late");
      co_await beat("ahead", 5h);
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(renew());
      EXPECT_TRUE(co_await is_back_within(2min));
    };
    co_await async::with_scope(both);
    EXPECT_THAT(back, UnorderedElementsAre("late", "ahead"));
  });
}

// It never left, so its claim was dropped; if its agent registers on the target afterwards, only a sign of life shows
// that it is back.
TEST_F(RollBackTest, AClusterThatWasReleasedBeforeIsBackWhenItRenewsItsLease) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await put_lease("c1");
    std::vector<std::string> back;
    auto wait = [&]() -> Awaitable<> {
      co_await hub1_->source->await_returns(migration_, {"c1"}, [&](const std::string& name) { back.push_back(name); });
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(wait());
      co_await clock_.sleep_for(10min);
      EXPECT_THAT(back, IsEmpty());
      co_await beat("c1");
      co_await clock_.sleep_for(1s);
      EXPECT_THAT(back, ElementsAre("c1"));
      scope.stop();
    };
    co_await async::with_scope(both);
  });
}

TEST_F(RollBackTest, AnotherMigrationsClaimIsKept) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await put_machinery(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(other_, {"c1"}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(other_, {"c1"});
    CO_ASSERT_TRUE(begun && detached);
    const auto before = content_of(hub1_->server);
    auto undone = co_await hub1_->source->roll_back(migration_, Stage::registering, {"c1"});
    EXPECT_TRUE(undone && undone->failed.empty());
    EXPECT_THAT(differences(before, content_of(hub1_->server)), IsEmpty());
  });
}

TEST_F(RollBackTest, OnlyTheCopiesAreDeletedFromTheTarget) {
  for (const auto stage : {Stage::deploying, Stage::registering}) {
    reset();
    run([&]() -> Awaitable<> {
      for (const char* name : {"c1", "c2"}) {
        co_await put_cluster(*hub1_, name);
        co_await put_machinery(*hub1_, name);
      }
      co_await put_cluster(*hub2_, "resident");
      co_await put_machinery(*hub2_, "resident");
      auto bundle = co_await collected(*hub1_, {"c1", "c2"});
      const auto before = content_of(hub2_->server);
      auto deployed = co_await hub2_->target->deploy(migration_, bundle);
      CO_ASSERT_TRUE(deployed);
      // As Hive and metal3 do when they reconcile them.
      co_await patch(*hub2_, ocm::cluster_deployments, {"c1", "c1"},
                     R"({"metadata": {"finalizers": ["hive.openshift.io/deprovision"]}})");
      co_await patch(*hub2_, ocm::bare_metal_hosts, {"c1", "host"},
                     R"({"metadata": {"finalizers": ["baremetalhost.metal3.io"]}})");
      co_await patch(*hub2_, kube::resources::secrets, {"c1", "bmc"},
                     R"({"metadata": {"finalizers": ["baremetalhost.metal3.io/secret"]}})");
      auto undone = co_await hub2_->target->roll_back(migration_, stage, {"c1", "c2", "never-came", "resident"});
      CO_ASSERT_TRUE(undone);
      EXPECT_TRUE(undone->failed.empty());
      EXPECT_THAT(differences(before, content_of(hub2_->server)), IsEmpty());
      auto again = co_await hub2_->target->roll_back(migration_, stage, {"c1", "c2"});
      EXPECT_TRUE(again && again->failed.empty());
    });
  }
}

// A host that somebody adds to the cluster on the target would be deprovisioned with the namespace.
TEST_F(RollBackTest, AHostOfSomebodyElseKeepsTheCopyAndIsNamed) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) {
      co_await put_cluster(*hub1_, name);
      co_await put_machinery(*hub1_, name);
    }
    auto bundle = co_await collected(*hub1_, {"c1", "c2"});
    co_await hub2_->target->deploy(migration_, bundle);
    auto host = parsed(R"({"metadata": {"name": "new", "namespace": "c1"}, "spec": {"online": true}})");
    co_await put(*hub2_, ocm::bare_metal_hosts, host);
    auto undone = co_await hub2_->target->roll_back(migration_, Stage::deploying, {"c1", "c2"});
    CO_ASSERT_TRUE(undone);
    EXPECT_THAT(undone->done, ElementsAre("c2"));
    EXPECT_THAT(reasons_of(*undone), ElementsAre("c1: ClusterConflict"));
    EXPECT_THAT(undone->failed[0].message, HasSubstr("BareMetalHost c1/new on hub hub2 does not belong"));
    EXPECT_TRUE(exists(*hub2_, ocm::bare_metal_hosts, {"c1", "new"}));
    EXPECT_FALSE(exists(*hub2_, ocm::bare_metal_hosts, {"c1", "host"})) << "ours";
    EXPECT_TRUE(exists(*hub2_, ocm::managed_clusters, {{}, "c1"})) << "the hub would delete the namespace with it";
    co_await hub2_->server.api().remove(ocm::bare_metal_hosts, {"c1", "new"});
    auto again = co_await hub2_->target->roll_back(migration_, Stage::deploying, {"c1"});
    EXPECT_TRUE(again && again->failed.empty());
    EXPECT_FALSE(exists(*hub2_, kube::resources::namespaces, {{}, "c1"}));
  });
}

// A write that was not answered may take effect for a minute: only its own cluster waits for that.
TEST_F(RollBackTest, AClusterThatSettlesDoesNotHoldASlot) {
  HubOptions one_at_once;
  one_at_once.clusters_in_flight = 1;
  hub1_->hub = std::make_shared<Hub>("hub1", hub1_->api, one_at_once, env_);
  hub1_->source = make_source_hub(hub1_->hub);
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await put_cluster(*hub1_, name);
    const ClusterNames both{"c1", "c2"};
    co_await hub1_->source->initialize(migration_, both, kubeconfig_);
    hub1_->server.faults().on({.verb = "patch", .resource = "managedclusters", .name = "c1"}).times(1).reset_after();
    co_await hub1_->source->detach(migration_, both);
    auto accept = [&]() -> Awaitable<> {
      auto accepted = co_await hub1_->source->accept(migration_, both);
      EXPECT_TRUE(accepted && accepted->failed.empty());
    };
    auto watched = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(accept());
      co_await clock_.sleep_for(5s);
      EXPECT_EQ(cluster(*hub1_, "c1")->at("spec").at("hubAcceptsClient"), false) << "it settles";
      EXPECT_EQ(cluster(*hub1_, "c2")->at("spec").at("hubAcceptsClient"), true);
    };
    co_await async::with_scope(watched);
    EXPECT_EQ(cluster(*hub1_, "c1")->at("spec").at("hubAcceptsClient"), true);
  });
}

// What a lost ledger is rebuilt from.
TEST_F(RollBackTest, TheHubsKnowWhichClustersAMigrationHas) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2", "c3"}) co_await put_cluster(*hub1_, name);
    co_await put_cluster(*hub2_, "resident");
    co_await hub1_->source->initialize(migration_, {"c2", "c1"}, kubeconfig_);
    co_await hub1_->source->initialize(other_, {"c3"}, kubeconfig_);
    auto bundle = co_await collected(*hub1_, {"c1"});
    co_await hub2_->target->deploy(migration_, bundle);
    auto claimed = co_await hub1_->source->claimed(migration_);
    CO_ASSERT_TRUE(claimed);
    EXPECT_THAT(*claimed, ElementsAre("c1", "c2"));
    auto copied = co_await hub2_->target->copied(migration_);
    CO_ASSERT_TRUE(copied);
    EXPECT_THAT(*copied, ElementsAre("c1"));
  });
}

TEST_F(RollBackTest, AnArrivedAgentIsDeniedFirstAndTheDeletionIsAwaited) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    auto bundle = co_await collected(*hub1_, {"c1"});
    co_await hub2_->target->deploy(migration_, bundle);
    co_await patch(*hub2_, ocm::managed_clusters, {{}, "c1"}, R"({"metadata": {"finalizers": ["hub/cleanup"]}})");
    bool ended = false;
    auto undo = [&]() -> Awaitable<> {
      auto undone = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
      EXPECT_TRUE(undone && undone->failed.empty());
      ended = true;
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(undo());
      co_await clock_.sleep_for(30s);
      EXPECT_EQ(cluster(*hub2_, "c1")->at("spec").at("hubAcceptsClient"), false);
      EXPECT_TRUE(cluster(*hub2_, "c1").is_being_deleted());
      EXPECT_TRUE(exists(*hub2_, kube::resources::namespaces, {{}, "c1"})) << "the hub may still need it";
      EXPECT_FALSE(ended);
      co_await patch(*hub2_, ocm::managed_clusters, {{}, "c1"}, R"({"metadata": {"finalizers": null}})");
      co_await clock_.sleep_for(1s);
      EXPECT_TRUE(ended);
      scope.stop();
    };
    co_await async::with_scope(both);
    EXPECT_FALSE(exists(*hub2_, kube::resources::namespaces, {{}, "c1"}));
  });
}

TEST_F(RollBackTest, BeforeDeployingThereIsNothingToUndoPerCluster) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub2_, "c1");
    const auto version = hub2_->server.resource_version();
    auto undone = co_await hub2_->target->roll_back(migration_, Stage::initializing, {"c1"});
    CO_ASSERT_TRUE(undone);
    EXPECT_THAT(undone->done, ElementsAre("c1"));
    EXPECT_EQ(hub2_->server.resource_version(), version);
  });
}

// A whole migration and its rollback: both hubs are as before.
TEST_F(RollBackTest, AMigrationAndItsRollbackLeaveNoTrace) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) {
      co_await put_cluster(*hub1_, name);
      co_await put_machinery(*hub1_, name);
      co_await put_lease(name);
    }
    const auto source_before = content_of(hub1_->server);
    const auto target_before = content_of(hub2_->server);
    const ClusterNames names{"c1", "c2"};
    auto token = co_await hub2_->target->issue_token(migration_, identity_);
    auto granted = co_await hub2_->target->permit_registration(migration_, identity_);
    auto begun = co_await hub1_->source->initialize(migration_, names, kubeconfig_);
    CO_ASSERT_TRUE(token && granted && begun);
    auto bundle = co_await collected(*hub1_, names);
    auto deployed = co_await hub2_->target->deploy(migration_, bundle);
    auto detached = co_await hub1_->source->detach(migration_, names);
    CO_ASSERT_TRUE(deployed && detached);
    auto undo = [&]() -> Awaitable<> {
      auto undone = co_await hub1_->source->roll_back(migration_, Stage::registering, names);
      EXPECT_TRUE(undone && undone->failed.empty());
    };
    auto agents = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(2s);
      for (const auto& name : names) co_await beat(name);
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(undo());
      scope.spawn(agents());
      auto undone = co_await hub2_->target->roll_back(migration_, Stage::registering, names);
      EXPECT_TRUE(undone && undone->failed.empty());
    };
    co_await async::with_scope(both);
    auto deleted = co_await hub1_->source->delete_migration_objects(migration_);
    auto grants = co_await hub2_->target->delete_migration_objects(migration_, identity_);
    CO_ASSERT_TRUE(deleted && grants);
    EXPECT_THAT(differences(source_before, content_of(hub1_->server)),
                UnorderedElementsAre("~Lease c1/managed-cluster-lease", "~Lease c2/managed-cluster-lease"));
    EXPECT_THAT(differences(target_before, content_of(hub2_->server)), IsEmpty());
  });
}

}  // namespace
}  // namespace hubferry::hubagent
