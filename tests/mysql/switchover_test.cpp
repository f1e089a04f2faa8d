// The primary hands over by wish.
#include "failover_fixture.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

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

TEST_F(LastCopyTest, ASwitchoverFromAPrimaryWhosePodIsGoneComparesTheReplicas) {
  given_last_copy_on_demo_2();
  server.faults().on({"get", "pods"}).times(1).fail(404);
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/switchover": "any"}}})");
  run_for(1min);
  EXPECT_EQ(primary(), "demo-2") << status_text();
  EXPECT_EQ(mysql.at("demo-2").log.size(), 2U);
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
  run_for(5min);
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

// read_only does not stop root: what it wrote until its connection ended was acknowledged too.
TEST_F(FailoverTest, WhatAPrivilegedUserWroteBeforeItsConnectionEndedIsNotLostByASwitchover) {
  given_running(R"({"drainTimeoutSeconds": 5})");
  EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  bool has_written = false;
  mysql.on_statement = [&](const std::string& pod, const std::string& statement) {
    if (has_written || pod != "demo-0" || !statement.starts_with("SELECT ID FROM information_schema.PROCESSLIST"))
      return;
    has_written = true;
    mysql.at("demo-1").replica->io = false;
    mysql.at("demo-0").append();
    mysql.replicate();
  };
  annotate("switchover", "demo-1");
  run_for(2min);
  ASSERT_TRUE(has_written) << status_text();
  EXPECT_EQ(mysql.at("demo-2").log.size(), 2U) << "acknowledged by demo-2";
  EXPECT_EQ(mysql.at(primary()).log.size(), 2U) << primary() << status_text();
  EXPECT_EQ(condition("ReplicasHealthy"), "True Replicating") << status_text();
}

TEST_F(FailoverTest, InADeliberatelyReadOnlyClusterASwitchoverOpensNoServer) {
  given_running();
  patch(R"({"spec": {"readOnly": true}})");
  run_for(1min);
  ASSERT_THAT(mysql.writable(), IsEmpty()) << status_text();
  std::vector<std::string> opened;
  mysql.on_statement = [&](const std::string& pod, const std::string& statement) {
    if (statement == "SET GLOBAL read_only=0") opened.push_back(pod);
  };
  annotate("switchover", "demo-2");
  run_for(1min);
  EXPECT_EQ(primary(), "demo-2") << status_text();
  patch(R"({"spec": {"mysqlVersion": "11.4"}})");  // with a switchover of its own
  run_for(10min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_NE(primary(), "demo-2");
  EXPECT_THAT(opened, IsEmpty());
  EXPECT_EQ(condition("PrimaryHealthy"), "True HeartbeatOK") << status_text();
  EXPECT_EQ(condition("ReplicasHealthy"), "True Replicating") << status_text();
  patch(R"({"spec": {"readOnly": false}})");
  run_for(2min);
  expect_one_primary_with_replicas();
  EXPECT_TRUE(mysql.at(primary()).semi_sync);
}

}  // namespace
}  // namespace hubferry::mysql::test
