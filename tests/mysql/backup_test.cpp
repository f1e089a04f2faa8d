#include <fstream>
#include <sstream>

#include "hubferry/kube/yaml.hpp"
#include "mysql_test.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class BackupTest : public MysqlTest {
 protected:
  void given_backup(const std::string& spec = R"({"cluster": "demo", "storage": {"claimName": "backups"}})",
                    const std::string& name = "full") {
    create(mysql_backups, R"({"metadata": {"name": ")" + name + R"(", "namespace": "db"}, "spec": )" + spec + "}");
  }
  void given_claim() {
    create(kinds::persistent_volume_claims, R"({"metadata": {"name": "backups", "namespace": "db"}, "spec": {}})");
  }
  [[nodiscard]] kube::Object backup(const std::string& name = "full") const {
    return server.object(mysql_backups, {"db", name}).value_or(kube::Object{});
  }
  [[nodiscard]] std::string backup_phase(const std::string& name = "full") const {
    return std::string{backup(name).string_at({"status", "phase"})};
  }
  void end_job(const std::string& name, const std::string& condition) {
    patch(
        R"({"status": {"startTime": "2030-01-01T00:01:00Z", "completionTime": "2030-01-01T00:04:12Z", "conditions": [{"type": ")" +
            condition + R"(", "status": "True"}]}})",
        kinds::jobs, name, "status");
    run_for(1s);
  }
  [[nodiscard]] std::vector<std::string> jobs() const {
    std::vector<std::string> names;
    for (const auto& job : server.objects(kinds::jobs)) names.emplace_back(job.name());
    return names;
  }
};

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
  EXPECT_EQ(events("BackupCompleted"), 1U);
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
}

TEST_F(BackupTest, WhatCannotStartFailsAtOnceWithTheReason) {
  given_backup();
  run_for(2s);
  EXPECT_EQ(backup_phase(), "Failed");
  EXPECT_THAT(std::string{backup().string_at({"status", "message"})}, HasSubstr("MySQLCluster demo does not exist"));
  given_running();
  given_backup(R"({"cluster": "demo", "storage": {"claimName": "nowhere"}})", "two");
  run_for(2s);
  EXPECT_THAT(std::string{backup("two").string_at({"status", "message"})}, HasSubstr("nowhere does not exist"));
  EXPECT_THAT(jobs(), IsEmpty());
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

/// Everything again with the rights of manifests/mysql and no others.
class MysqlRightsTest : public BackupTest {
 protected:
  MysqlRightsTest() {
    stop_operator();
    for (const auto* file : {"/cluster-role.yaml", "/role.yaml"}) {
      std::ifstream in{std::string{HUBFERRY_SOURCE_ROOT} + "/manifests/mysql" + file};
      std::stringstream text;
      text << in.rdbuf();
      for (const auto& document : kube::parse_yaml_documents(text.str(), file)) install(document.as_object());
    }
    limited = server.api_as({"system:serviceaccount:hubferry-mysql:hubferry-mysql", {"system:serviceaccounts"}, ""});
    ControllerOptions options;
    options.watch_namespace = "db";
    controller = std::make_unique<Controller>(*limited, mysql, mysql, options, env);
    working = std::make_unique<async::TaskScope>(loop.executor());
    working->spawn(controller->run());
  }
  void install(json::object object) {
    using namespace kube::resources;
    auto& metadata = object["metadata"].as_object();
    if (metadata.contains("namespace")) metadata["namespace"] = "db";
    for (const auto& kind : {cluster_roles, cluster_role_bindings, roles, role_bindings})
      if (object.at("kind").as_string() == kind.kind) EXPECT_TRUE(loop.run(server.api().create(kind, object)));
  }
  [[nodiscard]] std::vector<std::string> refused() const {
    std::vector<std::string> all;
    for (const auto& request : server.requests())
      if (request.outcome.starts_with("403"))
        all.push_back(request.verb + " " + request.resource + "/" + request.subresource + " " + request.key.name);
    return all;
  }
  std::unique_ptr<kube::Api> limited;
};

TEST_F(MysqlRightsTest, TheRoleOfTheManifestsIsSufficient) {
  given_running(R"({"rootPassword": "first", "failoverCoolDownSeconds": 0,
                    "backupSchedule": {"schedule": "0 * * * *", "storage": {"claimName": "backups"}}})");
  given_claim();
  given_backup();
  run_for(2s);
  end_job("full-1", "Complete");
  mysql.at("demo-0").runs = false;
  run_for(2min);
  patch(R"({"spec": {"rootPassword": "second", "storage": {"size": "20Gi"}, "replicas": 2}})");
  run_for(10min);
  patch(R"({"spec": {"mysqlVersion": "11.4"}})");
  run_for(10min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_FALSE(exists(kinds::persistent_volume_claims, "data-demo-2"));
  EXPECT_EQ(backup_phase(), "Succeeded");
  EXPECT_GE(events("FailoverSuccess"), 2U) << "one failure, and a switchover for each restart of the primary";
  EXPECT_THAT(refused(), IsEmpty());
  working->stop();
  loop.run(working->join());
  working.reset();
  controller.reset();
}

}  // namespace
}  // namespace hubferry::mysql::test
