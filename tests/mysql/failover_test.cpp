#include "mysql_test.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FailoverTest : public MysqlTest {
 protected:
  void kill_primary() { mysql.at(primary()).runs = false; }
  void annotate(const std::string& name, const std::string& text) {
    patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/)" + name + R"(": ")" + text + R"("}}})");
  }
  /// The kubelet deletes a pod at the operator's wish, and the StatefulSet makes it again: its server comes back.
  void expect_one_primary_with_replicas() {
    const auto name = primary();
    EXPECT_THAT(mysql.writable(), ElementsAre(name)) << status_text();
    EXPECT_THAT(writers(), ElementsAre(name));
    EXPECT_FALSE(mysql.at(name).replica) << "a primary replicates from nobody";
    for (const auto& [pod, one] : mysql.servers()) {
      if (pod == name) continue;
      ASSERT_TRUE(one.replica) << pod << status_text();
      EXPECT_EQ(one.replica->host, mysql.at(name).address) << pod;
      EXPECT_TRUE(one.replica->io && one.replica->sql) << pod;
    }
  }
  [[nodiscard]] double failovers() {
    return static_cast<double>(
        metrics
            .histogram("mysqlcluster_failover_seconds",
                       "Duration of failovers, from the third failed probe until writes go to the new primary.",
                       obs::exponential_buckets(0.25, 2, 12))
            .count());
  }
};

TEST_F(FailoverTest, ADeadPrimaryIsReplacedAndComesBackAsAReplica) {
  given_running();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  kill_primary();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1");
  expect_one_primary_with_replicas();
  EXPECT_EQ(condition("FailoverInProgress"), "False FailoverComplete");
  EXPECT_EQ(condition("PrimaryHealthy"), "True HeartbeatOK");
  EXPECT_EQ(events("FailoverSuccess"), 1U);
  EXPECT_EQ(failovers(), 1);
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

TEST_F(FailoverTest, APrimaryThatBecameReadOnlyIsMadeWritableAgain) {
  given_running();
  mysql.at("demo-0").read_only = true;
  run_for(15s);
  EXPECT_TRUE(mysql.at("demo-0").read_only) << "three probes";
  run_for(30s);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0")) << status_text();
  EXPECT_EQ(failovers(), 0);
}

TEST_F(FailoverTest, ARestartedPrimaryStaysPrimaryAndAYoungServerIsLeftAlone) {
  given_running();
  mysql.at("demo-0").runs = false;
  run_for(12s);
  mysql.restart("demo-0");
  async::TimePoint made_writable{};
  mysql.on_statement = [&](const std::string&, const std::string& statement) {
    if (statement == "SET GLOBAL read_only=0") made_writable = loop.clock().now();
  };
  run_for(2min);
  EXPECT_EQ(primary(), "demo-0") << status_text();
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0"));
  EXPECT_GE(made_writable - mysql.at("demo-0").started, 15s);
}

TEST_F(FailoverTest, ARestartedPrimaryThatLostTransactionsIsReplaced) {
  given_running();
  for (int i = 0; i < 3; ++i) mysql.write(mysql.at("demo-0").address);
  mysql.at("demo-0").log.pop_back();
  mysql.restart("demo-0");
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  EXPECT_EQ(mysql.at("demo-1").log.size(), 3U);
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

TEST_F(FailoverTest, ASwitchoverLosesNothingAndTheOldPrimaryFollowsAtOnce) {
  given_running();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/switchover": "demo-2"}}})");
  run_for(20s);
  EXPECT_EQ(primary(), "demo-2") << status_text();
  expect_one_primary_with_replicas();
  EXPECT_EQ(mysql.at("demo-2").log.size(), 5U);
  EXPECT_EQ(failovers(), 0) << "a planned one is no failure to be measured";
}

/// demo-2 alone has the last acknowledged transaction, and the primary is dead.
class LastCopyTest : public FailoverTest {
 protected:
  void given_last_copy_on_demo_2() {
    given_running();
    EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
    mysql.at("demo-1").replica->io = false;
    EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  }
  void run_until_chosen() {
    for (int i = 0; i < 120000 && cluster().string_at({"status", "failover", "to"}).empty(); ++i) run_for(1ms);
    ASSERT_EQ(cluster().string_at({"status", "failover", "to"}), "demo-2") << status_text();
  }
};

TEST_F(LastCopyTest, AChosenReplicaThatIsAwayForAMomentIsWaitedFor) {
  given_last_copy_on_demo_2();
  kill_primary();
  run_until_chosen();
  mysql.cut_off.insert(mysql.at("demo-2").address);
  run_for(16s);
  mysql.cut_off.clear();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-2") << status_text();
  EXPECT_EQ(mysql.at("demo-2").log.size(), 2U);
  expect_one_primary_with_replicas();
}

TEST_F(LastCopyTest, AChosenReplicaThatIsGivenUpIsNotFollowedByOneThatLacksItsTransactions) {
  given_last_copy_on_demo_2();
  kill_primary();
  run_until_chosen();
  mysql.at("demo-2").hangs = true;
  run_for(5min);
  EXPECT_EQ(phase(), "Failed") << status_text();
  EXPECT_THAT(mysql.writable(), IsEmpty());
}

TEST_F(LastCopyTest, AReplicaThatIsAwayDuringTheFailoverIsWaitedFor) {
  given_last_copy_on_demo_2();
  kill_primary();
  mysql.cut_off.insert(mysql.at("demo-2").address);
  run_for(80s);
  EXPECT_EQ(condition("FailoverInProgress"), "True PromoteReplica") << status_text();
  EXPECT_THAT(condition_message("FailoverInProgress"), HasSubstr("waiting for demo-2"));
  EXPECT_THAT(mysql.writable(), IsEmpty());
  mysql.cut_off.clear();
  run_for(1min);
  EXPECT_EQ(primary(), "demo-2") << status_text();
  EXPECT_EQ(mysql.at("demo-2").log.size(), 2U);
}

/// The nodes of the primary and of demo-2 are lost: demo-1 alone is left, without the last transaction.
class LostNodesTest : public LastCopyTest {
 protected:
  void given_failed() {
    given_last_copy_on_demo_2();
    for (auto* pod : {"demo-0", "demo-2"}) mysql.at(pod).away = true;
    run_for(5min);
    ASSERT_EQ(phase(), "Failed") << status_text();
  }
};

TEST_F(LostNodesTest, AReplicaThatStaysAwayMakesTheClusterFailAndNotLose) {
  given_failed();
  EXPECT_THAT(condition_message("FailoverInProgress"), HasSubstr("demo-2 did not answer"));
  EXPECT_THAT(mysql.writable(), IsEmpty());
  annotate("reconcile", "now");
  run_for(5min);
  EXPECT_EQ(phase(), "Failed") << "to try again is no consent to a loss: " << status_text();
  EXPECT_THAT(mysql.writable(), IsEmpty());
}

TEST_F(LostNodesTest, ThePodOfTheOldPrimaryIsDeletedOnceHoweverLongTheFailoverWaits) {
  given_last_copy_on_demo_2();
  for (auto* pod : {"demo-0", "demo-2"}) mysql.at(pod).away = true;
  run_for(20s);
  server.forget_requests();
  run_for(15s);
  EXPECT_EQ(condition("FailoverInProgress"), "True PromoteReplica") << status_text();
  EXPECT_EQ(std::ranges::count(writes_since_forgotten(), "delete pods demo-0"), 1);
}

TEST_F(LostNodesTest, AnOldPrimaryThatIsBackHasMoreThanWhoIsLeftAndStaysThePrimary) {
  given_last_copy_on_demo_2();
  kill_primary();
  mysql.at("demo-2").away = true;
  run_for(4min);
  EXPECT_EQ(phase(), "Failed") << status_text();
  EXPECT_THAT(mysql.writable(), IsEmpty());
  annotate("give-up", "demo-2");
  run_for(1min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0")) << status_text();
  EXPECT_THAT(writers(), ElementsAre("demo-0"));
  EXPECT_EQ(mysql.at("demo-0").log.size(), 2U);
  mysql.at("demo-2").away = false;
  run_for(2min);
  expect_one_primary_with_replicas();
}

// The consent comes while the failover waits: the pod of the old primary was made again meanwhile.
TEST_F(LostNodesTest, AFailoverThatWaitsEndsWithTheOldPrimaryIfTheOtherIsGivenUp) {
  given_last_copy_on_demo_2();
  kill_primary();
  mysql.at("demo-2").away = true;
  run_for(80s);
  ASSERT_EQ(condition("FailoverInProgress"), "True PromoteReplica") << status_text();
  annotate("give-up", "demo-2");
  run_for(1min);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0")) << status_text();
  EXPECT_EQ(condition("FailoverInProgress"), "False NoFailover");
  EXPECT_EQ(events("FailoverFailed"), 0U);
}

/// The primary crashed and is back at once, without the last transaction: its recovery has rolled it back.
class RecoveredPrimaryTest : public LastCopyTest {
 protected:
  void given_recovered_primary() {
    given_last_copy_on_demo_2();
    recover_primary();
  }
  void recover_primary() {
    mysql.restart("demo-0");
    mysql.at("demo-0").log.pop_back();
  }
  /// Nobody writes before demo-2 was asked, and then nothing is lost.
  void expect_demo_2_is_waited_for() {
    EXPECT_THAT(mysql.writable(), IsEmpty()) << status_text();
    EXPECT_EQ(condition("PrimaryHealthy"), "False PrimaryReadOnly");
    EXPECT_THAT(condition_message("PrimaryHealthy"), HasSubstr("may lack what demo-2 received"));
    EXPECT_THAT(condition_message("PrimaryHealthy"), HasSubstr("mysql.hubferry.io/give-up"));
    mysql.at("demo-2").away = false;
    run_for(2min);
    EXPECT_EQ(primary(), "demo-2") << status_text();
    EXPECT_EQ(mysql.at("demo-2").log.size(), 2U);
    expect_one_primary_with_replicas();
  }
};

TEST_F(RecoveredPrimaryTest, WhileTheReplicaIsAwayThatMayHaveMoreItStaysReadOnly) {
  given_recovered_primary();
  mysql.at("demo-2").away = true;
  run_for(3min);
  expect_demo_2_is_waited_for();
}

// The uptime says nothing to an operator that has not seen this server writable.
TEST_F(RecoveredPrimaryTest, AnOperatorThatStartsLongAfterwardsKeepsItReadOnlyToo) {
  given_last_copy_on_demo_2();
  stop_operator();
  recover_primary();
  mysql.at("demo-2").away = true;
  run_for(5min);
  start_operator();
  run_for(3min);
  expect_demo_2_is_waited_for();
}

TEST_F(RecoveredPrimaryTest, WhoIsGivenUpIsNotWaitedForByAnOperatorThatStartsLongAfterwards) {
  given_last_copy_on_demo_2();
  stop_operator();
  recover_primary();
  mysql.at("demo-2").away = true;
  run_for(5min);
  start_operator();
  run_for(3min);
  ASSERT_THAT(mysql.writable(), IsEmpty()) << status_text();
  annotate("give-up", "demo-2");
  run_for(1min);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0")) << status_text();
  EXPECT_EQ(cluster().find({"status", "givenUp"}), nullptr) << "the consent was for this failure";
}

// The first strike comes late: then the primary is up for long, and demo-2 was away before.
TEST_F(RecoveredPrimaryTest, AfterProbesThatCouldNotTellItStaysReadOnlyToo) {
  given_last_copy_on_demo_2();
  mysql.at("demo-0").exporter_may_see_variables = false;
  recover_primary();
  mysql.at("demo-2").away = true;
  run_for(2min);
  mysql.at("demo-0").exporter_may_see_variables = true;
  run_for(3min);
  expect_demo_2_is_waited_for();
}

TEST_F(RecoveredPrimaryTest, AfterASwitchoverThatIsGivenUpItStaysReadOnlyToo) {
  given_running(R"({"drainTimeoutSeconds": 5})");
  EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  mysql.replicate();
  mysql.at("demo-1").replica->io = false;
  EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  bool crashed = false;
  mysql.on_statement = [&](const std::string& pod, const std::string& statement) {
    if (crashed || pod != "demo-1" || !statement.starts_with("SELECT MASTER_GTID_WAIT")) return;
    crashed = true;
    mysql.at("demo-2").away = true;
    recover_primary();
  };
  annotate("switchover", "demo-1");
  run_for(3min);
  ASSERT_TRUE(crashed) << status_text();
  EXPECT_EQ(condition("FailoverInProgress"), "False FailoverAborted") << status_text();
  expect_demo_2_is_waited_for();
}

// Applications may write as soon as there is a primary, long before the last replica is attached.
TEST_F(RecoveredPrimaryTest, WhileTheClusterIsCreatedItStaysReadOnlyToo) {
  given_cluster();
  for (int i = 0; i < 600 && mysql.servers().size() < 3; ++i) run_for(100ms);
  mysql.at("demo-1").exporter_runs = false;
  run_for(1min);
  ASSERT_EQ(phase(), "Creating") << status_text();
  ASSERT_THAT(mysql.writable(), ElementsAre("demo-0"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
    mysql.at("demo-1").replica->io = false;
  }
  recover_primary();
  mysql.at("demo-2").away = true;
  run_for(3min);
  EXPECT_THAT(mysql.writable(), IsEmpty()) << status_text();
  EXPECT_THAT(condition_message("PrimaryHealthy"), HasSubstr("may lack what demo-2 received"));
  mysql.at("demo-2").away = false;
  mysql.at("demo-1").exporter_runs = true;
  run_for(2min);
  EXPECT_EQ(phase(), "Failed") << status_text();
  EXPECT_THAT(mysql.writable(), IsEmpty());
  annotate("reconcile", "now");
  run_for(3min);
  EXPECT_EQ(primary(), "demo-2") << status_text();
  EXPECT_EQ(mysql.at("demo-2").log.size(), 2U);
  expect_one_primary_with_replicas();
}

TEST_F(FailoverTest, APrimaryThatWasNotRestartedIsMadeWritableAgainWhoeverIsAway) {
  given_running();
  mysql.at("demo-0").read_only = true;
  mysql.at("demo-2").away = true;
  run_for(1min);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0")) << status_text();
}

TEST_F(FailoverTest, ARestartedPrimaryWithoutItsOnlyReplicaIsMadeWritableWhenThatIsGivenUp) {
  given_running(R"({"replicas": 2})");
  mysql.restart("demo-0");
  mysql.at("demo-1").away = true;
  run_for(5min);
  EXPECT_THAT(mysql.writable(), IsEmpty()) << status_text();
  EXPECT_THAT(condition_message("PrimaryHealthy"), HasSubstr("may lack what demo-1 received"));
  annotate("give-up", "demo-1");
  run_for(1min);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0")) << status_text();
}

TEST_F(FailoverTest, WhatWasRestartedWithoutAnOperatorIsMadeWritableIfAllReplicasAnswer) {
  given_running();
  stop_operator();
  for (auto* pod : {"demo-0", "demo-1", "demo-2"}) mysql.restart(pod);
  run_for(5min);
  start_operator();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-0");
  expect_one_primary_with_replicas();
}

TEST_F(FailoverTest, ASingleServerThatWasRestartedWithoutAnOperatorIsMadeWritable) {
  given_running(R"({"replicas": 1})");
  stop_operator();
  mysql.restart("demo-0");
  run_for(5min);
  start_operator();
  run_for(1min);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0")) << status_text();
}

TEST_F(RecoveredPrimaryTest, WithinTheCoolDownItStaysReadOnlyToo) {
  given_recovered_primary();
  stop_operator();
  const auto now = async::format_time(loop.clock().wall_now());
  patch(R"({"status": {"lastFailover": {"failureTime": ")" + now + R"("}}})", mysql_clusters, "demo", "status");
  start_operator();
  run_for(3min);
  EXPECT_THAT(mysql.writable(), IsEmpty()) << status_text();
  EXPECT_THAT(condition_message("PrimaryHealthy"), HasSubstr("cool-down"));
  run_for(4min);
  EXPECT_EQ(primary(), "demo-2") << status_text();
}

TEST_F(LostNodesTest, AReplicaThatIsGivenUpIsNotWaitedForAndItsReturnIsReported) {
  given_failed();
  annotate("give-up", "demo-2");
  run_for(2min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_EQ(primary(), "demo-1");
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-1"));
  EXPECT_EQ(cluster().string_at({"status", "lastFailover", "without"}), "demo-2");
  EXPECT_EQ(cluster().annotation("mysql.hubferry.io/give-up"), "");
  EXPECT_EQ(cluster().find({"status", "givenUp"}), nullptr) << "the consent was for this failover";
  EXPECT_EQ(events("ServersGivenUp"), 1U);
  mysql.at("demo-2").away = false;
  run_for(2min);
  EXPECT_EQ(condition("ReplicasHealthy"), "False ErrantTransactions") << status_text();
  EXPECT_EQ(mysql.at("demo-2").log.size(), 2U) << "its data is not touched";
  EXPECT_TRUE(mysql.at("demo-2").read_only);
}

TEST_F(LostNodesTest, AReplicaThatIsGivenUpAndReturnsInTimeIsPromotedAllTheSame) {
  given_failed();
  mysql.at("demo-2").away = false;
  annotate("give-up", "demo-2");
  run_for(2min);
  EXPECT_EQ(primary(), "demo-2") << status_text();
  EXPECT_EQ(mysql.at("demo-2").log.size(), 2U);
}

// It answers, but cannot be promoted, and keeps the other from it.
TEST_F(LostNodesTest, AReplicaWithAnErrorThatIsGivenUpLetsTheOthersContinue) {
  given_last_copy_on_demo_2();
  mysql.at("demo-2").replica->sql_error = 1062;
  mysql.at("demo-0").away = true;
  run_for(3min);
  ASSERT_EQ(phase(), "Failed") << status_text();
  annotate("give-up", "demo-2");
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  EXPECT_EQ(cluster().string_at({"status", "lastFailover", "without"}), "demo-2");
}

TEST_F(LostNodesTest, ThePrimaryAndStrangersCannotBeGivenUp) {
  given_failed();
  for (const auto* text : {"demo-0", "other-1", ","}) {
    annotate("give-up", text);
    run_for(4min);
    EXPECT_EQ(cluster().annotation("mysql.hubferry.io/give-up"), "") << text;
    EXPECT_THAT(mysql.writable(), IsEmpty()) << text;
  }
  EXPECT_GE(events("GiveUpRefused"), 1U);
}

TEST_F(LostNodesTest, WithAHealthyPrimaryGivingUpMeansNothing) {
  given_running();
  annotate("give-up", "demo-2");
  run_for(1min);
  EXPECT_EQ(cluster().annotation("mysql.hubferry.io/give-up"), "");
  EXPECT_EQ(cluster().find({"status", "givenUp"}), nullptr) << status_text();
  server.forget_requests();
  run_for(5min);
  EXPECT_THAT(writes_since_forgotten(), IsEmpty());
}

TEST_F(LastCopyTest, ASwitchoverFromAPrimaryWhosePodIsGoneComparesTheReplicas) {
  given_last_copy_on_demo_2();
  server.faults().on({"get", "pods"}).times(1).fail(404);
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/switchover": "any"}}})");
  run_for(1min);
  EXPECT_EQ(primary(), "demo-2") << status_text();
  EXPECT_EQ(mysql.at("demo-2").log.size(), 2U);
}

TEST_F(FailoverTest, AReplicaThatWasDownLongBeforeThePrimaryIsNotWaitedFor) {
  given_running();
  mysql.at("demo-2").runs = false;
  run_for(2min);
  EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  kill_primary();
  run_for(1min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-1"));
}

TEST_F(FailoverTest, ASwitchoverThatIsGivenUpMakesThePrimaryWritableAgainAtOnce) {
  given_running(R"({"drainTimeoutSeconds": 5})");
  for (auto* pod : {"demo-1", "demo-2"}) mysql.at(pod).delay = 5;
  EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/switchover": "demo-1"}}})");
  for (int i = 0; i < 1000 && condition("FailoverInProgress") != "False FailoverAborted"; ++i) run_for(100ms);
  EXPECT_EQ(condition("FailoverInProgress"), "False FailoverAborted") << status_text();
  run_for(1s);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0")) << status_text();
  EXPECT_TRUE(mysql.at("demo-0").semi_sync);
  EXPECT_THAT(writers(), ElementsAre("demo-0"));
}

TEST_F(FailoverTest, TheOperatorsOwnSwitchoverPausesAfterItWasGivenUp) {
  given_running(R"({"drainTimeoutSeconds": 5})");
  std::size_t fenced = 0;
  mysql.on_statement = [&](const std::string& pod, const std::string& statement) {
    if (pod == "demo-0" && statement == "SET GLOBAL read_only=1") ++fenced;
  };
  // They report little lag, but do not apply what they received.
  for (auto* pod : {"demo-1", "demo-2"}) mysql.at(pod).delay = 1;
  EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  patch(R"({"spec": {"config": "max_connections=50"}})");
  for (int i = 0; i < 600 && fenced == 0; ++i) run_for(1s);
  ASSERT_EQ(fenced, 1U) << status_text();
  run_for(6min);
  EXPECT_EQ(condition("FailoverInProgress"), "False FailoverAborted") << status_text();
  EXPECT_EQ(fenced, 1U) << status_text();
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0"));
}

TEST_F(FailoverTest, ASwitchoverIsNoReasonForACoolDown) {
  given_running();
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/switchover": "demo-1"}}})");
  run_for(20s);
  ASSERT_EQ(primary(), "demo-1") << status_text();
  kill_primary();
  run_for(1min);
  EXPECT_NE(primary(), "demo-1") << status_text();
}

TEST_F(FailoverTest, TheStatementOfAnSqlErrorIsNotReported) {
  given_running();
  mysql.at("demo-1").sql_error_text = "Error 'x' on query. Default database: ''. Query: 'SET PASSWORD = hidden'";
  mysql.at("demo-1").replica->sql_error = 1396;
  mysql.at("demo-1").replica->sql = false;
  run_for(1min);
  EXPECT_THAT(condition_message("ReplicasHealthy"), HasSubstr("Error 'x' on query"));
  EXPECT_THAT(status_text(), testing::Not(HasSubstr("hidden")));
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

// The operator dies after each statement of a failover: the end is always the same.
TEST_F(FailoverTest, WhereverTheOperatorDiesItsSuccessorFinishesTheFailover) {
  given_running(R"({"failoverCoolDownSeconds": 0})");
  std::size_t survived = 0;
  for (std::size_t last = 1; last < 100; ++last) {
    const auto old = primary();
    const auto before = events("FailoverSuccess");
    std::size_t count = 0;
    bool died = false;
    bool is_failing_over = false;
    mysql.on_statement = [&](const std::string&, const std::string&) {
      is_failing_over = is_failing_over || condition("FailoverInProgress").starts_with("True");
      if (!is_failing_over || ++count != last) return;
      died = true;
      working->stop();
    };
    EXPECT_TRUE(mysql.write(mysql.at(old).address));
    const auto written = mysql.at(old).log.size();
    kill_primary();
    for (int i = 0; i < 240 && !died; ++i) run_for(500ms);
    mysql.on_statement = {};
    if (died) {
      stop_operator();
      start_operator();
    }
    run_for(3min);
    ASSERT_NE(primary(), old) << "died after statement " << last << status_text();
    expect_one_primary_with_replicas();
    ASSERT_EQ(condition("FailoverInProgress"), "False FailoverComplete") << last;
    ASSERT_GE(mysql.at(primary()).log.size(), written) << last;
    ASSERT_EQ(phase(), "Running");
    ASSERT_LE(events("FailoverSuccess"), before + 1);
    ++survived;
    if (!died) break;
  }
  EXPECT_GT(survived, 10U);
}

}  // namespace
}  // namespace hubferry::mysql::test
