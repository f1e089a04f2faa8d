#include "hub_test.hpp"

namespace hubferry::hubagent {
namespace {

using namespace ocm::names;

class CleanTest : public HubTest {
 protected:
  Awaitable<> put_addon(std::string ns, bool leaving) {
    json::object addon;
    addon["metadata"] = json::object{{"name", "observability-addon"},
                                     {"namespace", ns},
                                     {"finalizers", json::array{"observability.open-cluster-management.io/cleanup"}}};
    co_await put(*hub1_, ocm::observability_addons, addon);
    if (leaving) co_await hub1_->server.api().remove(ocm::observability_addons, {ns, "observability-addon"});
  }
};

TEST_F(CleanTest, TheSourceDeletesAClusterWithoutDeprovisioningAnything) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) {
      co_await put_cluster(*hub1_, name);
      co_await put_machinery(*hub1_, name);
      co_await put_addon(name, name == std::string_view{"c1"});
    }
    co_await patch(*hub1_, kube::resources::secrets, {"c1", "bmc"},
                   R"({"metadata": {"finalizers": ["metal3.io/x", "vault.example.com/sync"]}})");
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"},
                   R"({"metadata": {"finalizers": ["cluster.open-cluster-management.io/api-resource-cleanup"]}})");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    CO_ASSERT_TRUE(begun && detached);
    const auto untouched = content_of(hub1_->server);
    std::optional<async::TimePoint> ended;
    ClusterNames deleted;
    auto clean = [&]() -> Awaitable<> {
      auto outcome = co_await hub1_->source->clean(migration_, {"c1"}, confirmed(),
                                                   [&](const std::string& name) { deleted.push_back(name); });
      EXPECT_TRUE(outcome && outcome->failed.empty());
      ended = clock_.now();
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(clean());
      co_await clock_.sleep_for(30s);
      EXPECT_TRUE(cluster(*hub1_, "c1").is_being_deleted());
      EXPECT_FALSE(ended) << "it is not gone yet";
      EXPECT_THAT(deleted, IsEmpty());
      co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"metadata": {"finalizers": null}})");
      co_await clock_.sleep_for(1min);
      EXPECT_FALSE(ended) << "its Secrets are still in the namespace";
      EXPECT_THAT(deleted, ElementsAre("c1"));
      co_await patch(*hub1_, ocm::bare_metal_hosts, {"c1", "host"}, R"({"metadata": {"annotations": {"a": "b"}}})");
      EXPECT_THAT(differences(untouched, content_of(hub1_->server)),
                  UnorderedElementsAre("-ManagedCluster c1", "-ObservabilityAddon c1/observability-addon",
                                       "-ClusterDeployment c1/c1", "~BareMetalHost c1/host", "~Secret c1/bmc"));
      EXPECT_EQ(sorted_text(object(*hub1_, ocm::bare_metal_hosts, {"c1", "host"})->at("metadata").at("finalizers")),
                "[\"keep.me/this\",]");
      EXPECT_EQ(sorted_text(object(*hub1_, kube::resources::secrets, {"c1", "bmc"})->at("metadata").at("finalizers")),
                "[\"vault.example.com/sync\",]");
      co_await patch(*hub1_, ocm::bare_metal_hosts, {"c1", "host"}, R"({"metadata": {"finalizers": null}})");
      co_await patch(*hub1_, kube::resources::secrets, {"c1", "bmc"}, R"({"metadata": {"finalizers": null}})");
      co_await hub1_->server.api().remove(kube::resources::namespaces, {{}, "c1"});
    };
    co_await async::with_scope(both);
    EXPECT_TRUE(ended.has_value());
    auto again = co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    CO_ASSERT_TRUE(again);
    EXPECT_THAT(again->done, ElementsAre("c1"));
  });
}

// Hive deprovisions a cluster whose ClusterDeployment is deleted, unless it is to be preserved. At no moment is there
// one that is being deleted and would be deprovisioned.
TEST_F(CleanTest, ADeploymentIsPreservedAndPausedBeforeItIsDeleted) {
  std::vector<std::string> deprovisioned;
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await put_machinery(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    CO_ASSERT_TRUE(begun && detached);
    auto hive = [&](const Key& key, const auto&, const auto& now) {
      if (now == nullptr || !now->is_being_deleted()) return;
      const auto* preserved = now->find({"spec", "preserveOnDelete"});
      if (preserved == nullptr || *preserved != true || now->annotation(hive_pause_annotation) != "true")
        deprovisioned.push_back(key.name);
    };
    kube::Cache<Object> deployments{hub1_->server.api(), ocm::cluster_deployments, {}, kube::object_decoder(), env_};
    auto seen = deployments.subscribe(hive);
    std::vector<std::string> versions;
    auto watched = deployments.subscribe([&](const Key&, const auto&, const auto& now) {
      versions.push_back(now == nullptr ? "gone" : sorted_text(now->json().at("spec")));
    });
    auto clean = [&]() -> Awaitable<> { co_await hub1_->source->clean(migration_, {"c1"}, confirmed()); };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(deployments.run());
      co_await deployments.wait_synced();
      scope.spawn(clean());
      co_await clock_.sleep_for(10s);
      scope.stop();
    };
    co_await async::with_scope(both);
    EXPECT_EQ(versions.back(), "gone");
    CO_ASSERT_TRUE(versions.size() > 1);
    EXPECT_THAT(versions[versions.size() - 2], HasSubstr("preserveOnDelete:true"));
  });
  EXPECT_THAT(deprovisioned, IsEmpty());
}

// It describes another cluster, and nothing of it was copied.
TEST_F(CleanTest, AClusterWithADeploymentThatWasNotCopiedIsNotDeleted) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await put_machinery(*hub1_, "c1");
    co_await put(*hub1_, ocm::cluster_deployments,
                 {{"metadata", json::object{{"name", "other"}, {"namespace", "c1"}}}});
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    CO_ASSERT_TRUE(begun && detached);
    auto cleaned = co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    CO_ASSERT_TRUE(cleaned);
    EXPECT_THAT(reasons_of(*cleaned), ElementsAre("c1: ClusterConflict"));
    EXPECT_THAT(cleaned->failed[0].message, HasSubstr("c1/other"));
  });
  EXPECT_TRUE(hub1_->server.object(ocm::cluster_deployments, {"c1", "other"}));
  EXPECT_TRUE(hub1_->server.object(ocm::cluster_deployments, {"c1", "c1"}));
}

// The copy on the target keeps the user's value: after a crash the source's deployment is compared and sent again.
TEST_F(CleanTest, APreservedDeploymentIsSentAsTheUserWroteIt) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await put_machinery(*hub1_, "c1");
    auto sent = co_await collected(*hub1_, {"c1"});
    co_await patch(*hub1_, ocm::cluster_deployments, {"c1", "c1"},
                   R"({"spec": {"preserveOnDelete": true},
                       "metadata": {"annotations": {"hubferry.io/preserve-on-delete-before": "absent"}}})");
    auto again = co_await collected(*hub1_, {"c1"});
    CO_ASSERT_EQ(names_in(sent.clusters[0]), names_in(again.clusters[0]));
    for (std::size_t i = 0; i < sent.clusters[0].objects.size(); ++i)
      EXPECT_EQ(sorted_text(sent.clusters[0].objects[i].object), sorted_text(again.clusters[0].objects[i].object));
  });
}

// A cluster is not deleted without proof that it is ours.
TEST_F(CleanTest, AClusterThatIsNotClaimedIsNotDeleted) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await put_cluster(*hub1_, name);
    auto theirs = co_await hub1_->source->initialize(other_, {"c2"}, kubeconfig_);
    CO_ASSERT_TRUE(theirs);
    const auto before = content_of(hub1_->server);
    auto outcome = co_await hub1_->source->clean(migration_, {"c1", "c2"}, confirmed());
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("c1: ClusterConflict", "c2: ClusterConflict"));
    EXPECT_THAT(differences(before, content_of(hub1_->server)), IsEmpty());
  });
}

/// A cluster that was detached, and is to be deleted here.
class DeleteTest : public CleanTest {
 protected:
  Awaitable<> detach(std::string name) {
    co_await put_cluster(*hub1_, name);
    co_await put_secret(*hub1_, name, name + "-admin-password");
    auto begun = co_await hub1_->source->initialize(migration_, {name}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {name});
    EXPECT_TRUE(begun && detached);
  }
};

// The proof comes before anything is changed, and is never older than the decision.
TEST_F(DeleteTest, NothingIsChangedWithoutProofThatTheTargetHasTheCluster) {
  run([&]() -> Awaitable<> {
    co_await detach("c1");
    const auto before = content_of(hub1_->server);
    auto refuse = [](std::string) -> Awaitable<Result<>> { co_return Error{FailureReason::unknown, "not proven"}; };
    auto outcome = co_await hub1_->source->clean(migration_, {"c1"}, refuse);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("c1: Unknown"));
    EXPECT_THAT(differences(before, content_of(hub1_->server)), IsEmpty());
  });
}

TEST_F(DeleteTest, AClusterThatTheSourceAcceptsAgainIsNotDeleted) {
  run([&]() -> Awaitable<> {
    co_await detach("c1");
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"spec": {"hubAcceptsClient": true}})");
    auto outcome = co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("c1: ClusterConflict"));
    EXPECT_TRUE(exists(*hub1_, ocm::managed_clusters, {{}, "c1"}));
  });
}

// Whatever annotations it had before: by those that it lacked then, one that was never detached is told from it.
TEST_F(DeleteTest, AClusterWithAnnotationsOfItsOwnThatTheSourceAcceptsAgainIsNotDeleted) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    json::object annotations{{accepted_on_annotation, "2029-01-01"}, {disable_auto_import_annotation, ""}};
    json::object body{{"metadata", json::object{{"annotations", std::move(annotations)}}}};
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, json::serialize(body));
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    CO_ASSERT_TRUE(begun && detached);
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"spec": {"hubAcceptsClient": true}})");
    auto outcome = co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("c1: ClusterConflict"));
  });
}

TEST_F(DeleteTest, AClusterThatWasNeverDetachedIsNotDeletedAndThatIsSaidOnceItIsProven) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    CO_ASSERT_TRUE(begun && begun->failed.empty());
    const auto before = content_of(hub1_->server);
    auto refuse = [](std::string) -> Awaitable<Result<>> { co_return Error{FailureReason::unknown, "not proven"}; };
    auto refused = co_await hub1_->source->clean(migration_, {"c1"}, refuse);
    auto proven = co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    CO_ASSERT_TRUE(refused && proven);
    EXPECT_THAT(reasons_of(*refused), ElementsAre("c1: Unknown"));
    EXPECT_THAT(reasons_of(*proven), ElementsAre("c1: ClusterAttached"));
    EXPECT_THAT(differences(before, content_of(hub1_->server)), IsEmpty());
  });
}

// Where the deletion cannot be completed, a rollback must know that the ClusterDeployment is on the target only.
TEST_F(DeleteTest, AClusterWhoseClusterDeploymentIsDeletedIsNotReturnable) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await put_cluster(*hub1_, name);
    co_await put_machinery(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1", "c2"}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {"c1", "c2"});
    CO_ASSERT_TRUE(begun && detached);
    auto before = co_await hub1_->source->returnable(migration_, {"c1", "c2"});
    hub1_->server.faults().on({.verb = "delete", .resource = "managedclusters", .name = "c1"}).always().fail(422);
    hub1_->server.forget_requests();
    auto outcome = co_await hub1_->source->clean(migration_, {"c1", "c2"}, confirmed());
    CO_ASSERT_TRUE(before && outcome);
    EXPECT_THAT(before->failed, IsEmpty());
    EXPECT_THAT(outcome->done, ElementsAre("c2"));
    EXPECT_FALSE(exists(*hub1_, ocm::cluster_deployments, {"c1", "c1"}));
    auto after = co_await hub1_->source->returnable(migration_, {"c1"});
    CO_ASSERT_TRUE(after);
    EXPECT_THAT(reasons_of(*after), ElementsAre("c1: DeletionBegun"));
    for (const auto& request : hub1_->server.requests())
      EXPECT_FALSE(request.verb == "update" && request.key.name == "c2") << "nothing to say of it";
  });
}

// Somebody accepts the cluster between our last look and our deletion: the server refuses the deletion.
TEST_F(DeleteTest, TheDeletionIsConditionalOnWhatWasSeen) {
  run([&]() -> Awaitable<> {
    co_await detach("c1");
    std::optional<kube::Request> sent;
    hub1_->api->on_call = [&](const kube::Request& request) -> Awaitable<> {
      if (request.verb != kube::Verb::remove || request.resource != ocm::managed_clusters || sent) co_return;
      sent = request;
      co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"spec": {"hubAcceptsClient": true}})");
    };
    auto outcome = co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    CO_ASSERT_TRUE(outcome);
    CO_ASSERT_TRUE(sent.has_value());
    EXPECT_FALSE(sent->precondition_uid.empty());
    EXPECT_FALSE(sent->precondition_resource_version.empty());
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("c1: ClusterConflict"));
    EXPECT_TRUE(exists(*hub1_, ocm::managed_clusters, {{}, "c1"}));
  });
}

// A hub that throttles says for how long; each attempt has a proof of its own.
TEST_F(DeleteTest, ADeletionIsRepeatedWhenTheHubAsksForIt) {
  run([&]() -> Awaitable<> {
    co_await detach("c1");
    co_await hub1_->server.api().remove(kube::resources::secrets, {"c1", "c1-admin-password"});
    hub1_->server.faults().on({"delete", "managedclusters"}).times(3).fail(429, 4);
    int proofs = 0;
    auto count = [&](std::string) -> Awaitable<Result<>> {
      ++proofs;
      co_return Result<>{};
    };
    const auto start = clock_.now();
    auto outcome = co_await hub1_->source->clean(migration_, {"c1"}, count);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("c1"));
    EXPECT_GE(clock_.now() - start, 12s);
    EXPECT_EQ(proofs, 4);
  });
}

TEST_F(DeleteTest, ClusterDeploymentsAreListedOnce) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await put_machinery(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    EXPECT_TRUE(begun && detached);
    hub1_->server.forget_requests();
    (void)co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    // The namespace is not deleted here: what is left in it is looked for once more at the end.
    std::size_t before_deletion = 0;
    for (const auto& request : hub1_->server.requests()) {
      if (request.verb == "delete" && request.resource.starts_with("managedclusters")) break;
      before_deletion += request.verb == "list" && request.resource.starts_with("clusterdeployments") ? 1 : 0;
    }
    EXPECT_EQ(before_deletion, 1U);
    EXPECT_FALSE(exists(*hub1_, ocm::cluster_deployments, {"c1", "c1"}));
  });
}

// One stuck deletion must not hide what became of the others.
TEST_F(DeleteTest, ADeletionThatFinalizersHoldFailsThatClusterOnly) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await detach(name);
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"},
                   R"({"metadata": {"finalizers": ["stuck.example.com/x"]}})");
    auto space = [&]() -> Awaitable<> {
      while (exists(*hub1_, ocm::managed_clusters, {{}, "c2"})) co_await clock_.sleep_for(1s);
      co_await hub1_->server.api().remove(kube::resources::namespaces, {{}, "c2"});
    };
    std::optional<Outcome> result;
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(space());
      auto outcome = co_await hub1_->source->clean(migration_, {"c1", "c2"}, confirmed());
      CO_ASSERT_TRUE(outcome);
      result = *outcome;
      scope.stop();
    };
    co_await async::with_scope(both);
    CO_ASSERT_TRUE(result.has_value());
    EXPECT_THAT(result->done, ElementsAre("c2"));
    CO_ASSERT_TRUE(result->failed.size() == 1);
    EXPECT_THAT(result->failed[0].message, HasSubstr("held by the finalizers stuck.example.com/x"));
  });
}

TEST_F(CleanTest, OnlyTheMigrationsOwnObjectsAreDeleted) {
  const auto before = content_of(hub1_->server);
  run([&]() -> Awaitable<> {
    auto begun = co_await hub1_->source->initialize(migration_, {}, kubeconfig_);
    CO_ASSERT_TRUE(begun);
    EXPECT_THAT(differences(before, content_of(hub1_->server)),
                UnorderedElementsAre("+KlusterletConfig delivered-move", "+KlusterletConfig migration-move",
                                     "+Secret multicluster-engine/bootstrap-move"));
    auto others = co_await hub1_->source->delete_migration_objects(other_);
    EXPECT_TRUE(others);
    EXPECT_TRUE(exists(*hub1_, ocm::klusterlet_configs, {{}, "migration-move"}));
    auto removed = co_await hub1_->source->delete_migration_objects(migration_);
    EXPECT_TRUE(removed);
    auto again = co_await hub1_->source->delete_migration_objects(migration_);
    EXPECT_TRUE(again);
  });
  EXPECT_THAT(differences(before, content_of(hub1_->server)), IsEmpty());
}

TEST_F(CleanTest, TheTargetRemovesOurAnnotationsAndKeepsTheUsersOwn) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) {
      co_await put_cluster(*hub1_, name);
      co_await put_machinery(*hub1_, name);
    }
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c2"},
                   R"({"metadata": {"annotations": {"import.open-cluster-management.io/disable-auto-import": ""}}})");
    co_await patch(*hub1_, ocm::bare_metal_hosts, {"c2", "host"},
                   R"({"metadata": {"annotations": {"baremetalhost.metal3.io/paused": ""}}})");
    co_await patch(*hub1_, ocm::image_cluster_installs, {"c2", "c2"},
                   R"({"metadata": {"labels": {"velero.io/restore-name": "mine"}}})");
    auto bundle = co_await collected(*hub1_, {"c1", "c2"});
    co_await hub2_->target->deploy(migration_, bundle);
    EXPECT_EQ(object(*hub2_, ocm::image_cluster_installs, {"c1", "c1"}).label("velero.io/restore-name"), "globalhub");
    auto outcome = co_await hub2_->target->clean(migration_, {"c1", "c2", "gone"});
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("c1", "c2"));
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("gone: ClusterNotFound"));
    EXPECT_EQ(cluster(*hub2_, "c1").find({"metadata", "annotations", disable_auto_import_annotation}), nullptr);
    EXPECT_NE(cluster(*hub2_, "c2").find({"metadata", "annotations", disable_auto_import_annotation}), nullptr);
    EXPECT_EQ(object(*hub2_, ocm::bare_metal_hosts, {"c1", "host"}).find({"metadata", "annotations"}), nullptr);
    EXPECT_NE(object(*hub2_, ocm::bare_metal_hosts, {"c2", "host"})
                  .find({"metadata", "annotations", metal3_pause_annotation}),
              nullptr);
    EXPECT_EQ(object(*hub2_, ocm::image_cluster_installs, {"c1", "c1"}).label("velero.io/restore-name"), "");
    EXPECT_EQ(object(*hub2_, ocm::image_cluster_installs, {"c2", "c2"}).label("velero.io/restore-name"), "mine");
    auto verified = co_await hub2_->target->verify(migration_, bundle);
    CO_ASSERT_TRUE(verified);
    EXPECT_THAT(verified->done, ElementsAre("c1", "c2"));
    const auto version = hub2_->server.resource_version();
    auto again = co_await hub2_->target->clean(migration_, {"c1", "c2"});
    EXPECT_TRUE(again && again->failed.empty());
    EXPECT_EQ(hub2_->server.resource_version(), version);
  });
}

}  // namespace
}  // namespace hubferry::hubagent
