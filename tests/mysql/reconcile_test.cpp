#include "failover_fixture.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ReconcileTest : public MysqlTest {};

TEST_F(ReconcileTest, ANewClusterGetsItsObjectsAndIsCounted) {
  given_cluster();
  run_for(1s);
  EXPECT_EQ(phase(), "Creating");
  for (const auto* name : {"demo-root", "demo-internal"}) EXPECT_TRUE(exists(kube::resources::secrets, name));
  for (const auto* name : {"demo", "demo-mysql-write", "demo-mysql-read"}) EXPECT_TRUE(exists(kinds::services, name));
  EXPECT_TRUE(exists(kube::resources::config_maps, "demo-config"));
  EXPECT_TRUE(exists(kinds::stateful_sets, "demo"));
  EXPECT_EQ(metrics.counter_family("mysqlcluster_phase_total", "Phases entered by MySQL clusters.", {"phase"})
                .with({"Creating"})
                .value(),
            1);
}

TEST_F(ReconcileTest, ItRunsWithOneWritableServerAndTheOthersAsReplicas) {
  given_running();
  EXPECT_EQ(condition("PrimaryHealthy"), "True HeartbeatOK");
  EXPECT_EQ(condition("ReplicasHealthy"), "True Replicating");
  EXPECT_THAT(writers(), ElementsAre("demo-0"));
  EXPECT_THAT(readers(), ElementsAre("demo-1", "demo-2"));
  EXPECT_EQ(cluster().find({"status", "replicas"})->to_number<int>(), 3);
  EXPECT_TRUE(mysql.at("demo-0").semi_sync);
  for (const auto* pod : {"demo-1", "demo-2"}) {
    EXPECT_EQ(mysql.at(pod).replica->host, mysql.at("demo-0").address);
    EXPECT_TRUE(mysql.at(pod).read_only);
  }
}

TEST_F(ReconcileTest, WithoutAChangeThereIsNoWrite) {
  given_running();
  run_for(1min);
  server.forget_requests();
  run_for(10min);
  EXPECT_THAT(writes_since_forgotten(), IsEmpty());
}

TEST_F(ReconcileTest, AChildDeletedByHandIsMadeAgain) {
  given_running();
  const std::pair<const kube::Resource*, std::string> children[] = {{&kinds::services, "demo-mysql-write"},
                                                                    {&kinds::services, "demo-mysql-read"},
                                                                    {&kinds::services, "demo"},
                                                                    {&kinds::endpoint_slices, "demo-mysql-write"},
                                                                    {&kinds::endpoint_slices, "demo-mysql-read"},
                                                                    {&kube::resources::config_maps, "demo-config"}};
  // But for what the API server gives to each object.
  const auto content = [&](const kube::Resource& kind, const std::string& name) {
    auto object = server.object(kind, {"db", name}).value_or(kube::Object{}).json();
    auto& metadata = object["metadata"].emplace_object();
    metadata["labels"] = server.object(kind, {"db", name})->json().at("metadata").at("labels");
    return json::serialize(object);
  };
  std::vector<std::string> before;
  for (const auto& [kind, name] : children) {
    before.push_back(content(*kind, name));
    EXPECT_TRUE(loop.run(server.api().remove(*kind, {"db", name})));
  }
  run_for(35s);
  for (std::size_t at = 0; at < before.size(); ++at) {
    ASSERT_TRUE(exists(*children[at].first, children[at].second)) << children[at].second;
    EXPECT_EQ(content(*children[at].first, children[at].second), before[at]);
  }
  EXPECT_THAT(writers(), ElementsAre("demo-0"));
}

// Scenario 5, for each kind of object that the operator writes.
TEST_F(ReconcileTest, AWriteThatConflictsIsRepeatedOnTheNewObjectAndNoErrorIsSeen) {
  given_running();
  stop_operator();
  patch(R"({"spec": {"type": "ClusterIP"}})", kinds::services, "demo-mysql-write");
  patch(R"({"spec": {"config": "max_connections=50"}})");
  for (const auto* kind : {"services", "configmaps", "endpointslices", "statefulsets", "mysqlclusters"})
    server.faults().on({"patch", kind}).times(1).fail(409);
  start_operator();
  run_for(10s);
  EXPECT_EQ(server.object(kinds::services, {"db", "demo-mysql-write"})->string_at({"spec", "type"}), "NodePort");
  EXPECT_THAT(
      std::string{
          server.object(kube::resources::config_maps, {"db", "demo-config"})->string_at({"data", "hubferry.cnf"})},
      HasSubstr("max_connections=50"));
  run_for(10min);
  EXPECT_EQ(phase(), "Running") << status_text();
  for (const auto& [name, one] : mysql.servers()) EXPECT_GT(one.started, async::TimePoint{1min}) << name;
  EXPECT_FALSE(log.contains("reconcile failed")) << status_text();
  EXPECT_EQ(events("ReconcileFailed"), 0U);
  EXPECT_EQ(cluster().find({"status", "message"}), nullptr);
}

TEST_F(ReconcileTest, AnObjectOfSomebodyElseIsNotTouched) {
  create(kinds::services,
         R"({"metadata": {"name": "demo-mysql-write", "namespace": "db"}, "spec": {"type": "ClusterIP"}})");
  given_cluster();
  run_for(1min);
  EXPECT_EQ(server.object(kinds::services, {"db", "demo-mysql-write"})->string_at({"spec", "type"}), "ClusterIP");
  EXPECT_THAT(std::string{cluster().string_at({"status", "message"})}, HasSubstr("does not belong to this cluster"));
}

TEST_F(ReconcileTest, TwoWritableServersAtTheStartAreBothMadeReadOnlyAndAPersonDecides) {
  stop_operator();
  given_running_servers_without_operator();
  mysql.at("demo-0").read_only = mysql.at("demo-1").read_only = false;
  start_operator();
  run_for(1min);
  EXPECT_EQ(phase(), "Failed") << status_text();
  EXPECT_THAT(mysql.writable(), IsEmpty());
  EXPECT_THAT(std::string{cluster().string_at({"status", "message"})}, HasSubstr("demo-0, demo-1"));
}

TEST_F(ReconcileTest, ServersThatReplicateFromEachOtherHaveNoPrimaryAndStayReadOnly) {
  stop_operator();
  given_running_servers_without_operator();
  const auto follow = [&](const char* pod, const char* source) {
    mysql.at(pod).replica.emplace().host = mysql.at(source).address;
    mysql.at(pod).read_only = true;
  };
  follow("demo-0", "demo-1");
  follow("demo-1", "demo-2");
  follow("demo-2", "demo-0");
  start_operator();
  run_for(1min);
  EXPECT_EQ(phase(), "Failed") << status_text();
  EXPECT_THAT(mysql.writable(), IsEmpty());
  EXPECT_THAT(std::string{cluster().string_at({"status", "message"})},
              HasSubstr("every server is the replica of another"));
}

TEST_F(ReconcileTest, FailedPassesAreCountedAndAGoodOneResetsTheCount) {
  given_running();
  server.faults().on({"get", "statefulsets"}).times(5).fail(500);
  std::vector<std::int64_t> counts{0};
  for (int i = 0; i < 1800; ++i) {
    run_for(100ms);
    const auto* value = cluster().find({"status", "retryCount"});
    const auto count = value == nullptr ? 0 : value->to_number<std::int64_t>();
    if (count != counts.back()) counts.push_back(count);
  }
  EXPECT_THAT(counts, ElementsAre(0, 1, 2, 3, 4, 5, 0)) << status_text();
  EXPECT_EQ(cluster().find({"status", "message"}), nullptr);
}

TEST_F(ReconcileTest, DeletionBeforeTheFirstPodStartedLeavesNothingButVolumesAndPassword) {
  given_cluster();
  run_for(1s);
  EXPECT_TRUE(loop.run(server.api().remove(mysql_clusters, {"db", "demo"})));
  run_for(1min);
  EXPECT_FALSE(exists(mysql_clusters, "demo"));
  EXPECT_FALSE(exists(kinds::stateful_sets, "demo"));
  EXPECT_FALSE(exists(kinds::services, "demo"));
  EXPECT_FALSE(exists(kube::resources::secrets, "demo-internal"));
  EXPECT_TRUE(exists(kube::resources::secrets, "demo-root"));
  EXPECT_TRUE(exists(kinds::persistent_volume_claims, "data-demo-0"));
}

TEST_F(ReconcileTest, AClusterThatWentDownWhileNoOperatorRanIsHandledWithoutAnEvent) {
  given_running();
  stop_operator();
  mysql.at("demo-0").runs = false;
  start_operator();
  run_for(2min);
  EXPECT_NE(primary(), "demo-0") << status_text();
  EXPECT_THAT(mysql.writable(), ElementsAre(primary()));
}

TEST_F(ReconcileTest, AnInvalidEditKeepsWhatIsInForceAndTheFailoverOn) {
  given_running();
  for (const auto* reference : {"ref://nowhere", "ref://kube-system/admin"}) {
    patch(std::string{R"({"spec": {"rootPassword": ")"} + reference + R"("}})");
    run_for(1min);
    EXPECT_EQ(phase(), "Running") << status_text();
    EXPECT_EQ(condition("SpecAccepted"), "False SpecInvalid");
    server.forget_requests();
    run_for(5min);
    EXPECT_THAT(writes_since_forgotten(), testing::IsEmpty());
  }
  EXPECT_EQ(events("SpecInvalid"), 2U) << "once for each edit";
  mysql.at("demo-0").runs = false;
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-1"));
  patch(R"({"spec": {"rootPassword": ""}})");
  run_for(1min);
  EXPECT_EQ(condition("SpecAccepted"), "True SpecValid") << status_text();
}

// As after an upgrade of the operator beside an older CRD.
TEST_F(ReconcileTest, AnInvalidVersionAndSizeKeepThoseInForceAndScalingContinues) {
  given_running();
  stop_operator();
  auto definition =
      server.object(kube::resources::custom_resource_definitions, {"", "mysqlclusters.mysql.hubferry.io"});
  ASSERT_TRUE(definition);
  auto changed = definition->json();
  auto& spec =
      changed["spec"].as_object()["versions"].as_array()[0].at("schema").at("openAPIV3Schema").at("properties");
  for (auto* field : {&spec.at("spec").at("properties").at("mysqlVersion"),
                      &spec.at("spec").at("properties").at("storage").at("properties").at("size")})
    field->as_object().erase("pattern");
  ASSERT_TRUE(loop.run(server.api().update(kube::resources::custom_resource_definitions, changed)));
  loop.run_ready();
  start_operator();
  patch(R"({"spec": {"mysqlVersion": "latest", "storage": {"size": "large"}, "replicas": 5}})");
  run_for(5min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_EQ(condition("SpecAccepted"), "False SpecInvalid");
  EXPECT_EQ(mysql.servers().size(), 5U);
  for (const auto& [name, one] : mysql.servers()) EXPECT_EQ(one.version, "10.11.6-MariaDB") << name;
}

// OpenShift refuses a group that is not of the namespace's range, and assigns one where none is named.
TEST_F(ReconcileTest, TheSecurityContextOfThePodsIsTheUsers) {
  given_running();
  const auto context = [&] {
    const auto set = server.object(kinds::stateful_sets, {"db", "demo"});
    const auto* found = set->find({"spec", "template", "spec", "securityContext"});
    return found == nullptr ? "none" : json::serialize(*found);
  };
  EXPECT_EQ(context(), R"({"fsGroup":999})") << "the group of the image's server";
  patch(R"({"spec": {"podSecurityContext": {"fsGroup": 999, "seLinuxOptions": {"level": "s0", "type": "spc_t"},
                                            "seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}}}})");
  run_for(5min);
  patch(R"({"spec": {"podSecurityContext": {"fsGroup": null, "seLinuxOptions": {"type": null},
                                            "seccompProfile": {"type": "RuntimeDefault", "localhostProfile": null}}}})");
  run_for(5min);
  EXPECT_EQ(json::parse(context()),
            json::parse(R"({"seLinuxOptions": {"level": "s0"}, "seccompProfile": {"type": "RuntimeDefault"}})"));
  patch(R"({"spec": {"podSecurityContext": {"seLinuxOptions": null, "seccompProfile": null}}})");
  run_for(5min);
  EXPECT_EQ(context(), "{}");
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_EQ(server.object(kinds::pods, {"db", "demo-1"})->find({"spec", "securityContext", "fsGroup"}), nullptr);
  server.forget_requests();
  run_for(5min);
  EXPECT_THAT(writes_since_forgotten(), testing::IsEmpty());
}

}  // namespace
}  // namespace hubferry::mysql::test
