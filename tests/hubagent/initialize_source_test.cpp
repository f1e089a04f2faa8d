#include "hub_test.hpp"

namespace hubferry::hubagent {
namespace {

using namespace ocm::names;

class InitializeSourceTest : public HubTest {};

TEST_F(InitializeSourceTest, PreparesTheBootstrapAndKeepsExistingValues) {
  run([&]() -> Awaitable<> {
    auto annotated = managed_cluster("c1");
    annotated["metadata"].as_object()["annotations"] = json::object{{"mine", "kept"}};
    co_await put_namespace(*hub1_, "c1");
    co_await put(*hub1_, ocm::managed_clusters, annotated);
    auto outcome = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("c1"));
  });
  const auto secret = object(*hub1_, kube::resources::secrets, {engine_namespace, "bootstrap-move"});
  EXPECT_EQ(secret.string_at({"data", "kubeconfig"}), "YSBrdWJlY29uZmln");
  EXPECT_EQ(secret.label(migration_label), "uid-1");
  const auto config = object(*hub1_, ocm::klusterlet_configs, {{}, "migration-move"});
  EXPECT_EQ(config.string_at({"spec", "multipleHubsConfig", "genBootstrapKubeConfigStrategy"}), "IncludeCurrentHub");
  EXPECT_EQ(config->at("spec").at("multipleHubsConfig").at("bootstrapKubeConfigs").at("localSecretsConfig"),
            json::value(parsed(R"({"kubeConfigSecrets": [{"name": "bootstrap-move"}]})")));
  const auto c1 = cluster(*hub1_, "c1");
  EXPECT_EQ(c1.annotation("mine"), "kept");
  EXPECT_EQ(c1.annotation(migrating_annotation), "uid-1");
  EXPECT_EQ(c1.annotation(klusterlet_config_annotation), "migration-move");
}

// MCE 5.x does not write the works of a cluster with this annotation: its agent would never get the bootstrap
// kubeconfig. Once the cluster is detached, auto import would bring it back.
TEST_F(InitializeSourceTest, AutoImportIsDisabledWhenTheClusterIsDetachedAndNotBefore) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    CO_ASSERT_TRUE(begun);
    EXPECT_EQ(cluster(*hub1_, "c1").find({"metadata", "annotations", disable_auto_import_annotation}), nullptr);
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    CO_ASSERT_TRUE(detached);
    EXPECT_EQ(cluster(*hub1_, "c1").annotation(disable_auto_import_annotation), "uid-1");
    EXPECT_EQ(cluster(*hub1_, "c1")->at("spec").at("hubAcceptsClient"), false);
  });
}

// A hub with ManagedClusterAutoApproval would accept the cluster again at once.
TEST_F(InitializeSourceTest, ADetachedClusterIsKeptFromAutomaticAcceptanceUntilItIsBack) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    CO_ASSERT_TRUE(begun);
    auto before = co_await collected(*hub1_, {"c1"});
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    CO_ASSERT_TRUE(detached);
    EXPECT_EQ(cluster(*hub1_, "c1").annotation(accepted_on_annotation), "uid-1");
    auto after = co_await collected(*hub1_, {"c1"});
    EXPECT_EQ(sorted_text(after.clusters[0].objects[0].object), sorted_text(before.clusters[0].objects[0].object));
    auto back = co_await hub1_->source->roll_back(migration_, Stage::deploying, {"c1"});
    CO_ASSERT_TRUE(back);
    EXPECT_EQ(cluster(*hub1_, "c1").annotation(accepted_on_annotation), "");
  });
}

// The import controller reads one KlusterletConfig: what the user's says about proxy, registries and nodes must stay in
// force while ours is used, and the target uses the user's.
TEST_F(InitializeSourceTest, TheUsersKlusterletConfigStaysInForce) {
  run([&]() -> Awaitable<> {
    auto config = parsed(R"({"metadata": {"name": "edge"}, "spec": {"nodePlacement": {"nodeSelector": {"edge": "yes"}},
                             "hubKubeAPIServerConfig": {"proxyURL": "http://proxy:3128"}}})");
    co_await put(*hub1_, ocm::klusterlet_configs, config);
    for (const char* name : {"c1", "c2"}) co_await put_cluster(*hub1_, name);
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"},
                   R"({"metadata": {"annotations": {"agent.open-cluster-management.io/klusterlet-config": "edge"}}})");
    const auto before = content_of(hub1_->server);
    auto sent_before = co_await collected(*hub1_, {"c1"});
    for (int times = 0; times < 2; ++times) {
      auto begun = co_await hub1_->source->initialize(migration_, {"c1", "c2"}, kubeconfig_);
      CO_ASSERT_TRUE(begun);
      EXPECT_THAT(begun->failed, IsEmpty());
    }
    EXPECT_EQ(cluster(*hub1_, "c1").annotation(klusterlet_config_annotation), "migration-move-edge");
    EXPECT_EQ(cluster(*hub1_, "c2").annotation(klusterlet_config_annotation), "migration-move");
    const auto merged = object(*hub1_, ocm::klusterlet_configs, {{}, "migration-move-edge"});
    EXPECT_EQ(merged.string_at({"spec", "nodePlacement", "nodeSelector", "edge"}), "yes");
    EXPECT_EQ(merged.string_at({"spec", "hubKubeAPIServerConfig", "proxyURL"}), "http://proxy:3128");
    EXPECT_EQ(merged.string_at({"spec", "multipleHubsConfig", "genBootstrapKubeConfigStrategy"}), "IncludeCurrentHub");
    auto sent = co_await collected(*hub1_, {"c1"});
    EXPECT_EQ(Object{sent.clusters[0].objects.back().object}.annotation(klusterlet_config_annotation), "edge");
    EXPECT_EQ(sorted_text(sent.clusters[0].objects.back().object),
              sorted_text(sent_before.clusters[0].objects.back().object));
    auto back = co_await hub1_->source->roll_back(migration_, Stage::deploying, {"c1", "c2"});
    CO_ASSERT_TRUE(back);
    auto removed = co_await hub1_->source->delete_migration_objects(migration_);
    CO_ASSERT_TRUE(removed);
    EXPECT_THAT(differences(before, content_of(hub1_->server)), IsEmpty());
  });
}

TEST_F(InitializeSourceTest, ATargetWithoutTheUsersKlusterletConfigIsRefused) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await put_cluster(*hub1_, name);
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"},
                   R"({"metadata": {"annotations": {"agent.open-cluster-management.io/klusterlet-config": "edge"}}})");
    co_await clock_.sleep_for(1s);
    auto uses = co_await hub1_->source->klusterlet_configs(migration_, {"c1", "c2"});
    CO_ASSERT_TRUE(uses);
    EXPECT_EQ(*uses, (KlusterletConfigUses{{"edge", {"c1"}}}));
    auto refused = co_await hub2_->target->check_klusterlet_configs(*uses);
    CO_ASSERT_TRUE(refused);
    EXPECT_THAT(reasons_of(*refused), ElementsAre("c1: KlusterletConfigMissing"));
    EXPECT_THAT(refused->failed[0].message, HasSubstr("KlusterletConfig edge"));
    co_await put(*hub2_, ocm::klusterlet_configs, parsed(R"({"metadata": {"name": "edge"}, "spec": {}})"));
    auto allowed = co_await hub2_->target->check_klusterlet_configs(*uses);
    CO_ASSERT_TRUE(allowed);
    EXPECT_THAT(allowed->done, ElementsAre("c1"));
  });
}

// All hosts of the namespace, not only one that is named like the cluster; and a user's own pause is not ours.
TEST_F(InitializeSourceTest, PausesControllersAndRecordsWhatItPaused) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await put_machinery(*hub1_, "c1");
    auto held = parsed(R"({"metadata": {"name": "held", "namespace": "c1",
                           "annotations": {"baremetalhost.metal3.io/paused": ""}}, "spec": {"online": true}})");
    co_await put(*hub1_, ocm::bare_metal_hosts, held);
    auto outcome = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    CO_ASSERT_TRUE(outcome);
    EXPECT_TRUE(outcome->failed.empty());
  });
  EXPECT_EQ(object(*hub1_, ocm::bare_metal_hosts, {"c1", "host"}).annotation(metal3_pause_annotation), "true");
  EXPECT_EQ(object(*hub1_, ocm::data_images, {"c1", "image"}).annotation(metal3_pause_annotation), "true");
  EXPECT_EQ(object(*hub1_, ocm::cluster_deployments, {"c1", "c1"}).annotation(hive_pause_annotation), "true");
  EXPECT_EQ(object(*hub1_, ocm::cluster_deployments, {"c1", "c1"}).annotation("hubferry.io/paused-by"), "uid-1");
  EXPECT_EQ(object(*hub1_, ocm::image_cluster_installs, {"c1", "c1"}).find({"metadata", "annotations"}), nullptr);
  EXPECT_EQ(object(*hub1_, ocm::bare_metal_hosts, {"c1", "held"}).annotation("hubferry.io/paused-by"), "");
}

TEST_F(InitializeSourceTest, AnotherMigrationsObjectsAreNotChangedAndTheirOwnerIsNamed) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    const MigrationRef same_name{"elsewhere", "move", "uid-9"};
    auto first = co_await hub1_->source->initialize(same_name, {}, kubeconfig_);
    CO_ASSERT_TRUE(first);
    auto second = co_await hub1_->source->initialize(migration_, {"c1"}, obs::Secret{"another"});
    CO_ASSERT_TRUE(!second);
    EXPECT_THAT(second.error().message(), HasSubstr("uid-9"));
    EXPECT_THAT(second.error().message(), HasSubstr("bootstrap-move"));
  });
  const auto secret = object(*hub1_, kube::resources::secrets, {engine_namespace, "bootstrap-move"});
  EXPECT_EQ(secret.string_at({"data", "kubeconfig"}), "YSBrdWJlY29uZmln");
  EXPECT_EQ(cluster(*hub1_, "c1").annotation(migrating_annotation), "");
}

TEST_F(InitializeSourceTest, AClusterClaimedByAnotherOrGoneFailsAloneAndIsNotChanged) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await put_cluster(*hub1_, name);
    auto taken = co_await hub1_->source->initialize(other_, {"c2"}, kubeconfig_);
    CO_ASSERT_TRUE(taken);
    auto outcome = co_await hub1_->source->initialize(migration_, {"c1", "c2", "gone", "c1"}, kubeconfig_);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("c1"));
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("c2: ClusterConflict", "gone: ClusterNotFound"));
    EXPECT_EQ(cluster(*hub1_, "c2").annotation(klusterlet_config_annotation), "migration-other");
    auto detached = co_await hub1_->source->detach(migration_, {"c1", "c2", "gone"});
    CO_ASSERT_TRUE(detached);
    EXPECT_THAT(detached->done, ElementsAre("c1"));
    EXPECT_THAT(reasons_of(*detached), ElementsAre("c2: ClusterConflict", "gone: ClusterNotFound"));
    const auto version = hub1_->server.resource_version();
    auto again = co_await hub1_->source->detach(migration_, {"c1"});
    EXPECT_TRUE(again && again->failed.empty());
    EXPECT_EQ(hub1_->server.resource_version(), version) << "detached only once";
  });
  EXPECT_EQ(cluster(*hub1_, "c1")->at("spec").at("hubAcceptsClient"), false);
  EXPECT_EQ(cluster(*hub1_, "c2")->at("spec").at("hubAcceptsClient"), true);
}

// Once detached, the agent no longer reads from this hub.
TEST_F(InitializeSourceTest, AClusterIsNotDetachedBeforeItsAgentHasTheTargetBootstrap) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await put_cluster(*hub1_, name);
    auto begun = co_await hub1_->source->initialize(migration_, {"c1", "c2"}, kubeconfig_);
    CO_ASSERT_TRUE(begun);
    json::object work{{"metadata", json::object{{"name", "c1-klusterlet"}, {"namespace", "c1"}}},
                      {"spec", json::object{{"workload", json::object{{"manifests", json::array{}}}}}}};
    co_await put(*hub1_, ocm::manifest_works, work);
    auto detached = co_await hub1_->source->detach(migration_, {"c1", "c2"});
    CO_ASSERT_TRUE(detached);
    EXPECT_THAT(detached->done, ElementsAre("c2"));
    CO_ASSERT_EQ(detached->failed.size(), 1U);
    EXPECT_THAT(detached->failed[0].message, HasSubstr("has not applied ManifestWork c1-klusterlet"));
  });
  EXPECT_EQ(cluster(*hub1_, "c1")->at("spec").at("hubAcceptsClient"), true);
}

// Servers before MCE 2.8 have another format, and drop unknown fields.
TEST_F(InitializeSourceTest, AnOlderServerGetsTheOlderKlusterletConfigFormat) {
  run([&]() -> Awaitable<> {
    const Key name{{}, "klusterletconfigs.config.open-cluster-management.io"};
    auto definition = object(*hub1_, kube::resources::custom_resource_definitions, name).json();
    auto& schema = definition["spec"].as_object()["versions"].as_array()[0].as_object()["schema"];
    schema = parsed(R"({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
      "properties": {"bootstrapKubeConfigs": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}})");
    auto updated = co_await hub1_->server.api().update(kube::resources::custom_resource_definitions, definition);
    CO_ASSERT_TRUE(updated);
    co_await clock_.sleep_for(1s);
    for (int time = 0; time < 2; ++time) {
      auto outcome = co_await hub1_->source->initialize(migration_, {}, kubeconfig_);
      CO_ASSERT_TRUE(outcome);
    }
  });
  const auto config = object(*hub1_, ocm::klusterlet_configs, {{}, "migration-move"});
  EXPECT_EQ(sorted_text(config->at("spec")), sorted_text(parsed(R"({"bootstrapKubeConfigs": {"type": "LocalSecrets",
              "localSecretsConfig": {"kubeConfigSecrets": [{"name": "bootstrap-move"}]}}})")));
}

TEST_F(InitializeSourceTest, NoKubeconfigIsAnError) {
  run([&]() -> Awaitable<> {
    auto outcome = co_await hub1_->source->initialize(migration_, {}, obs::Secret{});
    EXPECT_FALSE(outcome);
  });
}

TEST_F(InitializeSourceTest, ARepeatedInitializeWritesNothing) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await put_machinery(*hub1_, "c1");
    auto first = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    CO_ASSERT_TRUE(first);
    const auto version = hub1_->server.resource_version();
    auto second = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    CO_ASSERT_TRUE(second);
    EXPECT_THAT(second->done, ElementsAre("c1"));
    EXPECT_EQ(hub1_->server.resource_version(), version);
  });
}

// A namespace that we created is deleted with the last migration that uses it, and not before.
TEST_F(InitializeSourceTest, AMissingEngineNamespaceIsCreatedAndDeletedAfterItsLastUser) {
  run([&]() -> Awaitable<> {
    auto removed = co_await hub1_->server.api().remove(kube::resources::namespaces, {{}, engine_namespace});
    CO_ASSERT_TRUE(removed);
    co_await clock_.sleep_for(1s);
    for (const auto& migration : {migration_, other_}) {
      auto begun = co_await hub1_->source->initialize(migration, {}, kubeconfig_);
      CO_ASSERT_TRUE(begun);
    }
    auto first = co_await hub1_->source->delete_migration_objects(migration_);
    CO_ASSERT_TRUE(first);
    co_await clock_.sleep_for(1s);
    EXPECT_TRUE(exists(*hub1_, kube::resources::secrets, {engine_namespace, "bootstrap-other"}));
    auto second = co_await hub1_->source->delete_migration_objects(other_);
    CO_ASSERT_TRUE(second);
    co_await clock_.sleep_for(1s);
    EXPECT_FALSE(exists(*hub1_, kube::resources::namespaces, {{}, engine_namespace}));
  });
}

// Somebody has installed the multicluster engine meanwhile, or uses the namespace for something else.
TEST_F(InitializeSourceTest, ANamespaceThatWeCreatedIsKeptWithWhatOthersPutIntoIt) {
  run([&]() -> Awaitable<> {
    auto removed = co_await hub1_->server.api().remove(kube::resources::namespaces, {{}, engine_namespace});
    CO_ASSERT_TRUE(removed);
    co_await clock_.sleep_for(1s);
    auto begun = co_await hub1_->source->initialize(migration_, {}, kubeconfig_);
    CO_ASSERT_TRUE(begun);
    co_await put_secret(*hub1_, engine_namespace, "of-somebody");
    auto ended = co_await hub1_->source->delete_migration_objects(migration_);
    CO_ASSERT_TRUE(ended);
    co_await clock_.sleep_for(1s);
    EXPECT_TRUE(exists(*hub1_, kube::resources::secrets, {engine_namespace, "of-somebody"}));
    EXPECT_FALSE(exists(*hub1_, kube::resources::secrets, {engine_namespace, "bootstrap-move"}));
  });
}

TEST_F(InitializeSourceTest, ANamespaceThatDoesNotEndIsAnErrorThatSaysWhatHoldsIt) {
  run([&]() -> Awaitable<> {
    co_await put_secret(*hub1_, engine_namespace, "held");
    co_await patch(*hub1_, kube::resources::secrets, {engine_namespace, "held"},
                   R"({"metadata": {"finalizers": ["example.com/hold"]}})");
    co_await hub1_->server.api().remove(kube::resources::namespaces, {{}, engine_namespace});
    json::object remaining{
        {"type", "NamespaceFinalizersRemaining"}, {"status", "True"}, {"message", "example.com/hold"}};
    co_await patch(*hub1_, kube::resources::namespaces, {{}, engine_namespace},
                   json::serialize(json::object{{"status", json::object{{"conditions", json::array{remaining}}}}}),
                   "status");
    auto begun = co_await hub1_->source->initialize(migration_, {}, kubeconfig_);
    CO_ASSERT_TRUE(!begun);
    EXPECT_THAT(begun.error().message(), HasSubstr("is being deleted; example.com/hold"));
    EXPECT_TRUE(may_recover(begun.error()));
  });
}

TEST_F(InitializeSourceTest, RequestsToABusyServerAreRetriedAndAmbiguousWritesReadBack) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    auto& faults = hub1_->server.faults();
    faults.on({"write"}).times(3).fail(503);
    faults.on({"create", "secrets"}).times(1).reset_after();
    faults.on({"patch", "managedclusters"}).times(1).reset_after();
    faults.on({"get", "managedclusters"}).times(2).fail(429, 1);
    auto outcome = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("c1"));
    EXPECT_TRUE(faults.script_exhausted()) << faults.unused();
  });
}

// One broken webhook must not block the other clusters until the phase times out.
TEST_F(InitializeSourceTest, APersistentErrorForOneClusterFailsOnlyThatCluster) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await put_cluster(*hub1_, name);
    sim::FaultTarget sick{.verb = "write", .resource = "managedclusters", .name = "c2"};
    hub1_->server.faults().on(sick).always().fail(500);
    auto outcome = co_await hub1_->source->initialize(migration_, {"c1", "c2"}, kubeconfig_);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("c1"));
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("c2: Error"));
    EXPECT_THAT(outcome->failed[0].message, HasSubstr("ManagedCluster c2 on hub hub1"));
  });
}

TEST_F(InitializeSourceTest, AClusterIsClaimedByOnePatchOfWhatTheWatchShows) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await clock_.sleep_for(1s);
    hub1_->server.forget_requests();
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    CO_ASSERT_TRUE(begun && begun->failed.empty());
  });
  std::vector<std::string> verbs;
  for (const auto& request : hub1_->server.requests())
    if (request.resource.starts_with("managedclusters") && request.verb != "watch" && request.verb != "list")
      verbs.push_back(request.verb);
  EXPECT_THAT(verbs, ElementsAre("patch"));
}

// The watch may be late: the claim of another migration must not be overwritten.
TEST_F(InitializeSourceTest, AClusterThatAnotherMigrationHasJustClaimedIsNotClaimed) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await clock_.sleep_for(1s);
    bool done = false;
    hub1_->api->on_call = [&](const kube::Request& request) -> Awaitable<> {
      if (done || request.resource != ocm::managed_clusters || request.verb != kube::Verb::patch) co_return;
      done = true;
      co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"},
                     R"({"metadata":{"annotations":{"global-hub.open-cluster-management.io/migrating":"other"}}})");
    };
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    CO_ASSERT_TRUE(begun && begun->failed.size() == 1);
    EXPECT_TRUE(done);
    EXPECT_THAT(begun->failed.front().message, testing::HasSubstr("by migration other"));
    EXPECT_EQ(cluster(*hub1_, "c1").annotation(migrating_annotation), "other");
  });
}

}  // namespace
}  // namespace hubferry::hubagent
