// Replicas that are not as they should be.
#include "failover_fixture.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(FailoverTest, AnOldPrimaryWithAnExtraTransactionIsReportedAndNotAttached) {
  given_running();
  EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  // Committed there, received by nobody.
  for (auto* pod : {"demo-1", "demo-2"}) mysql.at(pod).replica->io = false;
  EXPECT_FALSE(mysql.write(mysql.at("demo-0").address)) << "semi-synchronous: not acknowledged";
  kill_primary();
  run_for(3min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  EXPECT_EQ(condition("ReplicasHealthy"), "False ErrantTransactions");
  EXPECT_THAT(condition_message("ReplicasHealthy"), HasSubstr("demo-0"));
  EXPECT_FALSE(mysql.at("demo-0").replica);
  EXPECT_TRUE(mysql.at("demo-0").read_only);
  EXPECT_EQ(mysql.at("demo-0").log.size(), 2U) << "its data is not touched";
  EXPECT_TRUE(exists(kinds::persistent_volume_claims, "data-demo-0"));
}

TEST_F(FailoverTest, WithoutTheGrantForReplicationTheServersThemselvesAreAsked) {
  given_running();
  for (auto& [pod, one] : mysql.servers()) one.exporter_may_see_replication = false;
  run_for(1min);
  EXPECT_EQ(phase(), "Running");
  EXPECT_EQ(condition("ReplicasHealthy"), "True Replicating") << status_text();
  kill_primary();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  expect_one_primary_with_replicas();
}

TEST_F(FailoverTest, AReplicaThatDoesNotReplicateLeavesTheReadServiceAndIsStartedAgain) {
  given_running();
  mysql.at("demo-2").replica->sql = false;
  run_for(11s);
  EXPECT_THAT(readers(), ElementsAre("demo-1"));
  run_for(1min);
  EXPECT_THAT(readers(), ElementsAre("demo-1", "demo-2")) << status_text();
  mysql.at("demo-2").delay = 100;
  run_for(1min);
  EXPECT_THAT(readers(), ElementsAre("demo-1"));
}

TEST_F(FailoverTest, AReplicaThatLagsIsReportedAndLeavesTheReadService) {
  given_running();
  mysql.at("demo-1").delay = 100;
  run_for(1min);
  EXPECT_EQ(condition("ReplicasHealthy"), "False Lagging") << status_text();
  EXPECT_THAT(condition_message("ReplicasHealthy"), HasSubstr("demo-1"));
  EXPECT_THAT(readers(), ElementsAre("demo-2"));
  const auto gauge = [&](const char* name, const char* help) { return metrics.gauge(name, help).value(); };
  EXPECT_EQ(gauge("hubferry_mysql_clusters_with_lagging_replicas",
                  "MySQL clusters with a replica that is further behind than its spec allows."),
            1);
  EXPECT_EQ(gauge("hubferry_mysql_clusters_with_unhealthy_replicas",
                  "MySQL clusters with a replica that does not replicate."),
            0);
  mysql.at("demo-1").delay.reset();
  run_for(1min);
  EXPECT_EQ(condition("ReplicasHealthy"), "True Replicating");
}

TEST_F(FailoverTest, AStrayWritableServerIsMadeReadOnly) {
  given_running();
  mysql.at("demo-2").read_only = false;
  run_for(20s);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0")) << status_text();
}

// A user may see the status of a cluster without the right to read its data.
TEST_F(FailoverTest, AReplicationErrorIsReportedByItsNumberWithoutAValueOrAStatement) {
  given_running();
  auto& server_1 = mysql.at("demo-1");
  server_1.replica->sql_error = 1062;
  server_1.sql_error_text =
      "Could not execute Write_rows_v1 event on table app.t; Duplicate entry 'hidden' for key 'PRIMARY', "
      "Error_code: 1062; handler error HA_ERR_FOUND_DUPP_KEY; the event's master log binlog.000002, end_log_pos 1234";
  server_1.replica->sql = false;
  run_for(1min);
  EXPECT_THAT(condition_message("ReplicasHealthy"), HasSubstr("demo-1: applying ended with error 1062 (a row with"));
  server_1.replica->sql_error = 1396;
  server_1.sql_error_text = "Error 'x' on query. Default database: ''. Query: 'SET PASSWORD = hidden'";
  run_for(1min);
  EXPECT_THAT(condition_message("ReplicasHealthy"), HasSubstr("error 1396"));
  kill_primary();
  run_for(2min);
  std::string seen = status_text();
  for (const auto& event : server.objects(kube::resources::events)) seen += json::serialize(event.json());
  EXPECT_THAT(seen, testing::Not(HasSubstr("hidden")));
}

}  // namespace
}  // namespace hubferry::mysql::test
