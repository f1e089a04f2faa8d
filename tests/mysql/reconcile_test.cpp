#include "hubferry/kube/base64.hpp"
#include "mysql_test.hpp"

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
  const auto before = server.object(kinds::services, {"db", "demo-mysql-write"})->find({"spec"})->as_object();
  for (const auto* name : {"demo-mysql-write", "demo-mysql-read", "demo"})
    EXPECT_TRUE(loop.run(server.api().remove(kinds::services, {"db", name})));
  EXPECT_TRUE(loop.run(server.api().remove(kinds::endpoint_slices, {"db", "demo-mysql-write"})));
  run_for(35s);
  EXPECT_EQ(server.object(kinds::services, {"db", "demo-mysql-write"})->find({"spec"})->as_object(), before);
  EXPECT_TRUE(exists(kinds::services, "demo"));
  EXPECT_THAT(writers(), ElementsAre("demo-0"));
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
  run_for(3min);
  EXPECT_TRUE(log.contains("retries=5")) << status_text();
  EXPECT_FALSE(log.contains("retries=6"));
  EXPECT_EQ(cluster().find({"status", "retryCount"}), nullptr);
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

// Scale.

TEST_F(ReconcileTest, ScalingUpAddsReplicas) {
  given_running(R"({"replicas": 1})");
  patch(R"({"spec": {"replicas": 3}})");
  run_for(3min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_THAT(readers(), ElementsAre("demo-1", "demo-2"));
  EXPECT_TRUE(mysql.at("demo-0").semi_sync) << "now there are replicas to wait for";
}

TEST_F(ReconcileTest, AChangeOfSemiSyncReachesTheRunningPrimary) {
  given_running();
  patch(R"({"spec": {"semiSyncTimeoutSeconds": 7}})");
  run_for(1min);
  EXPECT_EQ(mysql.at("demo-0").semi_sync_timeout, 7000);
  patch(R"({"spec": {"semiSync": false}})");
  run_for(1min);
  EXPECT_FALSE(mysql.at("demo-0").semi_sync);
  patch(R"({"spec": {"semiSync": true}})");
  run_for(1min);
  EXPECT_TRUE(mysql.at("demo-0").semi_sync);
}

TEST_F(ReconcileTest, ScalingDownRemovesTheVolumeButNeverThatOfTheFirst) {
  given_running(R"({"replicas": 2})");
  patch(R"({"spec": {"replicas": 1}})");
  run_for(2min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_FALSE(exists(kinds::persistent_volume_claims, "data-demo-1"));
  EXPECT_FALSE(mysql.at("demo-0").semi_sync) << "there is no replica left to wait for";
  patch(R"({"spec": {"replicas": 0}})");
  run_for(2min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_TRUE(exists(kinds::persistent_volume_claims, "data-demo-0"));
  EXPECT_EQ(condition("FailoverInProgress"), "False NoFailover");
  EXPECT_EQ(condition("PrimaryHealthy"), "Unknown NoPrimary");
  auto& without_primary = metrics.gauge("hubferry_mysql_clusters_without_primary",
                                        "MySQL clusters whose condition PrimaryHealthy is False.");
  EXPECT_EQ(without_primary.value(), 0) << "nobody is to be alerted";
  patch(R"({"spec": {"replicas": 1}})");
  run_for(2min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0"));
}

TEST_F(ReconcileTest, APrimaryThatIsScaledAwayHandsOverFirst) {
  given_running();
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/switchover": "demo-2"}}})");
  run_for(1min);
  ASSERT_EQ(primary(), "demo-2") << status_text();
  EXPECT_EQ(cluster().annotation("mysql.hubferry.io/switchover"), "");
  patch(R"({"spec": {"replicas": 2}})");
  run_for(3min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_THAT(primary(), testing::AnyOf("demo-0", "demo-1"));
  EXPECT_FALSE(exists(kinds::pods, "demo-2"));
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

TEST_F(ReconcileTest, WhenTheSecretInUseIsDeletedTheClusterContinuesAsSoonAsItIsBack) {
  const auto secret = R"({"metadata": {"name": "chosen", "namespace": "db"}, "data": {"password": "b2xk"}})";
  create(kube::resources::secrets, secret);
  given_running(R"({"rootPassword": "ref://chosen"})");
  loop.run(server.api().remove(kube::resources::secrets, {"db", "chosen"}));
  run_for(2min);
  EXPECT_EQ(phase(), "Running");
  EXPECT_THAT(cluster().string_at({"status", "message"}), testing::HasSubstr("does not exist"));
  create(kube::resources::secrets, secret);
  run_for(3min);
  EXPECT_EQ(cluster().string_at({"status", "message"}), "") << status_text();
  mysql.at("demo-0").runs = false;
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
}

TEST_F(ReconcileTest, AFailoverThatFailsWhileItScalesOrIsUpgradedContinuesAfterTheRepair) {
  given_running(R"({"failoverCoolDownSeconds": 0})");
  for (const auto* change : {R"({"spec": {"replicas": 5}})", R"({"spec": {"mysqlVersion": "11.4"}})"}) {
    patch(change);
    run_for(500ms);
    const auto entered = phase();
    EXPECT_THAT(entered, testing::AnyOf("Scaling", "Upgrading")) << status_text();
    for (auto& [name, one] : mysql.servers())
      if (one.replica) one.replica->sql_error = 1062;
    mysql.at(primary()).away = true;
    run_for(5min);
    EXPECT_EQ(phase(), "Failed") << entered << status_text();
    EXPECT_THAT(mysql.writable(), testing::IsEmpty());
    for (auto& [name, one] : mysql.servers()) {
      one.away = false;
      if (one.replica) one.replica->sql_error = 0;
    }
    patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/reconcile": "now"}}})");
    run_for(10min);
    EXPECT_EQ(phase(), "Running") << status_text();
    EXPECT_THAT(mysql.writable(), ElementsAre(primary()));
  }
  EXPECT_EQ(mysql.servers().size(), 5U);
  EXPECT_EQ(mysql.at("demo-4").version, "11.4.6-MariaDB");
}

// Upgrade and restarts.

TEST_F(ReconcileTest, AnUpgradeRestartsReplicasFirstAndThePrimaryLast) {
  given_running();
  std::vector<std::string> restarted;
  server.forget_requests();
  patch(R"({"spec": {"mysqlVersion": "11.4"}})");
  run_for(5s);
  EXPECT_EQ(phase(), "Upgrading") << status_text();
  run_for(10min);
  EXPECT_EQ(phase(), "Running") << status_text();
  for (const auto& request : server.requests())
    if (request.resource == "pods" && request.verb == "delete") restarted.push_back(request.key.name);
  EXPECT_THAT(restarted, ElementsAre("demo-2", "demo-1", "demo-0"));
  EXPECT_NE(primary(), "demo-0");
  for (const auto& [name, one] : mysql.servers()) EXPECT_EQ(one.version, "11.4.6-MariaDB") << name;
}

TEST_F(ReconcileTest, AChangedImageAloneRollsTheServers) {
  given_running();
  patch(R"({"spec": {"image": "registry.example/mariadb:own"}})");
  run_for(10min);
  EXPECT_TRUE(log.contains("to=Upgrading"));
  EXPECT_EQ(phase(), "Running") << status_text();
  for (const auto& [name, one] : mysql.servers()) {
    EXPECT_GT(one.started, async::TimePoint{1min}) << name;
    const auto pod = server.object(kinds::pods, {"db", name});
    EXPECT_THAT(json::serialize(pod->json()), HasSubstr("registry.example/mariadb:own"));
  }
}

TEST_F(ReconcileTest, ChangedConfigurationRollsTheServersAndAChangedVersionOfASecretDoesNot) {
  given_running();
  const auto hash = [&] {
    return std::string{server.object(kinds::stateful_sets, {"db", "demo"})
                           ->string_at({"spec", "template", "metadata", "annotations", names::content_annotation})};
  };
  const auto before = hash();
  patch(R"({"metadata": {"labels": {"touched": "yes"}}})", kube::resources::secrets, "demo-root");
  run_for(1min);
  EXPECT_EQ(hash(), before);
  patch(R"({"spec": {"config": "max_connections=50"}})");
  run_for(10min);
  EXPECT_NE(hash(), before);
  EXPECT_EQ(phase(), "Running");
  for (const auto& [name, one] : mysql.servers()) EXPECT_GT(one.started, async::TimePoint{1min}) << name;
}

// Storage.

TEST_F(ReconcileTest, GrownStoragePatchesTheClaimsAndReplacesTheStatefulSetWithoutItsPods) {
  given_running();
  const auto pod = std::string{server.object(kinds::pods, {"db", "demo-0"})->uid()};
  patch(R"({"spec": {"storage": {"size": "20Gi"}}})");
  run_for(2min);
  for (const auto* name : {"data-demo-0", "data-demo-1", "data-demo-2"})
    EXPECT_EQ(server.object(kinds::persistent_volume_claims, {"db", name})
                  ->string_at({"spec", "resources", "requests", "storage"}),
              "20Gi");
  const auto set = server.object(kinds::stateful_sets, {"db", "demo"});
  ASSERT_TRUE(set) << status_text();
  EXPECT_EQ(set->find({"spec", "volumeClaimTemplates"})
                ->at(0)
                .at("spec")
                .at("resources")
                .at("requests")
                .at("storage")
                .as_string(),
            "20Gi");
  EXPECT_EQ(server.object(kinds::pods, {"db", "demo-0"})->uid(), pod);
  EXPECT_EQ(phase(), "Running");
}

TEST_F(ReconcileTest, AStatefulSetIsMadeAgainWithItsSizeThoughAPodIsMissing) {
  given_running();
  stop_operator();
  EXPECT_TRUE(loop.run(server.api().remove(kinds::stateful_sets, {"db", "demo"}, kube::Propagation::orphan)));
  EXPECT_TRUE(loop.run(server.api().remove(kinds::pods, {"db", "demo-1"})));
  server.forget_requests();
  start_operator();
  run_for(3min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_FALSE(log.contains("to=Scaling")) << status_text();
  EXPECT_TRUE(exists(kinds::pods, "demo-2"));
}

// The replaced StatefulSet is what it was: the scale has its own phase, with what belongs to it.
TEST_F(ReconcileTest, StorageAndScaleChangedTogetherAreBothDoneInOrder) {
  given_running();
  patch(R"({"spec": {"storage": {"size": "20Gi"}, "replicas": 2}})");
  run_for(3min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_TRUE(log.contains("to=Scaling"));
  EXPECT_FALSE(exists(kinds::persistent_volume_claims, "data-demo-2"));
  EXPECT_EQ(server.object(kinds::persistent_volume_claims, {"db", "data-demo-1"})
                ->string_at({"spec", "resources", "requests", "storage"}),
            "20Gi");
}

TEST_F(ReconcileTest, ShrunkStorageIsIgnoredWithAnEvent) {
  given_running();
  patch(R"({"spec": {"storage": {"size": "1Gi"}}})");
  run_for(1min);
  EXPECT_EQ(phase(), "Running");
  EXPECT_EQ(events("StorageShrinkRefused"), 1U);
  EXPECT_EQ(server.object(kinds::persistent_volume_claims, {"db", "data-demo-0"})
                ->string_at({"spec", "resources", "requests", "storage"}),
            "10Gi");
}

// Passwords.

std::string password_of(const sim::Server& server, const std::string& name) {
  return kube::decode_base64(server.object(kube::resources::secrets, {"db", name})->string_at({"data", "password"}))
      .value_or("");
}

TEST_F(ReconcileTest, AnEmptyPasswordIsGeneratedOnce) {
  given_running();
  const auto password = password_of(server, "demo-root");
  EXPECT_EQ(password.size(), 16U);
  EXPECT_EQ(condition("RootPasswordGenerated"), "True SecretGenerated");
  EXPECT_EQ(events("SecretGenerated"), 1U);
  run_for(2min);
  EXPECT_EQ(password_of(server, "demo-root"), password);
  EXPECT_FALSE(log.contains(password));
}

TEST_F(ReconcileTest, ASecretThatIsThereIsKept) {
  create(kube::resources::secrets,
         R"({"metadata": {"name": "demo-root", "namespace": "db"}, "data": {"password": "b2xk"}})");
  given_running();
  EXPECT_EQ(password_of(server, "demo-root"), "old");
  EXPECT_EQ(events("SecretGenerated"), 0U);
  EXPECT_EQ(condition("RootPasswordGenerated"), "");
}

TEST_F(ReconcileTest, ANewPlainPasswordIsSetInTheServerBeforeTheSecretAndThePods) {
  given_running(R"({"rootPassword": "first"})");
  EXPECT_EQ(password_of(server, "demo-root"), "first");
  bool secret_was_old = false;
  mysql.on_statement = [&](const std::string&, const std::string& statement) {
    if (statement.starts_with("ALTER USER")) secret_was_old = password_of(server, "demo-root") == "first";
  };
  patch(R"({"spec": {"rootPassword": "second"}})");
  run_for(10min);
  EXPECT_TRUE(secret_was_old);
  EXPECT_EQ(password_of(server, "demo-root"), "second");
  for (const auto& [name, one] : mysql.servers()) {
    EXPECT_EQ(one.root_password, "second") << name;
    EXPECT_GT(one.started, async::TimePoint{1min}) << name << " was not restarted";
  }
  EXPECT_EQ(phase(), "Running") << status_text();
}

TEST_F(ReconcileTest, AMissingReferencedSecretFailsUntilItIsThereAndAPersonSaysSo) {
  given_cluster(R"({"rootPassword": "ref://chosen"})");
  run_for(10s);
  EXPECT_EQ(phase(), "Failed");
  create(kube::resources::secrets,
         R"({"metadata": {"name": "chosen", "namespace": "db"}, "data": {"password": "b2xk"}})");
  run_for(5min);
  EXPECT_EQ(phase(), "Failed");
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/reconcile": "now"}}})");
  run_for(1min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_EQ(cluster().annotation("mysql.hubferry.io/reconcile"), "");
}

TEST_F(ReconcileTest, AReferenceToAnotherNamespaceIsRefused) {
  given_cluster(R"({"rootPassword": "ref://kube-system/admin"})");
  run_for(10s);
  EXPECT_EQ(phase(), "Failed");
  patch(R"({"spec": {"rootPassword": ""}})");
  run_for(1min);
  EXPECT_EQ(phase(), "Running") << "a repaired spec needs no annotation: " << status_text();
}

TEST_F(ReconcileTest, ASecretChangedBehindTheOperatorIsReportedAndNothingIsRestarted) {
  given_running();
  patch(R"({"data": {"password": "b3RoZXI="}})", kube::resources::secrets, "demo-root");
  run_for(10min);
  EXPECT_EQ(condition("ReplicasHealthy"), "False PasswordMismatch") << status_text();
  for (const auto& [name, one] : mysql.servers()) EXPECT_LT(one.started, async::TimePoint{1min}) << name;
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0"));
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
