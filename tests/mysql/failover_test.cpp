// When a primary is replaced, and by whom.
#include "failover_fixture.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(FailoverTest, ADeadPrimaryIsReplacedAndComesBackAsAReplica) {
  given_running();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  kill_primary();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1");
  expect_one_primary_with_replicas();
  EXPECT_EQ(condition("FailoverInProgress"), "False FailoverComplete");
  EXPECT_EQ(condition("PrimaryHealthy"), "True HeartbeatOK");
  EXPECT_EQ(event_notes("FailoverSuccess"), std::vector<std::string>{"Replica demo-1 promoted to Primary"});
  EXPECT_EQ(failovers(), 1);
  EXPECT_DOUBLE_EQ(failover_seconds().sum(),
                   cluster().find({"status", "lastFailover", "seconds"})->to_number<double>());
  EXPECT_GT(failover_seconds().sum(), 0) << "from the third failed probe";
  EXPECT_LT(failover_seconds().sum(), 10);
  EXPECT_EQ(phase(), "Running") << "a failover does not change the phase";
  EXPECT_EQ(mysql.at("demo-1").log.size(), 5U);
}

TEST_F(FailoverTest, TwoBadProbesAndAGoodOneAreNoReason) {
  given_running();
  mysql.at("demo-0").exporter_runs = false;
  for (auto* pod : {"demo-1", "demo-2"}) mysql.at(pod).replica->io = false;  // nobody vouches for it
  run_for(19s);
  mysql.at("demo-0").exporter_runs = true;
  run_for(5min);
  EXPECT_EQ(primary(), "demo-0");
}

TEST_F(FailoverTest, AHangingPrimaryIsReplacedAfterItsPodIsGone) {
  given_running();
  const auto uid = std::string{server.object(kinds::pods, {"db", "demo-0"})->uid()};
  mysql.at("demo-0").hangs = true;
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  EXPECT_NE(server.object(kinds::pods, {"db", "demo-0"})->uid(), uid);
  expect_one_primary_with_replicas();
}

TEST_F(FailoverTest, WhileReplicasAreConnectedThePrimaryLives) {
  given_running();
  mysql.at("demo-0").exporter_runs = false;
  run_for(5min);
  EXPECT_EQ(primary(), "demo-0");
  EXPECT_EQ(condition("PrimaryHealthy"), "False PrimaryUnreachable");
  EXPECT_THAT(condition_message("PrimaryHealthy"), HasSubstr("replicas are still connected"));
  EXPECT_THAT(writers(), ElementsAre("demo-0")) << "applications can still write";
}

TEST_F(FailoverTest, AnOperatorThatIsCutOffDoesNothing) {
  given_running();
  for (const auto& [pod, one] : mysql.servers()) mysql.cut_off.insert(one.address);
  run_for(5min);
  EXPECT_EQ(primary(), "demo-0");
  EXPECT_EQ(condition("PrimaryHealthy"), "False ProbeUnknown");
  EXPECT_EQ(condition("FailoverInProgress"), "False NoFailover");
}

TEST_F(FailoverTest, WhenACutEndsThePrimaryIsNotReplacedForAnsweringLast) {
  given_running();
  for (const auto& [pod, one] : mysql.servers()) mysql.cut_off.insert(one.address);
  for (auto* pod : {"demo-1", "demo-2"}) mysql.at(pod).replica->io = false;  // nobody vouches for it
  run_for(2min);
  ASSERT_EQ(condition("PrimaryHealthy"), "False ProbeUnknown") << status_text();
  for (auto* pod : {"demo-1", "demo-2"}) mysql.cut_off.erase(mysql.at(pod).address);
  run_for(15s);
  mysql.cut_off.clear();
  run_for(1min);
  EXPECT_EQ(primary(), "demo-0") << status_text();
  EXPECT_EQ(condition("PrimaryHealthy"), "True HeartbeatOK");
}

TEST_F(FailoverTest, ADeadPrimaryIsReplacedThoughItsOnlyReplicaMissesEverySecondProbe) {
  given_running(R"({"replicas": 2})");
  kill_primary();
  for (int round = 0; round < 12; ++round) {
    mysql.at("demo-1").exporter_runs = round % 2 == 0;
    run_for(10s);
  }
  EXPECT_EQ(primary(), "demo-1") << status_text();
}

TEST_F(FailoverTest, APrimaryThatDiedDuringACutIsReplacedAfterItsEnd) {
  given_running();
  for (const auto& [pod, one] : mysql.servers()) mysql.cut_off.insert(one.address);
  run_for(2min);
  kill_primary();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-0");
  mysql.cut_off.clear();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  expect_one_primary_with_replicas();
}

TEST_F(FailoverTest, WithoutAnyExporterThePrimaryItselfIsAskedBeforeItIsReplaced) {
  given_running();
  for (auto& [pod, one] : mysql.servers()) one.exporter_runs = false;
  for (auto* pod : {"demo-1", "demo-2"}) mysql.at(pod).replica->io = false;
  run_for(3min);
  EXPECT_EQ(primary(), "demo-0") << status_text();
  EXPECT_THAT(condition_message("PrimaryHealthy"), HasSubstr("the server itself answers"));
  kill_primary();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
}

TEST_F(FailoverTest, ADeliberatelyReadOnlyClusterDoesNotFailOver) {
  given_running();
  patch(R"({"spec": {"readOnly": true}})");
  run_for(1min);
  EXPECT_THAT(mysql.writable(), IsEmpty()) << status_text();
  EXPECT_EQ(condition("PrimaryHealthy"), "True HeartbeatOK");
  mysql.at("demo-0").runs = false;
  run_for(5min);
  EXPECT_EQ(primary(), "demo-0");
  EXPECT_THAT(mysql.writable(), IsEmpty());
}

TEST_F(FailoverTest, ASingleServerHasNothingToFailOverTo) {
  given_running(R"({"replicas": 1})");
  kill_primary();
  run_for(5min);
  EXPECT_EQ(primary(), "demo-0");
  EXPECT_EQ(condition("PrimaryHealthy"), "False NoPrimary");
}

TEST_F(FailoverTest, TheReplicaThatReceivedMostIsPromotedWhateverItsLag) {
  given_running();
  mysql.write(mysql.at("demo-0").address);
  mysql.at("demo-1").replica->io = false;
  EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  kill_primary();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-2") << status_text();
  EXPECT_EQ(mysql.at("demo-2").log.size(), 2U);
}

TEST_F(FailoverTest, WhatWasReceivedIsAppliedBeforeTheRelayLogIsDeleted) {
  given_running(R"({"replicas": 2})");
  mysql.at("demo-1").replica->sql = false;
  EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  ASSERT_EQ(mysql.at("demo-1").replica->relay.size(), 1U);
  kill_primary();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  EXPECT_EQ(mysql.at("demo-1").log.size(), 1U);
}

// Starting one of its threads would delete the relay log, which nobody else has any more.
TEST_F(FailoverTest, AReplicaWithBothThreadsStoppedAndUnappliedTransactionsIsNotTouched) {
  given_running(R"({"replicas": 2})");
  mysql.at("demo-1").replica->sql = false;
  EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  stop_operator();
  mysql.at("demo-1").replica->io = false;
  kill_primary();
  start_operator();
  run_for(2min);
  EXPECT_EQ(phase(), "Failed") << status_text();
  EXPECT_EQ(mysql.at("demo-1").replica->relay.size(), 1U);
}

TEST_F(FailoverTest, AReplicaThatDoesNotApplyInTimeIsNotPromotedAndKeepsItsRelayLog) {
  given_running(R"({"replicas": 2})");
  mysql.at("demo-1").delay = 5;
  EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  kill_primary();
  run_for(3min);
  EXPECT_EQ(phase(), "Failed") << status_text();
  EXPECT_EQ(condition("FailoverInProgress"), "False FailoverAborted");
  EXPECT_EQ(events("FailoverFailed"), 1U);
  EXPECT_THAT(mysql.writable(), IsEmpty());
  EXPECT_EQ(mysql.at("demo-1").replica->relay.size(), 1U);
}

// Its last lag is that of a time when the primary lived: without a primary there is no other.
TEST_F(FailoverTest, AReplicaThatLaggedTooMuchIsPromotedWhenItHasAppliedEverything) {
  given_running(R"({"drainTimeoutSeconds": 5})");
  for (auto* pod : {"demo-1", "demo-2"}) mysql.at(pod).delay = 100;
  EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  run_for(30s);
  mysql.at("demo-0").away = true;
  run_for(3min);
  EXPECT_EQ(phase(), "Failed") << status_text();
  EXPECT_THAT(mysql.writable(), IsEmpty());
  for (auto* pod : {"demo-1", "demo-2"}) mysql.at(pod).delay.reset();
  run_for(1min);
  annotate("reconcile", "now");
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  EXPECT_EQ(mysql.at("demo-1").log.size(), 1U);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-1"));
}

TEST_F(FailoverTest, AReplicaWithAnSqlErrorIsNotEligible) {
  given_running();
  mysql.at("demo-1").replica->sql_error = 1062;
  mysql.at("demo-1").replica->sql = false;
  kill_primary();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-2") << status_text();
  EXPECT_EQ(condition("ReplicasHealthy"), "False NotReplicating");
}

TEST_F(FailoverTest, WithoutAnEligibleReplicaTheClusterFailsUntilAPersonHasRepairedOne) {
  given_running();
  for (auto* pod : {"demo-1", "demo-2"}) mysql.at(pod).replica->sql_error = 1062;
  kill_primary();
  run_for(2min);
  EXPECT_EQ(phase(), "Failed") << status_text();
  EXPECT_THAT(mysql.writable(), IsEmpty());
  mysql.at("demo-2").replica->sql_error = 0;
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/reconcile": "now"}}})");
  run_for(2min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_THAT(mysql.writable(), ElementsAre(primary()));
}

TEST_F(FailoverTest, ASecondFailureWaitsForTheCoolDown) {
  given_running();
  kill_primary();
  run_for(90s);
  ASSERT_EQ(primary(), "demo-1") << status_text();
  kill_primary();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1");
  EXPECT_THAT(condition_message("PrimaryHealthy"), HasSubstr("cool-down"));
  run_for(5min);
  EXPECT_NE(primary(), "demo-1") << status_text();
  expect_one_primary_with_replicas();
}

TEST_F(FailoverTest, TheEndpointIsEmptyBeforeItNamesTheNewPrimary) {
  given_running();
  std::vector<std::vector<std::string>> seen;
  kill_primary();
  for (int i = 0; i < 12000; ++i) {
    run_for(10ms);
    if (seen.empty() || seen.back() != writers()) seen.push_back(writers());
  }
  EXPECT_THAT(seen, ElementsAre(ElementsAre("demo-0"), IsEmpty(), ElementsAre("demo-1")));
}

TEST_F(FailoverTest, AnEmptySliceKeepsItsAddressType) {
  mysql.is_v6 = true;
  given_running();
  kill_primary();
  bool was_empty = false;
  for (int i = 0; i < 12000; ++i) {
    run_for(10ms);
    was_empty = was_empty || writers().empty();
    ASSERT_EQ(server.object(kinds::endpoint_slices, {"db", "demo-mysql-write"})->string_at({"addressType"}), "IPv6");
  }
  EXPECT_TRUE(was_empty);
}

}  // namespace
}  // namespace hubferry::mysql::test
