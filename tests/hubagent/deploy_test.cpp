#include "hub_test.hpp"

namespace hubferry::hubagent {
namespace {

using namespace ocm::names;

class DeployTest : public HubTest {
 protected:
  /// What hub1 sends for clusters with all carried kinds.
  Awaitable<Bundle> full_bundle(ClusterNames names) {
    for (const auto& name : names) {
      co_await put_cluster(*hub1_, name);
      co_await put_machinery(*hub1_, name);
    }
    co_return co_await collected(*hub1_, names);
  }
  static Bundle bundle_of(std::string cluster, std::string_view text) {
    Bundle bundle;
    bundle.clusters.push_back({std::move(cluster), {}});
    bundle.clusters[0].objects.push_back({parsed(text), false});
    return bundle;
  }
};

TEST_F(DeployTest, CopiesAreLabelledAcceptedAndPaused) {
  run([&]() -> Awaitable<> {
    auto bundle = co_await full_bundle({"c1"});
    auto outcome = co_await hub2_->target->deploy(migration_, bundle);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("c1"));
    auto verified = co_await hub2_->target->verify(migration_, bundle);
    CO_ASSERT_TRUE(verified);
    EXPECT_TRUE(verified->failed.empty());
  });
  EXPECT_EQ(object(*hub2_, kube::resources::namespaces, {{}, "c1"}).label(migration_label), "uid-1");
  const auto c1 = cluster(*hub2_, "c1");
  EXPECT_EQ(c1.label(migration_label), "uid-1");
  EXPECT_EQ(c1->at("spec").at("hubAcceptsClient"), true);
  EXPECT_EQ(c1.annotation(disable_auto_import_annotation), "uid-1");
  EXPECT_EQ(c1->contains("status"), false);
  const auto host = object(*hub2_, ocm::bare_metal_hosts, {"c1", "host"});
  EXPECT_EQ(host.string_at({"status", "provisioning", "state"}), "provisioned");
  EXPECT_EQ(host.annotation(metal3_pause_annotation), "true");
  EXPECT_EQ(host.find({"metadata", "finalizers"}), nullptr);
  EXPECT_EQ(object(*hub2_, ocm::cluster_deployments, {"c1", "c1"}).string_at({"status", "powerState"}), "Running");
  EXPECT_FALSE(exists(*hub2_, kube::resources::secrets, {"c1", "unrelated"}));
}

// It is removed by what the cache shows, which may be behind a second copy: that one must not bring it back.
TEST_F(DeployTest, AClusterThatIsCopiedAgainKeepsItsImportEnabled) {
  run([&]() -> Awaitable<> {
    auto bundle = co_await full_bundle({"c1", "c2"});
    co_await hub2_->target->deploy(migration_, bundle);
    co_await patch(*hub2_, ocm::managed_clusters, {{}, "c1"},
                   R"({"metadata": {"annotations": {"import.open-cluster-management.io/disable-auto-import": null}}})");
    for (const char* name : {"c1", "c2"})
      co_await patch(*hub2_, ocm::managed_clusters, {{}, name}, R"({"metadata": {"labels": {"vendor": "other"}}})");
    auto again = co_await hub2_->target->deploy(migration_, bundle);
    CO_ASSERT_TRUE(again);
    EXPECT_THAT(again->done, UnorderedElementsAre("c1", "c2"));
  });
  for (const char* name : {"c1", "c2"}) EXPECT_EQ(cluster(*hub2_, name).label("vendor"), "OpenShift");
  EXPECT_EQ(cluster(*hub2_, "c1").annotation(disable_auto_import_annotation), "");
  EXPECT_EQ(cluster(*hub2_, "c2").annotation(disable_auto_import_annotation), "uid-1");
}

TEST_F(DeployTest, ARepeatedDeployOnlyRepairsOurObjects) {
  run([&]() -> Awaitable<> {
    auto bundle = co_await full_bundle({"c1"});
    co_await hub2_->target->deploy(migration_, bundle);
    const auto version = hub2_->server.resource_version();
    auto again = co_await hub2_->target->deploy(migration_, bundle);
    CO_ASSERT_TRUE(again);
    EXPECT_THAT(again->done, ElementsAre("c1"));
    EXPECT_EQ(hub2_->server.resource_version(), version);
    co_await patch(*hub2_, kube::resources::secrets, {"c1", "pull"}, R"({"data": {"key": "b3RoZXI="}})");
    auto broken = co_await hub2_->target->verify(migration_, bundle);
    CO_ASSERT_TRUE(broken);
    EXPECT_THAT(reasons_of(*broken), ElementsAre("c1: ResourceDiffers"));
    EXPECT_THAT(broken->failed[0].message, HasSubstr("Secret c1/pull"));
    EXPECT_THAT(broken->failed[0].message, HasSubstr("data.key"));
    co_await hub2_->target->deploy(migration_, bundle);
    auto repaired = co_await hub2_->target->verify(migration_, bundle);
    CO_ASSERT_TRUE(repaired);
    EXPECT_THAT(repaired->done, ElementsAre("c1"));
  });
}

TEST_F(DeployTest, AnExistingObjectIsNotChangedAndFailsOnlyItsCluster) {
  run([&]() -> Awaitable<> {
    auto bundle = co_await full_bundle({"c1", "c2", "c3"});
    co_await put_namespace(*hub2_, "c1");
    co_await put_secret(*hub2_, "c1", "pull");
    co_await put(*hub2_, ocm::managed_clusters, managed_cluster("c2"));
    const auto secret = object(*hub2_, kube::resources::secrets, {"c1", "pull"});
    const auto taken = cluster(*hub2_, "c2");
    auto outcome = co_await hub2_->target->deploy(migration_, bundle);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("c3"));
    EXPECT_THAT(reasons_of(*outcome), UnorderedElementsAre("c1: ClusterConflict", "c2: ClusterConflict"));
    EXPECT_EQ(object(*hub2_, kube::resources::secrets, {"c1", "pull"}).resource_version(), secret.resource_version());
    EXPECT_EQ(cluster(*hub2_, "c2").resource_version(), taken.resource_version());
    // The same holds for objects of another migration.
    auto stranger = co_await hub2_->target->deploy(other_, bundle);
    CO_ASSERT_TRUE(stranger);
    EXPECT_THAT(stranger->done, IsEmpty());
    EXPECT_THAT(stranger->failed.back().message, HasSubstr("uid-1"));
    auto undone = co_await hub2_->target->roll_back(migration_, Stage::deploying, {"c1", "c2", "c3"});
    CO_ASSERT_TRUE(undone);
    EXPECT_EQ(object(*hub2_, kube::resources::secrets, {"c1", "pull"}).resource_version(), secret.resource_version());
    EXPECT_EQ(cluster(*hub2_, "c2").resource_version(), taken.resource_version());
    EXPECT_TRUE(exists(*hub2_, kube::resources::namespaces, {{}, "c1"})) << "it was there before";
    EXPECT_FALSE(exists(*hub2_, kube::resources::namespaces, {{}, "c3"}));
  });
}

TEST_F(DeployTest, OnlyTheClustersOwnObjectsOfCarriedKindsAreAccepted) {
  const std::vector<std::string> refused{
      R"({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "c1"}})",
      R"({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "a", "namespace": "c1"}})",
      R"({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c1"}})",
      R"({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "c2"}})",
      R"({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "c1"}})",
      R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "c1"}})",
      R"({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": "c2"}})",
      R"({"apiVersion": "hive.openshift.io/v1", "kind": "ClusterDeployment", "metadata": {"name": "c2", "namespace": "c1"}})",
      R"({"apiVersion": "other.io/v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "c1"}})",
      R"({})"};
  const auto before = content_of(hub2_->server);
  run([&]() -> Awaitable<> {
    for (const auto& text : refused) {
      auto outcome = co_await hub2_->target->deploy(migration_, bundle_of("c1", text));
      CO_ASSERT_TRUE(outcome);
      EXPECT_THAT(reasons_of(*outcome), ElementsAre("c1: ResourceNotAllowed")) << text;
    }
  });
  EXPECT_THAT(differences(before, content_of(hub2_->server)), IsEmpty());
}

TEST_F(DeployTest, AnInvalidObjectFailsItsClusterWithAClearMessage) {
  run([&]() -> Awaitable<> {
    auto bundle = co_await full_bundle({"c1", "c2"});
    sim::FaultTarget invalid{.verb = "create", .resource = "clusterdeployments", .ns = "c1"};
    hub2_->server.faults().on(invalid).always().fail(422);
    sim::FaultTarget secret{.verb = "create", .resource = "secrets", .ns = "c2"};
    hub2_->server.faults().on(secret).always().fail(422);
    auto outcome = co_await hub2_->target->deploy(migration_, bundle);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(reasons_of(*outcome), UnorderedElementsAre("c1: ResourceInvalid", "c2: ResourceInvalid"));
    EXPECT_THAT(outcome->failed[0].message, HasSubstr("ClusterDeployment c1/c1"));
    EXPECT_THAT(outcome->failed[1].message, HasSubstr("Secret c2/bmc"));
  });
}

TEST_F(DeployTest, WritesWithoutAnAnswerAreReadBack) {
  run([&]() -> Awaitable<> {
    auto bundle = co_await full_bundle({"c1"});
    auto& faults = hub2_->server.faults();
    for (const char* kind : {"namespaces", "secrets", "managedclusters", "baremetalhosts"})
      faults.on({"create", kind}).times(1).reset_after();
    sim::FaultTarget status{.verb = "update", .resource = "clusterdeployments", .subresource = "status"};
    faults.on(status).times(1).reset_after();
    faults.on({"create", "configmaps"}).times(1).fail(503);
    auto outcome = co_await hub2_->target->deploy(migration_, bundle);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("c1"));
    EXPECT_TRUE(faults.script_exhausted()) << faults.unused();
    auto verified = co_await hub2_->target->verify(migration_, bundle);
    CO_ASSERT_TRUE(verified);
    EXPECT_THAT(verified->done, ElementsAre("c1"));
  });
}

TEST_F(DeployTest, MissingPermissionsFailTheOperationAndADeniedObjectItsCluster) {
  run([&]() -> Awaitable<> {
    auto bundle = co_await full_bundle({"c1"});
    hub2_->server.faults().on({"create", "managedclusters"}).always().fail(403);
    auto outcome = co_await hub2_->target->deploy(migration_, bundle);
    CO_ASSERT_TRUE(!outcome);
    EXPECT_TRUE(outcome.error().is(ErrorKind::forbidden)) << outcome.error();
    EXPECT_TRUE(concerns_hub(outcome.error()));
    kube::Error denied{ErrorKind::forbidden, 403, "Forbidden", "denied by a webhook", std::nullopt, true};
    EXPECT_FALSE(concerns_hub(denied));
  });
}

// As the API server's quota admission answers: it is no matter of our permissions, nor of other namespaces.
TEST_F(DeployTest, AQuotaOfOneNamespaceFailsThatClusterOnly) {
  run([&]() -> Awaitable<> {
    auto bundle = co_await full_bundle({"c1", "c2", "c3"});
    hub2_->api->refuse = [](const kube::Request& request) -> std::optional<kube::Error> {
      if (request.verb != kube::Verb::create || request.resource != kube::resources::secrets) return std::nullopt;
      if (kube::string_at(request.body.as_object(), {"metadata", "namespace"}) != "c2") return std::nullopt;
      return kube::error_from_status(
          403, R"({"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message":
                   "secrets \"bmc\" is forbidden: exceeded quota: few, requested: secrets=1, used: secrets=5, limited: secrets=5"})");
    };
    auto outcome = co_await hub2_->target->deploy(migration_, bundle);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, UnorderedElementsAre("c1", "c3"));
    CO_ASSERT_TRUE(outcome->failed.size() == 1);
    EXPECT_EQ(outcome->failed[0].cluster, "c2");
    EXPECT_THAT(outcome->failed[0].message, HasSubstr("exceeded quota: few"));
    // Alone it is the cluster's failure as well, not the operation's.
    auto alone = co_await collected(*hub1_, {"c2"});
    auto again = co_await hub2_->target->deploy(migration_, alone);
    CO_ASSERT_TRUE(again);
    EXPECT_EQ(again->failed.size(), 1U);
  });
}

// Fields that controllers of the target own do not count as a difference.
TEST_F(DeployTest, VerifyIgnoresWhatTheTargetItselfAdds) {
  run([&]() -> Awaitable<> {
    auto bundle = co_await full_bundle({"c1"});
    co_await hub2_->target->deploy(migration_, bundle);
    co_await patch(*hub2_, ocm::managed_clusters, {{}, "c1"},
                   R"({"metadata": {"labels": {"clusterID": "x"}, "annotations": {"a": "b"}},
                       "spec": {"taints": [{"key": "t", "effect": "NoSelect"}],
                                "managedClusterClientConfigs": [{"url": "https://a"}]}})");
    auto verified = co_await hub2_->target->verify(migration_, bundle);
    CO_ASSERT_TRUE(verified);
    EXPECT_THAT(verified->done, ElementsAre("c1"));
    co_await hub2_->server.api().remove(ocm::image_cluster_installs, {"c1", "c1"});
    auto missing = co_await hub2_->target->verify(migration_, bundle);
    CO_ASSERT_TRUE(missing);
    EXPECT_THAT(missing->failed.at(0).message, HasSubstr("ImageClusterInstall c1/c1 on hub hub2 is missing"));
  });
}

TEST_F(DeployTest, OperationsOfTwoMigrationsShareTheHubFairly) {
  run([&]() -> Awaitable<> {
    ClusterNames first;
    ClusterNames second;
    for (int i = 0; i < 200; ++i) {
      co_await put(*hub1_, ocm::managed_clusters, managed_cluster("a" + std::to_string(i)));
      first.push_back("a" + std::to_string(i));
    }
    for (int i = 0; i < 10; ++i) {
      co_await put(*hub1_, ocm::managed_clusters, managed_cluster("b" + std::to_string(i)));
      second.push_back("b" + std::to_string(i));
    }
    hub1_->server.faults().on({"update", "managedclusters"}).always().delay(sim::Latency::fixed(1s));
    async::TimePoint first_end;
    async::TimePoint second_end;
    auto operation = [&](MigrationRef migration, ClusterNames names, async::TimePoint& end) -> Awaitable<> {
      auto outcome = co_await hub1_->source->initialize(migration, names, kubeconfig_);
      EXPECT_TRUE(outcome && outcome->failed.empty());
      end = clock_.now();
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(operation(migration_, first, first_end));
      scope.spawn(operation(other_, second, second_end));
      co_return;
    };
    co_await async::with_scope(both);
    EXPECT_LT(second_end, first_end) << "ten do not wait for two hundred";
    EXPECT_EQ(metrics_
                  .gauge_family("hubferry_hub_clusters_in_flight",
                                "Clusters being processed on a hub right now, over all migrations.", {"hub"})
                  .with({"hub1"})
                  .value(),
              0);
  });
}

}  // namespace
}  // namespace hubferry::hubagent
