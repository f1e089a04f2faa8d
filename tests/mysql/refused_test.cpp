// The API server, or a policy of the cluster, refuses what the operator wants to write.
#include "backup_fixture.hpp"
#include "password_fixture.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RefusedTest : public PasswordTest {
 protected:
  void refuse(const char* verb, const char* resource) { server.faults().on({verb, resource}).always().fail(422); }
  void expect_refused() {
    EXPECT_THAT(std::string{cluster().string_at({"status", "message"})}, HasSubstr("422")) << status_text();
  }
  void expect_failover() {
    kill_primary();
    run_for(2min);
    EXPECT_EQ(primary(), "demo-1") << status_text();
    EXPECT_THAT(mysql.writable(), ElementsAre("demo-1")) << status_text();
    EXPECT_THAT(writers(), ElementsAre("demo-1"));
  }
  /// Its pods stay.
  void remove_stateful_set() {
    EXPECT_TRUE(loop.run(server.api().remove(kinds::stateful_sets, {"db", "demo"}, kube::Propagation::orphan)));
    run_for(1min);
  }
  void expect_failover_all_the_same(const std::string& change, const char* verb, const char* resource) {
    given_running();
    refuse(verb, resource);
    patch(change);
    run_for(1min);
    expect_refused();
    expect_failover();
    expect_refused();
  }
};

// Most storage classes do not allow it.
TEST_F(RefusedTest, AVolumeThatCannotGrowDoesNotKeepThePrimaryFromBeingReplaced) {
  expect_failover_all_the_same(R"({"spec": {"storage": {"size": "20Gi"}}})", "patch", "persistentvolumeclaims");
}

TEST_F(RefusedTest, AStatefulSetThatIsRefusedDoesNotEither) {
  expect_failover_all_the_same(R"({"spec": {"resources": {"limits": {"cpu": "1"}}}})", "patch", "statefulsets");
}

TEST_F(RefusedTest, AServiceThatIsRefusedDoesNotEither) {
  expect_failover_all_the_same(R"({"spec": {"serviceType": "LoadBalancer"}})", "patch", "services");
}

// Otherwise a pod that restarts meanwhile would count as up to date, with the old settings.
TEST_F(RefusedTest, WhileItsConfigMapIsRefusedTheStatefulSetStaysAsItIs) {
  given_running();
  const auto set = [&] { return server.object(kinds::stateful_sets, {"db", "demo"}).value(); };
  const auto before = set().generation();
  refuse("patch", "configmaps");
  patch(R"({"spec": {"config": "max_connections=50"}})");
  run_for(1min);
  EXPECT_EQ(set().generation(), before);
  server.faults().clear();
  run_for(10min);
  EXPECT_GT(set().generation(), before);
  EXPECT_EQ(phase(), "Running") << status_text();
}

// A quota, or a policy that is newer than the cluster.
TEST_F(RefusedTest, AStatefulSetThatIsMissingAndRefusedDoesNotEither) {
  given_running();
  refuse("create", "statefulsets");
  remove_stateful_set();
  expect_refused();
  expect_failover();
  expect_refused();
  server.faults().clear();
  run_for(5min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_EQ(mysql.servers().size(), 3U);
  expect_one_primary_with_replicas();
}

TEST_F(RefusedTest, AStatefulSetThatCannotBeReadDoesNotEither) {
  given_running();
  refuse("get", "statefulsets");
  run_for(1min);
  expect_refused();
  expect_failover();
}

/// Nobody says any more how many servers there are.
class MissingSetTest : public LastCopyTest {};

TEST_F(MissingSetTest, AServerWhosePodIsMissingTooIsWaitedForInAFailover) {
  given_last_copy_on_demo_2();
  server.faults().on({"create", "statefulsets"}).always().fail(422);
  EXPECT_TRUE(loop.run(server.api().remove(kinds::stateful_sets, {"db", "demo"}, kube::Propagation::orphan)));
  EXPECT_TRUE(loop.run(server.api().remove(kinds::pods, {"db", "demo-2"})));
  kill_primary();
  expect_failover_waits_for_demo_2();
  server.faults().clear();
  expect_demo_2_is_promoted_with_everything(2min);
}

TEST_F(RefusedTest, AChangeOfTheRootSecretThatIsRefusedDoesNotEither) {
  given_running(R"({"rootPassword": "first"})");
  for (const auto* verb : {"patch", "update"}) refuse(verb, "secrets");
  change_password();
  run_for(1min);
  expect_refused();
  expect_failover();
  EXPECT_EQ(mysql.at("demo-1").root_password, "first");
  server.faults().clear();
  run_for(10min);
  expect_password("second");
}

// The servers have one of two passwords, and the Secret both.
TEST_F(RefusedTest, NorDoesOneThatIsRevokedInTheMiddleAndRefused) {
  given_half_done_change();
  for (const auto* verb : {"patch", "update"}) refuse(verb, "secrets");
  change_password("first");
  expect_failover();
  expect_refused();
  mysql.at("demo-2").delay.reset();
  server.faults().clear();
  run_for(10min);
  expect_password("first");
}

TEST_F(RefusedTest, NorDoesARootSecretThatWasDeletedAndCannotBeMadeAgain) {
  given_running(R"({"rootPassword": "first"})");
  refuse("create", "secrets");
  EXPECT_TRUE(loop.run(server.api().remove(kube::resources::secrets, {"db", "demo-root"})));
  run_for(1min);
  expect_refused();
  expect_failover();
}

/// A Service that is refused for hours, beside a schedule for backups.
class LongRefusedTest : public BackupTest {
 protected:
  void given_refused() {
    given_running(R"({"backupSchedule": {"schedule": "0 * * * *", "storage": {"claimName": "backups"}}})");
    run_for(1min);
    server.faults().on({"patch", "services"}).always().fail(422);
    patch(R"({"spec": {"serviceType": "LoadBalancer"}})");
    run_for(1min);
    ASSERT_THAT(std::string{cluster().string_at({"status", "message"})}, HasSubstr("422")) << status_text();
  }
};

TEST_F(LongRefusedTest, BackupsAreMadeAllTheSame) {
  given_refused();
  given_claim();
  run_for(70min);
  EXPECT_THAT(jobs(), ElementsAre("demo-203001010100-1")) << status_text();
}

TEST_F(LongRefusedTest, OverdueBackupsAreReportedAllTheSame) {
  given_refused();
  run_for(3h);  // without the claim
  EXPECT_EQ(condition("BackupsOnTime"), "False BackupOverdue") << status_text();
}

TEST_F(LongRefusedTest, AFullVolumeIsReportedAllTheSame) {
  given_refused();
  mysql.at("demo-1").free = 0.01;
  run_for(5min);
  EXPECT_EQ(condition("VolumesHealthy"), "False VolumeFull") << status_text();
}

TEST_F(LongRefusedTest, OverdueBackupsAreReportedAlsoInAnUpgradeThatDoesNotEnd) {
  given_running(R"({"backupSchedule": {"schedule": "0 * * * *", "storage": {"claimName": "backups"}}})");
  run_for(1min);
  server.faults().on({"delete", "pods"}).always().fail(422);
  patch(R"({"spec": {"mysqlVersion": "11.4"}})");
  run_for(4h);
  EXPECT_EQ(phase(), "Upgrading") << status_text();
  EXPECT_EQ(condition("BackupsOnTime"), "False BackupOverdue") << status_text();
}

}  // namespace
}  // namespace hubferry::mysql::test
