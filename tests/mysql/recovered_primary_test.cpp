// A primary that is found read-only: deliberately, or after a crash whose recovery may have lost transactions.
#include "failover_fixture.hpp"
#include "support/skewed_clock.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

/// The primary crashed and is back at once, without the last transaction: its recovery has rolled it back.
class RecoveredPrimaryTest : public LastCopyTest {
 protected:
  void given_recovered_primary() {
    given_last_copy_on_demo_2();
    recover_primary();
  }
  /// And demo-2 is away.
  void given_recovered_primary_long_before_the_operator() {
    given_last_copy_on_demo_2();
    stop_operator();
    recover_primary();
    mysql.at("demo-2").away = true;
    run_for(5min);
    start_operator();
    run_for(3min);
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
    expect_demo_2_is_promoted_with_everything(2min);
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
  given_recovered_primary_long_before_the_operator();
  expect_demo_2_is_waited_for();
}

TEST_F(RecoveredPrimaryTest, WhoIsGivenUpIsNotWaitedForByAnOperatorThatStartsLongAfterwards) {
  given_recovered_primary_long_before_the_operator();
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
  given_last_copy_on_demo_2(R"({"drainTimeoutSeconds": 5})");
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
  expect_demo_2_is_promoted_with_everything(3min);
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

TEST_F(RecoveredPrimaryTest, ASwitchoverFromItComparesTheReplicas) {
  given_recovered_primary();
  annotate("switchover", "demo-1");
  expect_demo_2_is_promoted_with_everything(3min);
  expect_one_primary_with_replicas();
}

TEST_F(RecoveredPrimaryTest, ASwitchoverFromItToAnyReplicaGoesToTheOneWithEverything) {
  given_recovered_primary();
  annotate("switchover", "any");
  expect_demo_2_is_promoted_with_everything();
}

/// The operator has opened demo-1, and died before it could record that.
class UnrecordedPromotionTest : public RecoveredPrimaryTest {
 protected:
  /// At the first statement like `last` after it.
  void run_until_promoted_and_dead(const std::string& last) {
    kill_primary();
    bool is_open = false;
    bool died = false;
    mysql.on_statement = [&](const std::string& pod, const std::string& statement) {
      is_open = is_open || (pod == "demo-1" && statement == "SET GLOBAL read_only=0");
      if (!is_open || died || !statement.starts_with(last)) return;
      died = true;
      working->stop();
    };
    for (int i = 0; i < 240 && !died; ++i) run_for(500ms);
    stop_operator();
    mysql.on_statement = {};
    ASSERT_EQ(cluster().string_at({"status", "failover", "to"}), "demo-1") << status_text();
  }
  /// It accepts a write that demo-2 acknowledges, crashes, and is back without it.
  void given_crash_of_demo_1_after_a_write() {
    given_first_transaction();
    run_until_promoted_and_dead("CHANGE MASTER TO");
    mysql.at("demo-2").replica->io = mysql.at("demo-2").replica->sql = true;
    ASSERT_TRUE(mysql.write(mysql.at("demo-1").address)) << "acknowledged by demo-2";
    mysql.restart("demo-1");
    mysql.at("demo-1").log.pop_back();
  }
  /// And demo-2 is away, so that nobody knows whether something is lost.
  void given_crash_of_demo_1_without_demo_2() {
    given_running();
    run_until_promoted_and_dead("SET GLOBAL read_only=0");
    mysql.restart("demo-1");
    mysql.at("demo-2").away = true;
  }
};

TEST_F(UnrecordedPromotionTest, TheNewPrimaryIsNotOpenedAgainWithoutWhatItLost) {
  given_crash_of_demo_1_after_a_write();
  start_operator();
  expect_demo_2_is_promoted_with_everything(3min);
  expect_one_primary_with_replicas();
}

// By its clock, demo-1 has been up since before it was chosen.
TEST_F(UnrecordedPromotionTest, ASuccessorWhoseClockIsSlowDoesNotOpenItEither) {
  given_crash_of_demo_1_after_a_write();
  run_for(30s);
  hubferry::test::SkewedClock slow{loop.clock(), -10min};
  start_operator(slow);
  expect_demo_2_is_promoted_with_everything(3min);
  stop_operator();
}

TEST_F(UnrecordedPromotionTest, TheReplicaThatMayHaveMoreIsWaitedFor) {
  given_crash_of_demo_1_without_demo_2();
  start_operator();
  run_for(1min);
  EXPECT_THAT(mysql.writable(), IsEmpty()) << status_text();
  EXPECT_THAT(condition_message("FailoverInProgress"), HasSubstr("waiting for demo-2"));
  mysql.at("demo-2").away = false;
  run_for(1min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  expect_one_primary_with_replicas();
}

// demo-1 itself was waited for before that.
TEST_F(UnrecordedPromotionTest, TheReplicaThatMayHaveMoreIsWaitedForFromItsOwnBeginningOn) {
  given_crash_of_demo_1_without_demo_2();
  const auto password = std::exchange(mysql.at("demo-1").root_password, "another");
  start_operator();
  run_for(100s);
  EXPECT_THAT(condition_message("FailoverInProgress"), HasSubstr("waiting for demo-1")) << status_text();
  mysql.at("demo-1").root_password = password;
  run_for(90s);
  EXPECT_EQ(condition("FailoverInProgress"), "True PromoteReplica") << status_text();
  EXPECT_THAT(condition_message("FailoverInProgress"), HasSubstr("waiting for demo-2"));
  run_for(1min);
  EXPECT_EQ(phase(), "Failed") << status_text();
}

// The wait is on record: operators that die one after the other neither prolong nor shorten it.
TEST_F(UnrecordedPromotionTest, TheReplicaThatMayHaveMoreIsWaitedForAsLongThoughOperatorsComeAndGo) {
  given_crash_of_demo_1_without_demo_2();
  start_operator();
  for (int i = 0; i < 60 && condition_message("FailoverInProgress").find("was restarted") == std::string::npos; ++i)
    run_for(1s);
  const auto since = loop.clock().now();
  ASSERT_THAT(condition_message("FailoverInProgress"), HasSubstr("waiting for demo-2")) << status_text();
  for (int i = 0; i < 3; ++i) {
    stop_operator();
    start_operator();
    run_for(35s);
    EXPECT_EQ(condition("FailoverInProgress"), "True PromoteReplica") << status_text();
  }
  stop_operator();
  start_operator();
  while (phase() != "Failed" && loop.clock().now() - since < 10min) run_for(1s);
  EXPECT_GE(loop.clock().now() - since, 118s);
  EXPECT_LE(loop.clock().now() - since, 150s) << status_text();
}

// Only the record says that demo-1 is the primary: without it, what demo-1 alone has would be nobody's.
TEST_F(UnrecordedPromotionTest, ScalingToZeroWaitsUntilThePromotionIsOnRecord) {
  given_first_transaction(R"({"semiSync": false, "volumePolicy": {"whenScaled": "Retain"}})");
  run_until_promoted_and_dead("SET GLOBAL read_only=0");
  ASSERT_TRUE(mysql.write(mysql.at("demo-1").address));
  patch(R"({"status": {"phase": "Scaling"}})", mysql_clusters, "demo", "status");
  patch(R"({"spec": {"replicas": 0}})");
  start_operator();
  run_for(5min);
  ASSERT_FALSE(exists(kinds::pods, "demo-0")) << status_text();
  patch(R"({"spec": {"replicas": 3}})");
  run_for(5min);
  EXPECT_EQ(phase(), "Running") << status_text();
  expect_one_primary_with_replicas();
  EXPECT_EQ(mysql.at(primary()).log.size(), 2U) << primary() << status_text();
}

TEST_F(UnrecordedPromotionTest, ScalingToZeroWaitsAlsoForOneThatDiedSinceItWasPromoted) {
  given_first_transaction(R"({"semiSync": false, "volumePolicy": {"whenScaled": "Retain"}})");
  run_until_promoted_and_dead("SET GLOBAL read_only=0");
  ASSERT_TRUE(mysql.write(mysql.at("demo-1").address));
  mysql.at("demo-1").away = true;
  patch(R"({"status": {"phase": "Scaling"}})", mysql_clusters, "demo", "status");
  start_operator();
  for (int i = 0; i < 600 && cluster().string_at({"status", "failover", "from"}) != "demo-1"; ++i) run_for(100ms);
  ASSERT_EQ(cluster().string_at({"status", "failover", "from"}), "demo-1") << status_text();
  patch(R"({"spec": {"replicas": 0}})");
  run_for(30s);
  EXPECT_EQ(primary(), "demo-2") << "the failover ends first: " << status_text();
}

/// A CustomResourceDefinition from before the operator was upgraded: the API server drops what it does not know.
class OlderDefinitionTest : public UnrecordedPromotionTest {
 protected:
  OlderDefinitionTest() {
    auto definition =
        server.object(kube::resources::custom_resource_definitions, {"", "mysqlclusters.mysql.hubferry.io"});
    auto object = definition.value().json();
    auto& version = object.at("spec").at("versions").at(0);
    auto& record = version.at("schema").at("openAPIV3Schema").at("properties").at("status").at("properties");
    auto& fields = record.at("failover").at("properties").as_object();
    json::object known;
    for (const auto* name : {"from", "to", "wanted", "planned", "startTime", "fencedTime", "without", "received"})
      known[name] = fields.at(name);
    fields = known;
    auto written = loop.run(server.api().update(kube::resources::custom_resource_definitions, object));
    EXPECT_TRUE(written) << written.error();
    loop.run_ready();
  }
};

TEST_F(OlderDefinitionTest, AChosenReplicaThatStaysDownIsReplacedAllTheSame) {
  given_first_transaction();
  kill_primary();
  run_until_chosen("demo-1");
  mysql.at("demo-1").away = true;
  run_for(3min);
  EXPECT_EQ(primary(), "demo-2") << status_text();
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-2"));
}

TEST_F(OlderDefinitionTest, AReplicaThatMayHaveMoreIsNotWaitedForForever) {
  given_crash_of_demo_1_without_demo_2();
  start_operator();
  run_for(4min);
  EXPECT_EQ(phase(), "Failed") << status_text();
  EXPECT_THAT(mysql.writable(), IsEmpty());
}

}  // namespace
}  // namespace hubferry::mysql::test
