// A replica that does not answer may alone have an acknowledged transaction.
#include "failover_fixture.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(LastCopyTest, AChosenReplicaThatIsAwayForAMomentIsWaitedFor) {
  given_last_copy_on_demo_2();
  kill_primary();
  run_until_chosen();
  cut_off_demo_2();
  run_for(16s);
  mysql.cut_off.clear();
  expect_demo_2_is_promoted_with_everything(2min);
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
  cut_off_demo_2();
  expect_failover_waits_for_demo_2();
  mysql.cut_off.clear();
  expect_demo_2_is_promoted_with_everything();
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
  expect_demo_2_is_promoted_with_everything(2min);
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

// What it has received and could not apply is nowhere else: to follow the new primary would delete it.
TEST_F(LostNodesTest, TheRelayLogOfAReplicaThatIsGivenUpIsKept) {
  given_first_transaction();
  mysql.at("demo-2").replica->sql = false;
  mysql.at("demo-2").replica->sql_error = 1062;
  write_to_demo_2_only();
  mysql.at("demo-0").away = true;
  run_for(3min);
  ASSERT_EQ(phase(), "Failed") << status_text();
  annotate("give-up", "demo-2");
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  // With these the primary has higher numbers than the replica.
  for (int i = 0; i < 5; ++i) mysql.write(mysql.at("demo-1").address);
  run_for(2min);
  EXPECT_GT(mysql.at("demo-1").log.size(), 2U);
  EXPECT_EQ(mysql.at("demo-2").log.size(), 1U);
  EXPECT_EQ(mysql.at("demo-2").replica->relay.size(), 1U) << status_text();
  EXPECT_EQ(condition("ReplicasHealthy"), "False ErrantTransactions") << status_text();
  EXPECT_THAT(condition_message("ReplicasHealthy"), HasSubstr("demo-2: has transactions"));
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

// Its exporter says nothing about its server: that one may receive and acknowledge until it dies with the primary.
TEST_F(LastCopyTest, AReplicaWhoseExporterWasDeadLongBeforeIsWaitedFor) {
  given_first_transaction();
  mysql.at("demo-2").exporter_runs = false;
  run_for(2min);
  write_to_demo_2_only();
  for (auto* pod : {"demo-0", "demo-2"}) mysql.at(pod).runs = false;
  expect_failover_waits_for_demo_2();
  mysql.restart("demo-2");
  expect_demo_2_is_promoted_with_everything();
}

TEST_F(LastCopyTest, AReplicaThatOnlyTheOperatorCannotReachIsWaitedFor) {
  given_first_transaction();
  cut_off_demo_2();
  run_for(2min);
  write_to_demo_2_only();
  kill_primary();
  expect_failover_waits_for_demo_2();
  mysql.cut_off.clear();
  expect_demo_2_is_promoted_with_everything();
}

TEST_F(LastCopyTest, AReplicaThatWasAbsentForAMomentAndIsConnectedAgainIsWaitedFor) {
  given_first_transaction();
  lose_demo_2();
  run_for(30s);
  mysql.at("demo-2").replica->io = true;
  run_for(12s);
  write_to_demo_2_only();
  kill_primary();
  expect_failover_waits_for_demo_2();
  mysql.cut_off.clear();
  expect_demo_2_is_promoted_with_everything();
}

// It may be connected again a moment later, and acknowledge.
TEST_F(LastCopyTest, AReplicaThatWasFoundAbsentOnceIsWaitedFor) {
  given_first_transaction();
  lose_demo_2();
  run_until_asked(1);
  mysql.at("demo-2").replica->io = true;
  write_to_demo_2_only();
  kill_primary();
  expect_failover_waits_for_demo_2();
  mysql.cut_off.clear();
  expect_demo_2_is_promoted_with_everything();
}

// In between it may have been connected, and acknowledged.
TEST_F(LastCopyTest, AReplicaThatWasFoundAbsentTwiceWithAGapBetweenIsWaitedFor) {
  given_first_transaction();
  lose_demo_2();
  run_until_asked(1);
  const auto password = mysql.at("demo-0").root_password;
  mysql.at("demo-0").root_password = "another";
  run_for(1min);
  mysql.at("demo-0").root_password = password;
  run_until_asked(1);
  mysql.at("demo-2").replica->io = true;
  write_to_demo_2_only();
  kill_primary();
  expect_failover_waits_for_demo_2();
  mysql.cut_off.clear();
  expect_demo_2_is_promoted_with_everything();
}

// The primary accepts writes, but the operator's questions no more.
TEST_F(LastCopyTest, AReplicaThatWasFoundAbsentBeforeTheLastProbesIsWaitedFor) {
  given_first_transaction();
  lose_demo_2();
  run_for(30s);
  run_until_asked(1);
  mysql.at("demo-0").root_password = "another";
  run_for(24s);
  mysql.at("demo-2").replica->io = true;
  write_to_demo_2_only();
  kill_primary();
  expect_failover_waits_for_demo_2();
  mysql.cut_off.clear();
  expect_demo_2_is_promoted_with_everything();
}

TEST_F(LastCopyTest, AReplicaThatWasFoundAbsentAfterTwoProbesIsNotWaitedFor) {
  given_first_transaction();
  lose_demo_2();
  run_for(30s);
  kill_primary();
  run_for(1min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-1"));
}

// demo-1 cannot follow the primary any more, so what demo-2 had when it went down nobody else has received since.
TEST_F(LastCopyTest, AReplicaThatWasDownLongBeforeIsWaitedForIfNobodyElseHasWhatItReceived) {
  given_last_copy_on_demo_2();
  mysql.at("demo-1").replica->io_error = 1236;
  mysql.at("demo-2").runs = false;
  run_for(2min);
  kill_primary();
  expect_failover_waits_for_demo_2();
  mysql.restart("demo-2");
  expect_demo_2_is_promoted_with_everything();
}

TEST_F(LastCopyTest, AChosenReplicaWithADeadExporterIsNotLostByOneConnectionThatFails) {
  given_last_copy_on_demo_2();
  mysql.at("demo-2").exporter_runs = false;
  kill_primary();
  run_until_chosen();
  cut_off_demo_2();
  run_for(10s);
  mysql.cut_off.clear();
  expect_demo_2_is_promoted_with_everything();
}

}  // namespace
}  // namespace hubferry::mysql::test
