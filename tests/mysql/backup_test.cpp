#include "backup_fixture.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(BackupTest, AReplicaThatKeepsUpIsBackedUpAndSuccessIsReportedOnce) {
  given_running();
  given_claim();
  given_backup();
  run_for(2s);
  ASSERT_THAT(jobs(), ElementsAre("full-1"));
  EXPECT_EQ(backup().string_at({"status", "source"}), "demo-1");
  EXPECT_EQ(condition("BackupRunning"), "True JobCreated");
  const auto job = *server.object(kinds::jobs, {"db", "full-1"});
  EXPECT_EQ(job.find({"spec", "backoffLimit"})->to_number<int>(), 0);
  EXPECT_EQ(json::serialize(job.json()).find(std::string{mysql.at("demo-0").root_password}), std::string::npos);
  end_job("full-1", "Complete");
  EXPECT_EQ(backup_phase(), "Succeeded");
  EXPECT_EQ(backup().find({"status", "durationSeconds"})->to_number<int>(), 192);
  run_for(10s);
  EXPECT_EQ(event_notes("BackupCompleted"), std::vector<std::string>{"Backup full finished in 3m12s"});
  auto& durations = metrics.histogram("mysqlbackup_duration_seconds", "Duration of the successful attempts of backups.",
                                      obs::exponential_buckets(1, 2, 15));
  EXPECT_EQ(durations.count(), 1U);
  EXPECT_EQ(durations.sum(), 192);
  EXPECT_EQ(condition("BackupRunning"), "False BackupFinished");
  // A finished backup never runs again.
  EXPECT_TRUE(loop.run(server.api().remove(kinds::jobs, {"db", "full-1"})));
  run_for(10min);
  EXPECT_THAT(jobs(), IsEmpty());
}

TEST_F(BackupTest, WithLaggingReplicasOnlyThePrimaryIsBackedUp) {
  given_running();
  given_claim();
  for (const auto* pod : {"demo-1", "demo-2"}) mysql.at(pod).delay = 500;
  run_for(20s);
  given_backup();
  run_for(2s);
  EXPECT_EQ(backup().string_at({"status", "source"}), "demo-0");
}

// What the servers have, not what the spec asks for and they do not have yet.
TEST_F(BackupTest, ABackupUsesTheImageAndTheSecretThatAreInForce) {
  given_running();
  given_claim();
  stop_operator();
  patch(R"({"spec": {"image": "mariadb:12.3", "rootPassword": "ref://nowhere"}})");
  given_backup();
  server.faults().on({"patch", "statefulsets"}).fail(500);
  start_operator();
  run_for(2s);
  ASSERT_THAT(jobs(), ElementsAre("full-1")) << json::serialize(backup().json());
  const auto job = json::serialize(server.object(kinds::jobs, {"db", "full-1"})->json());
  EXPECT_THAT(job, HasSubstr("mariadb:10.11"));
  EXPECT_THAT(job, HasSubstr("demo-root"));
  EXPECT_THAT(job, testing::Not(HasSubstr("nowhere")));
}

TEST_F(BackupTest, ABackupWhosePodDoesNotStartSaysWhy) {
  given_running();
  given_claim();
  given_backup();
  run_for(2s);
  create(kinds::pods, R"({"metadata": {"name": "full-1-x", "namespace": "db", "labels": {"job-name": "full-1"}},
                          "spec": {"containers": [{"name": "backup", "image": "i"}]}})");
  patch(R"({"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
             "message": "0/3 nodes are available"}]}})",
        kinds::pods, "full-1-x", "status");
  run_for(40s);
  EXPECT_EQ(backup().string_at({"status", "message"}),
            "waiting for pod full-1-x: Unschedulable: 0/3 nodes are available");
  patch(R"({"status": {"conditions": [], "containerStatuses": [{"name": "backup",
             "state": {"waiting": {"reason": "ErrImagePull"}}}]}})",
        kinds::pods, "full-1-x", "status");
  run_for(40s);
  EXPECT_EQ(backup().string_at({"status", "message"}), "waiting for pod full-1-x: ErrImagePull");
  patch(R"({"status": {"containerStatuses": [{"name": "backup", "state": {"running": {}}}]}})", kinds::pods, "full-1-x",
        "status");
  run_for(40s);
  EXPECT_EQ(backup().string_at({"status", "message"}), "");
  EXPECT_EQ(backup_phase(), "Running");
}

TEST_F(BackupTest, WhatCannotStartFailsAtOnceWithTheReason) {
  given_backup();
  run_for(2s);
  EXPECT_EQ(backup_phase(), "Failed");
  EXPECT_THAT(std::string{backup().string_at({"status", "message"})}, HasSubstr("MySQLCluster demo does not exist"));
  given_claim();
  given_cluster();
  given_backup(R"({"cluster": "demo", "storage": {"claimName": "backups"}})", "early");
  run_for(1s);
  EXPECT_EQ(phase(), "Creating");
  EXPECT_EQ(backup_phase("early"), "Failed");
  EXPECT_THAT(std::string{backup("early").string_at({"status", "message"})}, HasSubstr("demo is not Running"));
  run_for(1min);
  given_backup(R"({"cluster": "demo", "storage": {"claimName": "nowhere"}})", "two");
  run_for(1s);
  EXPECT_EQ(backup_phase("two"), "Failed");
  EXPECT_THAT(std::string{backup("two").string_at({"status", "message"})}, HasSubstr("nowhere does not exist"));
  run_for(1h);
  EXPECT_THAT(jobs(), IsEmpty()) << "also later";
  EXPECT_EQ(events("BackupFailed"), 3U);
}

TEST_F(BackupTest, WithoutAClusterItWaitsUntilOneIsNamed) {
  given_running();
  given_claim();
  given_backup(R"({"storage": {"claimName": "backups"}})");
  run_for(5min);
  EXPECT_EQ(backup_phase(), "Pending");
  EXPECT_THAT(jobs(), IsEmpty());
  patch(R"({"spec": {"cluster": "demo"}})", mysql_backups, "full");
  run_for(2s);
  EXPECT_THAT(jobs(), ElementsAre("full-1"));
}

TEST_F(BackupTest, BackupRunningIsTrueUntilTheLastOneEnds) {
  given_running();
  given_claim();
  for (const auto* name : {"full", "other"})
    given_backup(R"({"cluster": "demo", "storage": {"claimName": "backups"}})", name);
  run_for(2s);
  end_job("full-1", "Complete");
  run_for(40s);
  EXPECT_EQ(condition("BackupRunning"), "True JobCreated");
  end_job("other-1", "Complete");
  run_for(40s);
  EXPECT_EQ(condition("BackupRunning"), "False BackupFinished");
}

TEST_F(BackupTest, AScheduleMakesBackupsAtItsTimesOneAtATimeAndOfMissedOnesTheLast) {
  given_running(R"({"backupSchedule": {"schedule": "*/15 * * * *", "storage": {"claimName": "backups"}}})");
  given_claim();
  run_for(10min);
  EXPECT_THAT(jobs(), IsEmpty());
  run_for(5min);
  EXPECT_THAT(jobs(), ElementsAre("demo-203001010015-1"));
  run_for(15min);
  EXPECT_EQ(jobs().size(), 1U) << "the first one still runs";
  end_job("demo-203001010015-1", "Complete");
  run_for(1min);
  EXPECT_THAT(jobs(), ElementsAre("demo-203001010015-1", "demo-203001010030-1"));
  end_job("demo-203001010030-1", "Complete");
  stop_operator();
  run_for(2h);
  start_operator();
  run_for(1min);
  EXPECT_THAT(jobs(), ElementsAre("demo-203001010015-1", "demo-203001010030-1", "demo-203001010230-1"));
}

TEST_F(BackupTest, ABackupIsOverdueWhenTwoScheduledTimesHavePassedSinceTheLastSuccess) {
  auto& overdue = metrics.gauge("hubferry_mysql_clusters_with_overdue_backup",
                                "MySQL clusters that missed two scheduled backups in a row.");
  given_running(R"({"backupSchedule": {"schedule": "0 * * * *", "storage": {"claimName": "backups"}}})");
  run_for(90min);  // without the claim
  EXPECT_EQ(condition("BackupsOnTime"), "True OnTime") << status_text();
  run_for(31min);
  EXPECT_EQ(condition("BackupsOnTime"), "False BackupOverdue") << status_text();
  EXPECT_EQ(overdue.value(), 1);
  given_claim();
  run_for(1h);
  end_job("demo-203001010300-1", "Complete");
  run_for(1min);
  EXPECT_EQ(condition("BackupsOnTime"), "True OnTime") << status_text();
  EXPECT_EQ(overdue.value(), 0);
  // The object may go: what succeeded is on record.
  ASSERT_TRUE(loop.run(server.api().remove(mysql_backups, {"db", "demo-203001010300"})));
  run_for(30min);
  EXPECT_EQ(condition("BackupsOnTime"), "True OnTime") << status_text();
  EXPECT_EQ(cluster().string_at({"status", "lastSuccessfulBackupTime"}).substr(0, 13), "2030-01-01T03");
  patch(R"({"spec": {"backupSchedule": null}})");
  run_for(1min);
  EXPECT_EQ(condition("BackupsOnTime"), "");
}

TEST_F(BackupTest, AScheduleThatIsSetAgainHasMissedNothing) {
  const auto* hourly = R"({"spec": {"backupSchedule": {"schedule": "@hourly", "storage": {"claimName": "backups"}}}})";
  given_running();
  given_claim();
  patch(hourly);
  run_for(30min);
  patch(R"({"spec": {"backupSchedule": null}})");
  run_for(3h);
  patch(hourly);
  run_for(5min);
  EXPECT_THAT(jobs(), IsEmpty());
  run_for(1h);
  EXPECT_EQ(jobs().size(), 1U);
}

TEST_F(BackupTest, AScheduleThatIsNoneIsReportedAndRaisesTheAlertForOverdueBackups) {
  auto& overdue = metrics.gauge("hubferry_mysql_clusters_with_overdue_backup",
                                "MySQL clusters that missed two scheduled backups in a row.");
  given_running(R"({"backupSchedule": {"schedule": "every night", "storage": {"claimName": "backups"}}})");
  run_for(1min);
  EXPECT_EQ(condition("BackupsOnTime"), "False BackupScheduleInvalid") << status_text();
  EXPECT_EQ(overdue.value(), 1);
  EXPECT_GE(events("BackupScheduleInvalid"), 1U);
  patch(R"({"spec": {"backupSchedule": {"schedule": "@daily"}}})");
  run_for(1min);
  EXPECT_EQ(condition("BackupsOnTime"), "True OnTime") << status_text();
  EXPECT_EQ(overdue.value(), 0);
}

TEST_F(BackupTest, AScheduleThatWasNoneForAWhileHasMissedNothing) {
  given_running(R"({"backupSchedule": {"schedule": "@hourly", "storage": {"claimName": "backups"}}})");
  given_claim();
  run_for(30min);
  patch(R"({"spec": {"backupSchedule": {"schedule": "@howrly"}}})");
  run_for(3h);
  patch(R"({"spec": {"backupSchedule": {"schedule": "@hourly"}}})");
  run_for(5min);
  EXPECT_THAT(jobs(), IsEmpty());
}

TEST_F(BackupTest, BackupRunningSaysThatTheLastOneFailed) {
  given_running();
  given_claim();
  given_backup();
  run_for(2s);
  EXPECT_EQ(condition("BackupRunning"), "True JobCreated");
  for (const auto* attempt : {"full-1", "full-2", "full-3", "full-4"}) {
    end_job(attempt, "Failed");
    run_for(5min);
  }
  EXPECT_EQ(backup_phase(), "Failed");
  EXPECT_EQ(condition("BackupRunning"), "False BackupFailed");
  EXPECT_EQ(condition_message("BackupRunning"), "backup full failed");
}

}  // namespace
}  // namespace hubferry::mysql::test
