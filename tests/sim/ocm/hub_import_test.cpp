#include <boost/json/serialize.hpp>

#include "sim/ocm/ocm_test.hpp"
#include "sim/ocm/request_pem.hpp"

namespace hubferry::sim {
namespace {

namespace resources = kube::resources;
using testing::ElementsAre;

class Import : public ManualHubTest {
 protected:
  /// The names of the Secrets that the cluster gets, in order.
  std::vector<std::string> secrets(const std::string& cluster_name) const {
    std::vector<std::string> names;
    for (const auto& manifest : manifests(cluster_name))
      if (manifest.as_object().at("kind") == "Secret")
        names.emplace_back(manifest.at("metadata").at("name").as_string());
    return names;
  }
  json::array manifests(const std::string& cluster_name) const {
    const auto work = server_.object(ocm::manifest_works, {cluster_name, cluster_name + "-klusterlet"});
    return work ? work->find({"spec", "workload", "manifests"})->as_array() : json::array{};
  }
  json::object klusterlet(const std::string& cluster_name) const {
    for (const auto& manifest : manifests(cluster_name))
      if (manifest.as_object().at("kind") == "Klusterlet") return manifest.as_object();
    return {};
  }
  void create_secret(const std::string& name, const std::string& kubeconfig) {
    must(api_.create(resources::secrets,
                     {{"metadata", json::object{{"name", name}, {"namespace", "multicluster-engine"}}},
                      {"stringData", json::object{{"kubeconfig", kubeconfig}}}}));
    settle();
  }
  static json::object local_secrets(const std::string& name) {
    return {{"type", "LocalSecrets"},
            {"localSecretsConfig", json::object{{"kubeConfigSecrets", json::array{json::object{{"name", name}}}}}}};
  }
  void create_config(const std::string& name, json::object spec) {
    must(api_.create(ocm::klusterlet_configs, {{"metadata", json::object{{"name", name}}}, {"spec", std::move(spec)}}));
    settle();
  }
  void annotate(const std::string& cluster_name, json::value config) {
    patch_cluster(
        cluster_name,
        {{"metadata", json::object{{"annotations", json::object{{"agent.open-cluster-management.io/klusterlet-config",
                                                                 std::move(config)}}}}}});
  }
};

TEST_F(Import, AClusterGetsTheKubeconfigOfItsOwnHubFirst) {
  create_accepted("c1");
  EXPECT_THAT(secrets("c1"), ElementsAre("bootstrap-hub-kubeconfig"));
  const auto secret = manifests("c1").at(0).as_object();
  EXPECT_EQ(secret.at("metadata").at("namespace"), "open-cluster-management-agent");
  const auto text = decode_base64(secret.at("data").at("kubeconfig").as_string());
  const auto config = kube::parse_kubeconfig(text, "test", std::nullopt);
  EXPECT_EQ(config.server, url);
  const auto api = network_.connect(config);
  EXPECT_TRUE(must(api->may("create", ocm::managed_clusters, {})));
  EXPECT_EQ(klusterlet("c1").at("spec").at("clusterName"), "c1");
  EXPECT_FALSE(klusterlet("c1").at("spec").at("registrationConfiguration").as_object().contains("featureGates"));
}

TEST_F(Import, AClusterThatIsNotAcceptedGetsNoKubeconfigs) {
  create_cluster("c1");
  EXPECT_EQ(server_.count(ocm::manifest_works), 0U);
}

// A migration writes the Secret and the configuration, then the annotation; each order must work.
TEST_F(Import, AKlusterletConfigAddsItsKubeconfigsInBothShapes) {
  create_accepted("c1");
  create_accepted("c2");
  create_secret("bootstrap-hub2", "two");
  create_config("migration-a", {{"bootstrapKubeConfigs", local_secrets("bootstrap-hub2")}});
  create_config("migration-b",
                {{"multipleHubsConfig", json::object{{"genBootstrapKubeConfigStrategy", "IncludeCurrentHub"},
                                                     {"bootstrapKubeConfigs", local_secrets("bootstrap-hub2")}}}});
  annotate("c1", "migration-a");
  annotate("c2", "migration-b");
  for (const char* name : {"c1", "c2"}) {
    EXPECT_THAT(secrets(name), ElementsAre("bootstrap-hub2", "bootstrap-hub-kubeconfig-current-hub")) << name;
    EXPECT_EQ(decode_base64(manifests(name).at(0).at("data").at("kubeconfig").as_string()), "two");
    const auto spec = klusterlet(name).at("spec").at("registrationConfiguration").as_object();
    EXPECT_EQ(boost::json::serialize(spec.at("featureGates")), R"([{"feature":"MultipleHubs","mode":"Enable"}])");
    EXPECT_EQ(boost::json::serialize(spec.at("bootstrapKubeConfigs").at("localSecretsConfig").at("kubeConfigSecrets")),
              R"([{"name":"bootstrap-hub2"},{"name":"bootstrap-hub-kubeconfig-current-hub"}])");
  }
}

TEST_F(Import, ChangesOfAnnotationConfigAndSecretReachTheCluster) {
  create_accepted("c1");
  annotate("c1", "later");
  EXPECT_THAT(secrets("c1"), ElementsAre("bootstrap-hub-kubeconfig"));
  create_config("later", {{"bootstrapKubeConfigs", local_secrets("bootstrap-hub2")}});
  EXPECT_THAT(secrets("c1"), ElementsAre("bootstrap-hub-kubeconfig")) << "the Secret is missing";
  create_secret("bootstrap-hub2", "two");
  EXPECT_THAT(secrets("c1"), ElementsAre("bootstrap-hub2", "bootstrap-hub-kubeconfig-current-hub"));
  json::object patch{{"data", json::object{{"kubeconfig", encode_base64("three")}}}};
  must(api_.merge_patch(resources::secrets, {"multicluster-engine", "bootstrap-hub2"}, patch));
  settle();
  EXPECT_EQ(decode_base64(manifests("c1").at(0).at("data").at("kubeconfig").as_string()), "three");
  annotate("c1", nullptr);
  EXPECT_THAT(secrets("c1"), ElementsAre("bootstrap-hub-kubeconfig"));
  EXPECT_FALSE(klusterlet("c1").at("spec").at("registrationConfiguration").as_object().contains("featureGates"));
}

json::object disabled(bool is_disabled) {
  json::object annotations{{ocm::names::disable_auto_import_annotation, is_disabled ? json::value("") : json::value()}};
  return {{"metadata", json::object{{"annotations", std::move(annotations)}}}};
}

// Recorded: switch-by-klusterletconfig-disable-auto-import.mce-2.17.
TEST_F(Import, DisableAutoImportDoesNotKeepTheWorkFromBeingWritten) {
  create_accepted("c1");
  create_secret("bootstrap-hub2", "two");
  create_config("later", {{"bootstrapKubeConfigs", local_secrets("bootstrap-hub2")}});
  patch_cluster("c1", disabled(true));
  annotate("c1", "later");
  EXPECT_THAT(secrets("c1"), ElementsAre("bootstrap-hub2", "bootstrap-hub-kubeconfig-current-hub"));
}

class ImportOf5x : public Import {
 protected:
  void SetUp() override {
    hub_options_.import_controller = ImportController::mce_5_x;
    Import::SetUp();
  }
  std::size_t read_only() const {
    const auto work = server_.object(ocm::manifest_works, {"c1", "c1-klusterlet"});
    const auto* configs = work ? work->find({"spec", "manifestConfigs"}) : nullptr;
    return configs == nullptr ? 0 : configs->as_array().size();
  }
};

// Recorded: switch-by-klusterletconfig-disable-auto-import.mce-5.x.
TEST_F(ImportOf5x, WithDisableAutoImportTheWorkIsReadOnlyAndItsContentStays) {
  create_accepted("c1");
  create_secret("bootstrap-hub2", "two");
  create_config("later", {{"bootstrapKubeConfigs", local_secrets("bootstrap-hub2")}});
  EXPECT_EQ(read_only(), 0U);
  patch_cluster("c1", disabled(true));
  annotate("c1", "later");
  loop_.run_for(1min);
  EXPECT_THAT(secrets("c1"), ElementsAre("bootstrap-hub-kubeconfig"));
  EXPECT_EQ(read_only(), 2U);
  patch_cluster("c1", disabled(false));
  EXPECT_THAT(secrets("c1"), ElementsAre("bootstrap-hub2", "bootstrap-hub-kubeconfig-current-hub"));
  EXPECT_EQ(read_only(), 0U);
}

// Recorded: switch-target-disable-auto-import.mce-5.x.
TEST_F(ImportOf5x, AWorkCreatedWithDisableAutoImportIsReadOnlyFromTheStart) {
  create_cluster("c1", {{"hubAcceptsClient", true}},
                 {{"annotations", json::object{{ocm::names::disable_auto_import_annotation, ""}}}});
  EXPECT_THAT(secrets("c1"), ElementsAre("bootstrap-hub-kubeconfig"));
  EXPECT_EQ(read_only(), 2U);
}

TEST_F(Import, ADeletedWorkIsCreatedAgainAndStatusStays) {
  create_accepted("c1");
  const Key key{"c1", "c1-klusterlet"};
  const json::array applied{json::object{{"type", "Applied"}, {"status", "True"}}};
  must(api_.merge_patch(ocm::manifest_works, key, {{"status", json::object{{"conditions", applied}}}}, "status"));
  annotate("c1", "none");
  EXPECT_TRUE(kube::is_condition_true(*server_.object(ocm::manifest_works, key), "Applied"));
  must(api_.remove(ocm::manifest_works, key));
  settle();
  EXPECT_TRUE(exists(ocm::manifest_works, key));
}

class Placements : public ManualHubTest {
 protected:
  void create_placement(const std::string& name, json::object spec) {
    must(api_.create(ocm::placements, {{"metadata", json::object{{"name", name}, {"namespace", "default"}}},
                                       {"spec", std::move(spec)}}));
    settle();
  }
  static json::object by_label(const std::string& label, const std::string& value) {
    const json::object selector{{"labelSelector", json::object{{"matchLabels", json::object{{label, value}}}}}};
    return {{"predicates", json::array{json::object{{"requiredClusterSelector", selector}}}}};
  }
  std::vector<std::string> chosen(const std::string& placement) const {
    std::vector<std::string> names;
    for (const auto& decision : server_.objects(ocm::placement_decisions, "default"))
      if (decision.label("cluster.open-cluster-management.io/placement") == placement)
        if (const auto* list = decision.find({"status", "decisions"}))
          for (const auto& one : list->as_array()) names.emplace_back(one.at("clusterName").as_string());
    return names;
  }
  void label(const std::string& cluster_name, json::value value) {
    patch_cluster(cluster_name, {{"metadata", json::object{{"labels", json::object{{"env", std::move(value)}}}}}});
  }
};

TEST_F(Placements, DecisionsFollowTheLabelsOfClusters) {
  create_cluster("a", {}, {{"labels", json::object{{"env", "test"}}}});
  create_cluster("b");
  create_placement("tests", by_label("env", "test"));
  EXPECT_THAT(chosen("tests"), ElementsAre("a"));
  label("b", "test");
  EXPECT_THAT(chosen("tests"), ElementsAre("a", "b"));
  label("a", nullptr);
  EXPECT_THAT(chosen("tests"), ElementsAre("b"));
  must(api_.remove(ocm::managed_clusters, {"", "b"}));
  settle();
  EXPECT_THAT(chosen("tests"), testing::IsEmpty());
  EXPECT_FALSE(kube::is_condition_true(*server_.object(ocm::placements, {"default", "tests"}), "PlacementSatisfied"));
}

TEST_F(Placements, ADecisionHasAtMostAHundredClusters) {
  for (int i = 0; i < 205; ++i)
    must(api_.create(ocm::managed_clusters, {{"metadata", json::object{{"name", "c" + std::to_string(1000 + i)}}}}));
  create_placement("all", {});
  EXPECT_EQ(chosen("all").size(), 205U);
  EXPECT_EQ(server_.count(ocm::placement_decisions), 3U);
  must(api_.merge_patch(ocm::placements, {"default", "all"}, {{"spec", json::object{{"numberOfClusters", 7}}}}));
  settle();
  EXPECT_EQ(chosen("all").size(), 7U);
  EXPECT_EQ(server_.count(ocm::placement_decisions), 1U);
  EXPECT_EQ(
      server_.object(ocm::placements, {"default", "all"})->find({"status", "numberOfSelectedClusters"})->as_int64(), 7);
  must(api_.remove(ocm::placements, {"default", "all"}));
  settle();
  EXPECT_EQ(server_.count(ocm::placement_decisions), 0U) << "they are deleted with their owner";
}

TEST_F(Placements, OfSeveralPredicatesOneMustHold) {
  create_cluster("a", {}, {{"labels", json::object{{"env", "test"}}}});
  create_cluster("b", {}, {{"labels", json::object{{"env", "prod"}}}});
  create_cluster("c", {}, {{"labels", json::object{{"env", "other"}}}});
  auto spec = by_label("env", "test");
  spec["predicates"].as_array().push_back(by_label("env", "prod").at("predicates").as_array().at(0));
  create_placement("two", spec);
  EXPECT_THAT(chosen("two"), ElementsAre("a", "b"));
}

TEST_F(Placements, AnInvalidSelectorIsReported) {
  json::object expression{{"key", "env"}, {"operator", "Nonsense"}};
  json::object selector{{"labelSelector", json::object{{"matchExpressions", json::array{expression}}}}};
  create_placement("bad", {{"predicates", json::array{json::object{{"requiredClusterSelector", selector}}}}});
  const auto placement = server_.object(ocm::placements, {"default", "bad"});
  const auto* found = kube::find_condition(*placement, "PlacementSatisfied");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(kube::string_at(*found, {"reason"}), "PlacementMisconfigured");
}

}  // namespace
}  // namespace hubferry::sim
