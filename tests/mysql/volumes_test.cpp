// Volumes: which are deleted, which are full, and from which a new cluster is filled.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "failover_fixture.hpp"
#include "mysql/children.hpp"
#include "mysql/volume.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::mysql::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class VolumesTest : public LastCopyTest {
 protected:
  [[nodiscard]] std::vector<std::string> claims() const {
    std::vector<std::string> names;
    for (const auto& claim : server.objects(kinds::persistent_volume_claims)) names.emplace_back(claim.name());
    return names;
  }
  [[nodiscard]] std::string policy(const char* field) const {
    const auto set = server.object(kinds::stateful_sets, {"db", "demo"});
    return set ? std::string{set->string_at({"spec", "persistentVolumeClaimRetentionPolicy", field})} : "";
  }
  /// A failover in the phase Scaling that waits for demo-2, which alone has the last transaction.
  void given_failover_that_waits_while_it_scales(const std::string& spec = "{}") {
    given_last_copy_on_demo_2(spec);
    stop_operator();
    cut_off_demo_2();
    mysql.at("demo-0").away = true;
    patch(R"({"status": {"phase": "Scaling"}})", mysql_clusters, "demo", "status");
    start_operator();
    run_for(1min);
    ASSERT_EQ(phase(), "Scaling") << status_text();
    ASSERT_EQ(condition("FailoverInProgress"), "True PromoteReplica") << status_text();
  }
};

// What is deleted.

TEST_F(VolumesTest, WithThePolicyRetainScalingDownKeepsEveryVolume) {
  given_running(R"({"volumePolicy": {"whenScaled": "Retain"}})");
  patch(R"({"spec": {"replicas": 1}})");
  run_for(5min);
  ASSERT_EQ(phase(), "Running") << status_text();
  ASSERT_FALSE(exists(kinds::pods, "demo-1"));
  patch(R"({"spec": {"replicas": 0}})");
  run_for(5min);
  ASSERT_FALSE(exists(kinds::pods, "demo-0"));
  EXPECT_THAT(claims(), ElementsAre("data-demo-0", "data-demo-1", "data-demo-2"));
}

TEST_F(VolumesTest, WithThePolicyDeleteThoseOfServersThatWereScaledAwayGoAndNoOthers) {
  given_running(R"({"volumePolicy": {"whenScaled": "Delete"}})");
  create(kinds::persistent_volume_claims,
         R"({"metadata": {"name": "data-demo-3", "namespace": "db"}, "spec": {}})");  // somebody's
  patch(R"({"spec": {"replicas": 2}})");
  run_for(5min);
  EXPECT_THAT(claims(), ElementsAre("data-demo-0", "data-demo-1", "data-demo-3")) << status_text();
}

// The StatefulSet's own controller acts on it when the cluster is deleted.
TEST_F(VolumesTest, ADeletedClusterKeepsItsVolumesAndItsPasswordUnlessThePolicySaysDelete) {
  given_running();
  EXPECT_EQ(policy("whenDeleted"), "Retain");
  EXPECT_EQ(policy("whenScaled"), "Retain") << "scaling is the operator's: the primary may be the highest";
  EXPECT_TRUE(loop.run(server.api().remove(mysql_clusters, {"db", "demo"})));
  run_for(1min);
  EXPECT_THAT(claims(), ElementsAre("data-demo-0", "data-demo-1", "data-demo-2"));
  EXPECT_TRUE(exists(kube::resources::secrets, "demo-root"));
  EXPECT_TRUE(loop.run(server.api().remove(kube::resources::secrets, {"db", "demo-root"})));
  for (const auto& claim : claims())
    EXPECT_TRUE(loop.run(server.api().remove(kinds::persistent_volume_claims, {"db", claim})));
  mysql.servers().clear();
  given_cluster(R"({"volumePolicy": {"whenDeleted": "Delete"}})");
  run_for(1s);
  EXPECT_EQ(policy("whenDeleted"), "Delete");
  EXPECT_TRUE(exists(kube::resources::secrets, "demo-root"));
  EXPECT_TRUE(loop.run(server.api().remove(mysql_clusters, {"db", "demo"})));
  run_for(1min);
  EXPECT_FALSE(exists(kube::resources::secrets, "demo-root"));
}

TEST_F(VolumesTest, AVolumeThatAnEarlierClusterOfThisNameLeftIsNotDeletedByScaling) {
  given_running();
  EXPECT_TRUE(loop.run(server.api().remove(mysql_clusters, {"db", "demo"})));
  run_for(1min);
  ASSERT_THAT(claims(), ElementsAre("data-demo-0", "data-demo-1", "data-demo-2"));
  given_cluster(R"({"replicas": 1})");
  run_for(1min);
  ASSERT_EQ(phase(), "Running") << status_text();
  patch(R"({"spec": {"replicas": 2}})");
  run_for(5min);
  ASSERT_EQ(phase(), "Running") << status_text();
  EXPECT_THAT(claims(), ElementsAre("data-demo-0", "data-demo-1", "data-demo-2"));
}

TEST_F(VolumesTest, AServerIsNotScaledAwayWhileAFailoverWaitsForWhatItHas) {
  given_failover_that_waits_while_it_scales();
  patch(R"({"spec": {"replicas": 2}})");
  run_for(30s);
  EXPECT_TRUE(exists(kinds::pods, "demo-2")) << status_text();
  EXPECT_TRUE(exists(kinds::persistent_volume_claims, "data-demo-2"));
  mysql.cut_off.clear();
  run_for(1min);
  EXPECT_EQ(primary(), "demo-2") << status_text();
  EXPECT_EQ(mysql.at("demo-2").log.size(), 2U);
}

TEST_F(VolumesTest, AServerIsNotScaledAwayWhileOneThatStaysDoesNotReplicate) {
  given_running();
  mysql.at("demo-1").replica->sql_error = 1062;
  mysql.at("demo-1").replica->sql = false;
  run_for(30s);
  patch(R"({"spec": {"replicas": 2}})");
  run_for(5min);
  EXPECT_EQ(phase(), "Scaling") << status_text();
  EXPECT_TRUE(exists(kinds::pods, "demo-2"));
  EXPECT_TRUE(exists(kinds::persistent_volume_claims, "data-demo-2"));
  mysql.at("demo-1").replica->sql_error = 0;
  run_for(5min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_FALSE(exists(kinds::persistent_volume_claims, "data-demo-2"));
}

/// A cluster that has accepted writes, and is still created: demo-1 cannot replicate.
class CreatingTest : public VolumesTest {
 protected:
  void given_creating() {
    given_last_copy_on_demo_2();
    mysql.at("demo-1").replica->sql_error = 1062;
    mysql.at("demo-1").replica->sql = false;
    stop_operator();
    patch(R"({"status": {"phase": "Creating"}})", mysql_clusters, "demo", "status");
    start_operator();
    run_for(1min);
    ASSERT_EQ(phase(), "Creating") << status_text();
    ASSERT_THAT(mysql.writable(), ElementsAre("demo-0"));
  }
  void expect_demo_2_stays_until_demo_1_replicates() {
    run_for(5min);
    EXPECT_TRUE(exists(kinds::pods, "demo-2")) << status_text();
    mysql.at("demo-1").replica->sql_error = 0;
    run_for(5min);
    EXPECT_EQ(phase(), "Running") << status_text();
    EXPECT_FALSE(exists(kinds::pods, "demo-2"));
    EXPECT_EQ(mysql.at("demo-1").log.size(), 2U);
  }
};

TEST_F(CreatingTest, AServerIsNotScaledAwayWhileOneThatStaysDoesNotReplicate) {
  given_creating();
  patch(R"({"spec": {"replicas": 2}})");
  expect_demo_2_stays_until_demo_1_replicates();
}

TEST_F(CreatingTest, NorWhenItsStatefulSetIsMadeAgain) {
  given_creating();
  stop_operator();
  EXPECT_TRUE(loop.run(server.api().remove(kinds::stateful_sets, {"db", "demo"}, kube::Propagation::orphan)));
  patch(R"({"spec": {"replicas": 2}})");
  start_operator();
  expect_demo_2_stays_until_demo_1_replicates();
}

// Scenario 8: otherwise it would block the next start.
TEST_F(VolumesTest, ScalingToZeroEndsAFailoverThatIsUnderWay) {
  given_failover_that_waits_while_it_scales(R"({"volumePolicy": {"whenScaled": "Retain"}})");
  patch(R"({"spec": {"replicas": 0}})");
  run_for(2min);
  EXPECT_EQ(condition("FailoverInProgress"), "False NoFailover") << status_text();
  EXPECT_EQ(cluster().find({"status", "failover"}), nullptr);
  EXPECT_FALSE(exists(kinds::pods, "demo-2"));
  EXPECT_THAT(claims(), ElementsAre("data-demo-0", "data-demo-1", "data-demo-2"));
}

TEST_F(VolumesTest, AStatefulSetOfSomebodyElseIsNotReplacedThoughItsVolumesAreSmaller) {
  create(kinds::stateful_sets, R"({"metadata": {"name": "demo", "namespace": "db"}, "spec": {"replicas": 0,
           "serviceName": "demo", "selector": {"matchLabels": {"a": "b"}},
           "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
           "volumeClaimTemplates": [{"metadata": {"name": "data"},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}})");
  create(kinds::persistent_volume_claims, R"({"metadata": {"name": "data-demo-0", "namespace": "db"},
           "spec": {"resources": {"requests": {"storage": "1Gi"}}}})");
  create(kube::resources::secrets,
         R"({"metadata": {"name": "demo-root", "namespace": "db"}, "data": {"password": "b2xk"}})");
  const auto uid = std::string{server.object(kinds::stateful_sets, {"db", "demo"})->uid()};
  given_cluster();
  run_for(1min);
  const auto set = server.object(kinds::stateful_sets, {"db", "demo"});
  ASSERT_TRUE(set) << status_text();
  EXPECT_EQ(set->uid(), uid);
  EXPECT_EQ(server.object(kinds::persistent_volume_claims, {"db", "data-demo-0"})
                ->string_at({"spec", "resources", "requests", "storage"}),
            "1Gi");
  EXPECT_THAT(std::string{cluster().string_at({"status", "message"})}, HasSubstr("does not belong to this cluster"));
}

// What is full.

TEST(Volume, IsNearlyFullBelowFivePercentAndNotAgainBeforeTwiceAsMuchIsFree) {
  EXPECT_FALSE(is_nearly_full({100, 6}, false));
  EXPECT_TRUE(is_nearly_full({100, 4}, false));
  EXPECT_TRUE(is_nearly_full({100, 9}, true));
  EXPECT_FALSE(is_nearly_full({100, 11}, true));
  constexpr double gibibyte = 1024.0 * 1024 * 1024;
  EXPECT_FALSE(is_nearly_full({1000 * gibibyte, 6 * gibibyte}, false)) << "much for a large one";
}

TEST_F(VolumesTest, AVolumeThatIsNearlyFullIsReportedOnceAndNothingElseHappens) {
  auto& full = metrics.gauge("hubferry_mysql_clusters_with_full_volume",
                             "MySQL clusters with a server whose volume is nearly full.");
  given_running();
  run_for(2min);
  EXPECT_EQ(condition("VolumesHealthy"), "True SpaceLeft") << status_text();
  mysql.at("demo-0").free = 0.04;
  run_for(2min);
  EXPECT_EQ(condition("VolumesHealthy"), "False VolumeFull") << status_text();
  EXPECT_THAT(condition_message("VolumesHealthy"), HasSubstr("demo-0: the volume is nearly full"));
  EXPECT_EQ(events("VolumeFull"), 1U);
  EXPECT_EQ(full.value(), 1);
  server.forget_requests();
  mysql.at("demo-0").free = 0.03;
  run_for(10min);
  EXPECT_THAT(writes_since_forgotten(), IsEmpty());
  EXPECT_EQ(primary(), "demo-0") << "the replicas' volumes fill alike";
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0"));
  EXPECT_EQ(claims().size(), 3U);
  mysql.at("demo-0").free = 0.5;
  run_for(2min);
  EXPECT_EQ(condition("VolumesHealthy"), "True SpaceLeft") << status_text();
  EXPECT_EQ(full.value(), 0);
}

TEST_F(VolumesTest, AServerThatCannotTellIsNotTakenForFull) {
  given_cluster();
  run_for(3s);
  for (auto& [name, one] : mysql.servers()) one.free.reset();
  run_for(5min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_EQ(events("VolumeFull"), 0U);
  EXPECT_THAT(condition("VolumesHealthy"), testing::Not(HasSubstr("False")));
}

// From which it is filled.

constexpr const char* from_backup = R"({"restoreFrom": {"claimName": "backups", "backup": "full"}})";
constexpr const char* backup_claim = R"({"metadata": {"name": "backups", "namespace": "db"}, "spec": {}})";

TEST_F(VolumesTest, AClaimToRestoreFromThatDoesNotExistIsReportedAndWaitedFor) {
  given_cluster(from_backup);
  run_for(2min);
  EXPECT_EQ(phase(), "Creating") << status_text();
  EXPECT_EQ(condition("SpecAccepted"), "False RestoreClaimMissing");
  EXPECT_THAT(condition_message("SpecAccepted"), HasSubstr("PersistentVolumeClaim backups of spec.restoreFrom"));
  EXPECT_EQ(events("RestoreClaimMissing"), 1U);
  EXPECT_FALSE(exists(kinds::stateful_sets, "demo")) << "its pods could not start";
  create(kinds::persistent_volume_claims, backup_claim);
  run_for(2min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_EQ(condition("SpecAccepted"), "True SpecValid");
}

// A pod needs the claim whenever it starts.
TEST_F(VolumesTest, WhenThatClaimIsDeletedLaterNothingIsRestartedUntilItIsBack) {
  create(kinds::persistent_volume_claims, backup_claim);
  given_running(from_backup);
  EXPECT_TRUE(loop.run(server.api().remove(kinds::persistent_volume_claims, {"db", "backups"})));
  patch(R"({"spec": {"config": "max_connections=50"}})");
  run_for(5min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_EQ(condition("SpecAccepted"), "False RestoreClaimMissing");
  for (const auto& [name, one] : mysql.servers()) EXPECT_LT(one.started, async::TimePoint{1min}) << name;
  create(kinds::persistent_volume_claims, backup_claim);
  run_for(10min);
  for (const auto& [name, one] : mysql.servers()) EXPECT_GT(one.started, async::TimePoint{1min}) << name;
}

}  // namespace
}  // namespace hubferry::mysql::test
