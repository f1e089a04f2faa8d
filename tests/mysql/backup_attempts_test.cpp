// The attempts of a backup: when they are made, from which server, and by which Job.
#include "backup_fixture.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(BackupTest, FailedAttemptsAreRepeatedAfterOneTwoAndFourMinutesAlsoByASuccessor) {
  given_running();
  given_claim();
  given_backup();
  run_for(2s);
  const async::Duration pauses[] = {1min, 2min, 4min};
  for (int attempt = 1; attempt <= 3; ++attempt) {
    end_job("full-" + std::to_string(attempt), "Failed");
    stop_operator();
    start_operator();
    run_for(pauses[attempt - 1] - 5s);
    EXPECT_EQ(jobs().size(), static_cast<std::size_t>(attempt));
    run_for(10s);
    EXPECT_EQ(jobs().size(), static_cast<std::size_t>(attempt) + 1) << status_text();
  }
  EXPECT_EQ(backup_phase(), "Running");
  end_job("full-4", "Failed");
  EXPECT_EQ(backup_phase(), "Failed");
  EXPECT_THAT(std::string{backup().string_at({"status", "message"})}, HasSubstr("attempt 4 of 4 failed"));
  run_for(1h);
  EXPECT_EQ(jobs().size(), 4U);
  EXPECT_EQ(events("BackupFailed"), 1U);
  EXPECT_EQ(events("BackupCompleted"), 0U);
  EXPECT_EQ(metrics
                .histogram("mysqlbackup_duration_seconds", "Duration of the successful attempts of backups.",
                           obs::exponential_buckets(1, 2, 15))
                .count(),
            0U)
      << "only attempts that succeed are measured";
}

TEST_F(BackupTest, AnotherAttemptIsMadeFromAReplicaThatKeepsUpByThen) {
  given_running();
  given_claim();
  given_backup();
  run_for(2s);
  ASSERT_EQ(backup().string_at({"status", "source"}), "demo-1");
  mysql.at("demo-1").replica->sql_error = 1062;
  mysql.at("demo-1").replica->sql = false;
  end_job("full-1", "Failed");
  run_for(70s);
  ASSERT_THAT(jobs(), ElementsAre("full-1", "full-2"));
  EXPECT_EQ(backup().string_at({"status", "source"}), "demo-2");
  EXPECT_THAT(json::serialize(server.object(kinds::jobs, {"db", "full-2"})->json()), HasSubstr("data-demo-2"));
}

TEST_F(BackupTest, AnotherAttemptKeepsTheSourceThatWasAskedFor) {
  given_running();
  given_claim();
  given_backup(R"({"cluster": "demo", "source": "demo-0", "storage": {"claimName": "backups"}})");
  run_for(2s);
  end_job("full-1", "Failed");
  run_for(70s);
  ASSERT_THAT(jobs(), ElementsAre("full-1", "full-2"));
  EXPECT_EQ(backup().string_at({"status", "source"}), "demo-0");
}

// A person has edited the status.
TEST_F(BackupTest, ATimeThatIsNoneIsNotWaitedFor) {
  given_running();
  given_claim();
  given_backup();
  run_for(2s);
  end_job("full-1", "Failed");
  patch(R"({"status": {"nextAttemptTime": "soon"}})", mysql_backups, "full", "status");
  run_for(2min);
  EXPECT_THAT(jobs(), ElementsAre("full-1", "full-2")) << json::serialize(backup().json());
}

TEST_F(BackupTest, AnAttemptThatIsNoneCountsAsTheFirst) {
  given_running();
  given_claim();
  given_backup();
  run_for(2s);
  patch(R"({"status": {"attempt": -100}})", mysql_backups, "full", "status");
  end_job("full-1", "Failed");
  run_for(50s);
  EXPECT_THAT(jobs(), ElementsAre("full-1"));
  run_for(20s);
  EXPECT_THAT(jobs(), ElementsAre("full-1", "full-2"));
}

// Somebody's, or of a MySQLBackup of this name that was deleted: what it did is not this backup.
TEST_F(BackupTest, AJobOfAnotherOwnerWithTheNameOfAnAttemptIsNotTakenForIt) {
  given_running();
  given_claim();
  create(kinds::jobs, R"({"metadata": {"name": "full-1", "namespace": "db"}, "spec": {"template": {"spec": {
                          "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}})");
  end_job("full-1", "Complete");
  given_backup();
  run_for(40s);
  EXPECT_EQ(backup_phase(), "Running");
  EXPECT_THAT(std::string{backup().string_at({"status", "message"})}, HasSubstr("Job full-1 belongs to"));
  EXPECT_EQ(events("BackupCompleted"), 0U);
  run_for(1min);
  ASSERT_THAT(jobs(), ElementsAre("full-1", "full-2"));
  end_job("full-2", "Complete");
  EXPECT_EQ(backup_phase(), "Succeeded");
}

// The servers have two versions then, and restart one after the other.
TEST_F(BackupTest, AnotherAttemptWaitsForTheEndOfAnUpgrade) {
  given_running();
  given_claim();
  given_backup();
  run_for(2s);
  end_job("full-1", "Failed");
  server.faults().on({"delete", "pods"}).always().fail(500);
  patch(R"({"spec": {"mysqlVersion": "11.4"}})");
  run_for(10min);
  ASSERT_EQ(phase(), "Upgrading") << status_text();
  EXPECT_THAT(jobs(), ElementsAre("full-1"));
  EXPECT_EQ(backup_phase(), "Running") << "to wait is no attempt";
  EXPECT_EQ(backup().string_at({"status", "message"}), "waiting for MySQLCluster demo, which is Upgrading");
  server.faults().clear();
  run_for(10min);
  ASSERT_EQ(phase(), "Running") << status_text();
  ASSERT_THAT(jobs(), ElementsAre("full-1", "full-2"));
  EXPECT_THAT(json::serialize(server.object(kinds::jobs, {"db", "full-2"})->json()), HasSubstr("mariadb:11.4"));
  end_job("full-2", "Complete");
  EXPECT_EQ(backup_phase(), "Succeeded");
  EXPECT_EQ(backup().string_at({"status", "message"}), "");
}

TEST_F(BackupTest, AnotherAttemptOfAClusterThatHasFailedCountsAsFailed) {
  given_running();
  given_claim();
  given_backup();
  run_for(2s);
  end_job("full-1", "Failed");
  stop_operator();
  patch(R"({"status": {"phase": "Failed"}})", mysql_clusters, "demo", "status");
  start_operator();
  run_for(10min);
  EXPECT_THAT(jobs(), ElementsAre("full-1"));
  EXPECT_EQ(backup_phase(), "Failed");
  EXPECT_EQ(backup().string_at({"status", "message"}), "attempt 4 of 4 failed: MySQLCluster demo is Failed");
}

}  // namespace
}  // namespace hubferry::mysql::test
