// Scale, upgrade, restarts, larger volumes.
#include "mysql_test.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RollingTest : public MysqlTest {};

TEST_F(RollingTest, ScalingUpAddsReplicas) {
  given_running(R"({"replicas": 1})");
  patch(R"({"spec": {"replicas": 3}})");
  run_for(3min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_THAT(readers(), ElementsAre("demo-1", "demo-2"));
  EXPECT_TRUE(mysql.at("demo-0").semi_sync) << "now there are replicas to wait for";
}

TEST_F(RollingTest, AChangeOfSemiSyncReachesTheRunningPrimary) {
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

TEST_F(RollingTest, ScalingDownRemovesTheVolumeButNeverThatOfTheFirst) {
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

TEST_F(RollingTest, APrimaryThatIsScaledAwayHandsOverFirst) {
  given_running();
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/switchover": "demo-2"}}})");
  run_for(1min);
  ASSERT_EQ(primary(), "demo-2") << status_text();
  EXPECT_EQ(cluster().annotation("mysql.hubferry.io/switchover"), "");
  bool was_there = true;
  mysql.on_statement = [&](const std::string&, const std::string& statement) {
    if (statement == "SET GLOBAL read_only=0") was_there = was_there && exists(kinds::pods, "demo-2");
  };
  patch(R"({"spec": {"replicas": 2}})");
  run_for(3min);
  mysql.on_statement = {};
  EXPECT_TRUE(was_there) << "it was scaled away before it had handed over";
  EXPECT_TRUE(cluster().find({"status", "lastFailover", "planned"})->as_bool());
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_THAT(primary(), testing::AnyOf("demo-0", "demo-1"));
  EXPECT_FALSE(exists(kinds::pods, "demo-2"));
  EXPECT_THAT(mysql.writable(), ElementsAre(primary()));
}

// Volumes of an earlier cluster: the last server has most.
TEST_F(RollingTest, APrimaryThatIsScaledAwayWhileTheClusterIsCreatedHandsOverFirstToo) {
  stop_operator();
  given_running_servers_without_operator();
  for (auto& [name, one] : mysql.servers()) one.read_only = true;
  mysql.at("demo-2").append();
  mysql.at("demo-1").exporter_runs = false;
  start_operator();
  run_for(1min);
  ASSERT_EQ(phase(), "Creating") << status_text();
  ASSERT_EQ(primary(), "demo-2") << status_text();
  patch(R"({"spec": {"replicas": 2}})");
  run_for(2min);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-2")) << status_text();
  mysql.at("demo-1").exporter_runs = true;
  run_for(5min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_THAT(primary(), testing::AnyOf("demo-0", "demo-1"));
  EXPECT_FALSE(exists(kinds::pods, "demo-2"));
  EXPECT_THAT(mysql.writable(), ElementsAre(primary()));
  EXPECT_EQ(mysql.at(primary()).log.size(), 1U);
}

TEST_F(RollingTest, AServerThatCannotStartIsScaledAwayWhileTheClusterIsCreated) {
  given_cluster();
  for (int i = 0; i < 600 && mysql.servers().size() < 3; ++i) run_for(100ms);
  mysql.at("demo-2").away = true;
  run_for(2min);
  ASSERT_EQ(phase(), "Creating") << status_text();
  patch(R"({"spec": {"replicas": 2}})");
  run_for(2min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0"));
}

TEST_F(RollingTest, AFailoverThatFailsWhileItScalesOrIsUpgradedContinuesAfterTheRepair) {
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

TEST_F(RollingTest, AnUpgradeRestartsReplicasFirstAndThePrimaryLast) {
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

TEST_F(RollingTest, AChangedImageAloneRollsTheServers) {
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

TEST_F(RollingTest, ChangedConfigurationRollsTheServersAndAChangedVersionOfASecretDoesNot) {
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

TEST_F(RollingTest, GrownStoragePatchesTheClaimsAndReplacesTheStatefulSetWithoutItsPods) {
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

TEST_F(RollingTest, AStatefulSetIsMadeAgainWithItsSizeThoughAPodIsMissing) {
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
TEST_F(RollingTest, StorageAndScaleChangedTogetherAreBothDoneInOrder) {
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

TEST_F(RollingTest, ShrunkStorageIsIgnoredWithAnEvent) {
  given_running();
  patch(R"({"spec": {"storage": {"size": "1Gi"}}})");
  run_for(1min);
  EXPECT_EQ(phase(), "Running");
  EXPECT_EQ(events("StorageShrinkRefused"), 1U);
  EXPECT_EQ(server.object(kinds::persistent_volume_claims, {"db", "data-demo-0"})
                ->string_at({"spec", "resources", "requests", "storage"}),
            "10Gi");
}

}  // namespace
}  // namespace hubferry::mysql::test
