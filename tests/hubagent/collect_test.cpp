#include "hub_test.hpp"

namespace hubferry::hubagent {
namespace {

using namespace ocm::names;

class CollectTest : public HubTest {
 protected:
  Awaitable<> put_large(std::string name, std::size_t bytes) {
    co_await put_cluster(*hub1_, name);
    json::object secret;
    secret["metadata"] = json::object{{"name", name + "-metadata-json"}, {"namespace", name}};
    secret["stringData"] = nullptr;
    secret.erase("stringData");
    secret["data"] = json::object{{"blob", std::string(bytes, 'A')}};
    co_await put(*hub1_, kube::resources::secrets, secret);
  }
  /// Clusters that the migration has just claimed; each but the last has a KlusterletAddonConfig.
  Awaitable<> claim_with_configs(ClusterNames clusters) {
    for (const auto& name : clusters) {
      co_await put_cluster(*hub1_, name);
      if (name == clusters.back()) continue;
      json::object config{{"metadata", json::object{{"name", name}, {"namespace", name}}},
                          {"spec", json::object{{"clusterName", name}}}};
      co_await put(*hub1_, ocm::klusterlet_addon_configs, std::move(config));
    }
    co_await clock_.sleep_for(1s);
    auto begun = co_await hub1_->source->initialize(migration_, clusters, kubeconfig_);
    EXPECT_TRUE(begun && begun->failed.empty());
    co_await clock_.sleep_for(1s);
    hub1_->server.forget_requests();
  }
  std::ptrdiff_t requests_for_configs(std::string verb) {
    return std::ranges::count_if(hub1_->server.requests(), [&](const auto& request) {
      return request.verb == verb && request.resource.starts_with("klusterletaddonconfigs");
    });
  }
  static std::size_t configs_in(const Bundle& bundle) {
    std::size_t count = 0;
    for (const auto& cluster : bundle.clusters)
      for (const auto& name : names_in(cluster)) count += name == "KlusterletAddonConfig " + cluster.cluster ? 1 : 0;
    return count;
  }
};

ClusterNames numbered(std::size_t count) {
  ClusterNames names;
  for (std::size_t i = 1; i <= count; ++i) names.push_back("c" + std::to_string(i));
  return names;
}

// What is some seconds old there is compared before anything is deleted; the comparison reads each.
TEST_F(CollectTest, FirstCopiesOfManyClustersShareOneListOfTheirAddonConfigs) {
  run([&]() -> Awaitable<> {
    const auto clusters = numbered(12);
    co_await claim_with_configs(clusters);
    auto copied = co_await collected(*hub1_, clusters);
    EXPECT_EQ(copied.clusters.size(), 12U);
    EXPECT_EQ(configs_in(copied), 11U);
    EXPECT_EQ(requests_for_configs("list"), 1);
    EXPECT_EQ(requests_for_configs("get"), 0);
    auto compared = co_await collected(*hub1_, clusters);
    EXPECT_EQ(configs_in(compared), 11U);
    EXPECT_EQ(requests_for_configs("list"), 1);
    EXPECT_EQ(requests_for_configs("get"), 12);
  });
}

TEST_F(CollectTest, AClusterThatSomebodyChangesAfterItsClaimIsReadAndItsAddonConfigIsNot) {
  run([&]() -> Awaitable<> {
    const auto clusters = numbered(12);
    co_await claim_with_configs(clusters);
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"metadata": {"labels": {"a": "b"}}})");
    co_await clock_.sleep_for(1s);
    auto copied = co_await collected(*hub1_, clusters);
    EXPECT_EQ(configs_in(copied), 11U);
    EXPECT_EQ(requests_for_configs("get"), 0);
    for (const auto& cluster : copied.clusters)
      for (const auto& carried : cluster.objects)
        if (cluster.cluster == "c1" && carried.object.at("kind") == "ManagedCluster")
          EXPECT_EQ(carried.object.at("metadata").at("labels").at("a"), "b");
  });
}

TEST_F(CollectTest, FewClustersOfALargeHubAreReadOneByOne) {
  run([&]() -> Awaitable<> {
    co_await claim_with_configs(numbered(9));
    auto copied = co_await collected(*hub1_, numbered(9));
    EXPECT_EQ(configs_in(copied), 8U);
    EXPECT_EQ(requests_for_configs("list"), 0);
    EXPECT_EQ(requests_for_configs("get"), 9);
  });
}

TEST_F(CollectTest, AnAddonConfigThatAListCannotDecodeIsNotTakenForAbsent) {
  run([&]() -> Awaitable<> {
    const auto clusters = numbered(12);
    co_await claim_with_configs(clusters);
    hub1_->api->unreadable = "c3";
    auto copied = co_await collected(*hub1_, clusters);
    EXPECT_EQ(configs_in(copied), 11U);
    EXPECT_EQ(requests_for_configs("get"), 12);
  });
}

TEST_F(CollectTest, ReferencedObjectsComeFirstAndOnce) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await put_machinery(*hub1_, "c1");
    // Referred to twice, and selected by its label too.
    co_await patch(*hub1_, kube::resources::secrets, {"c1", "bmc"},
                   R"({"metadata": {"labels": {"siteconfig.open-cluster-management.io/preserve": ""}}})");
    auto second = parsed(R"({"metadata": {"name": "second", "namespace": "c1"},
                             "spec": {"bmc": {"address": "a", "credentialsName": "bmc"}}})");
    co_await put(*hub1_, ocm::bare_metal_hosts, second);
    auto missing = parsed(R"({"metadata": {"name": "third", "namespace": "c1"},
                              "spec": {"bmc": {"address": "a", "credentialsName": "nowhere"}}})");
    co_await put(*hub1_, ocm::bare_metal_hosts, missing);
    auto bundle = co_await collected(*hub1_, {"c1"});
    CO_ASSERT_EQ(bundle.clusters.size(), 1U);
    EXPECT_THAT(names_in(bundle.clusters[0]),
                ElementsAre("Secret bmc", "ConfigMap extra", "Secret pull", "Secret c1-admin-password",
                            "ManagedCluster c1", "BareMetalHost host", "BareMetalHost second", "BareMetalHost third",
                            "ImageClusterInstall c1", "ClusterDeployment c1"));
    EXPECT_NE(kube::find(bundle.clusters[0].objects[1].object, {"binaryData", "b"}), nullptr);
  });
}

TEST_F(CollectTest, SecretsAndConfigMapsAreSelectedByLabelAndAnnotation) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    for (const char* name : {"waved", "kept", "plain", "c1-admin-kubeconfig", "c1-seed-reconfiguration"})
      co_await put_secret(*hub1_, "c1", name);
    co_await patch(*hub1_, kube::resources::secrets, {"c1", "waved"},
                   R"({"metadata": {"annotations": {"siteconfig.open-cluster-management.io/sync-wave": "1"}}})");
    co_await patch(*hub1_, kube::resources::secrets, {"c1", "kept"},
                   R"({"metadata": {"labels": {"siteconfig.open-cluster-management.io/preserve": ""}}})");
    for (const char* name : {"kept", "plain"}) {
      json::object map;
      map["metadata"] = json::object{{"name", name}, {"namespace", "c1"}};
      co_await put(*hub1_, kube::resources::config_maps, map);
    }
    co_await patch(*hub1_, kube::resources::config_maps, {"c1", "kept"},
                   R"({"metadata": {"labels": {"siteconfig.open-cluster-management.io/preserve": "all"}}})");
    auto bundle = co_await collected(*hub1_, {"c1"});
    CO_ASSERT_EQ(bundle.clusters.size(), 1U);
    EXPECT_THAT(names_in(bundle.clusters[0]),
                ElementsAre("Secret c1-admin-kubeconfig", "Secret c1-seed-reconfiguration", "Secret kept",
                            "Secret waved", "ConfigMap kept", "ManagedCluster c1"));
  });
}

// Without what belongs to the hub; and the same before and after a migration has claimed the cluster, since what was
// sent is compared with what is collected again later.
TEST_F(CollectTest, ObjectsAreCleanedTheSameAtAnyStage) {
  run([&]() -> Awaitable<> {
    auto rich = managed_cluster("c1");
    auto& metadata = rich["metadata"].as_object();
    metadata["annotations"] =
        json::object{{"kubectl.kubernetes.io/last-applied-configuration", "{}"}, {"mine", "kept"}};
    metadata["finalizers"] = json::array{"somebody/else"};
    rich["spec"].as_object()["managedClusterClientConfigs"] = json::array{parsed(R"({"url": "https://a"})")};
    rich["spec"].as_object()["taints"] = json::array{parsed(R"({"key": "mine", "effect": "NoSelect"})")};
    co_await put_namespace(*hub1_, "c1");
    json::object owner{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"name", "c1"}};
    owner["uid"] = object(*hub1_, kube::resources::namespaces, {{}, "c1"}).uid();
    metadata["ownerReferences"] = json::array{std::move(owner)};
    co_await put(*hub1_, ocm::managed_clusters, rich);
    co_await put_machinery(*hub1_, "c1");
    auto before = co_await collected(*hub1_, {"c1"});
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    CO_ASSERT_TRUE(begun && detached);
    // As the hub does when the cluster is unreachable.
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"},
                   R"({"spec": {"taints": [{"key": "mine", "effect": "NoSelect"},
                      {"key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect"}]}})");
    auto after = co_await collected(*hub1_, {"c1"});
    CO_ASSERT_EQ(before.clusters.size(), 1U);
    CO_ASSERT_EQ(after.clusters.size(), 1U);
    CO_ASSERT_EQ(before.clusters[0].objects.size(), after.clusters[0].objects.size());
    for (std::size_t i = 0; i < before.clusters[0].objects.size(); ++i) {
      const auto& sent = before.clusters[0].objects[i];
      EXPECT_EQ(sorted_text(sent.object), sorted_text(after.clusters[0].objects[i].object));
      for (const auto& field : sent.object.at("metadata").as_object())
        EXPECT_THAT((std::vector<std::string>{"name", "namespace", "labels", "annotations"}),
                    testing::Contains(std::string{field.key()}));
      const bool with_status = sent.object.at("kind") == "BareMetalHost" ||
                               sent.object.at("kind") == "ClusterDeployment" ||
                               sent.object.at("kind") == "ImageClusterInstall";
      EXPECT_EQ(sent.object.contains("status"), with_status);
      EXPECT_EQ(sent.with_status, with_status);
    }
    const auto& sent = before.clusters[0].objects[4].object;
    CO_ASSERT_EQ(sent.at("kind"), "ManagedCluster");
    EXPECT_EQ(sorted_text(sent),
              sorted_text(parsed(R"({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": "c1", "labels": {"vendor": "OpenShift"}, "annotations": {"mine": "kept"}},
                "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60,
                         "taints": [{"key": "mine", "effect": "NoSelect"}]}})")));
  });
}

// A host that the user paused, or an import that the user disabled, stays so on the target.
TEST_F(CollectTest, TheUsersOwnPausesAreCopied) {
  run([&]() -> Awaitable<> {
    auto held = managed_cluster("c1");
    held["metadata"].as_object()["annotations"] = json::object{{disable_auto_import_annotation, ""}};
    co_await put_namespace(*hub1_, "c1");
    co_await put(*hub1_, ocm::managed_clusters, held);
    auto host = parsed(R"({"metadata": {"name": "h", "namespace": "c1",
                           "annotations": {"baremetalhost.metal3.io/paused": ""}}, "spec": {"online": true}})");
    co_await put(*hub1_, ocm::bare_metal_hosts, host);
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    CO_ASSERT_TRUE(begun);
    auto bundle = co_await collected(*hub1_, {"c1"});
    const auto& objects = bundle.clusters.at(0).objects;
    EXPECT_NE(kube::find(objects.at(0).object, {"metadata", "annotations", disable_auto_import_annotation}), nullptr);
    EXPECT_NE(kube::find(objects.at(1).object, {"metadata", "annotations", metal3_pause_annotation}), nullptr);
  });
}

TEST_F(CollectTest, BundlesHoldWholeClustersUpToTheLimit) {
  run([&]() -> Awaitable<> {
    ClusterNames names;
    for (const auto* name : {"a", "b", "c", "d", "e"}) {
      co_await put_large(name, 350UL * 1024);
      names.emplace_back(name);
    }
    co_await put_large("giant", 900UL * 1024);
    names.emplace_back("giant");
    std::vector<std::size_t> sizes;
    std::size_t at_once = 0;
    std::size_t most = 0;
    BundleSink sink = [&](Bundle bundle) -> Awaitable<> {
      most = std::max(most, ++at_once);
      sizes.push_back(bundle.clusters.size());
      co_await clock_.sleep_for(10s);
      --at_once;
    };
    auto outcome = co_await hub1_->source->collect(migration_, names, sink);
    CO_ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->done.size(), 6U);
    EXPECT_EQ(at_once, 0U) << "collect() ends after its last sink";
    EXPECT_LE(most, 3U);
    EXPECT_THAT(sizes, UnorderedElementsAre(2U, 2U, 1U, 1U));
  });
}

TEST_F(CollectTest, AMissingClusterFailsAloneAndUnservedKindsAreSkipped) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    for (const char* name : {"baremetalhosts.metal3.io", "clusterdeployments.hive.openshift.io"})
      co_await hub1_->server.api().remove(kube::resources::custom_resource_definitions, {{}, name});
    co_await clock_.sleep_for(1s);
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    EXPECT_TRUE(begun) << begun.error();
    ClusterNames sent;
    BundleSink sink = [&](Bundle bundle) -> Awaitable<> {
      for (const auto& cluster : bundle.clusters) sent.push_back(cluster.cluster);
      co_return;
    };
    auto outcome = co_await hub1_->source->collect(migration_, {"c1", "gone"}, sink);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(sent, ElementsAre("c1"));
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("gone: ClusterNotFound"));
    auto none = co_await hub1_->source->collect(migration_, {}, sink);
    EXPECT_TRUE(none && none->done.empty());
  });
}

TEST_F(CollectTest, AnOutageInTheMiddleFailsTheOperation) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await put_cluster(*hub1_, name);
    hub1_->server.faults().on({"list", "secrets"}).always().reset_before();
    BundleSink sink = [](Bundle) -> Awaitable<> { co_return; };
    auto outcome = co_await hub1_->source->collect(migration_, {"c1", "c2"}, sink);
    CO_ASSERT_TRUE(!outcome);
    EXPECT_TRUE(outcome.error().is(ErrorKind::unreachable)) << outcome.error();
  });
}

}  // namespace
}  // namespace hubferry::hubagent
