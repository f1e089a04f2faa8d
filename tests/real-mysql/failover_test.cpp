#include "real_mysql_test.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* three_servers = R"({"replicas": 3, "failoverCoolDownSeconds": 0})";

class RealFailoverTest : public RealMysqlTest {
 protected:
  bool failed_over_from(const std::string& old) {
    return eventually([&] { return primary() != old && is_settled(); });
  }
};

TEST_F(RealFailoverTest, ServersComeUpWithOnePrimaryAndReplicasThatFollow) {
  given_running(three_servers);
  EXPECT_THAT(writable(), ElementsAre("demo-0"));
  query("demo-0", "INSERT INTO app.t VALUES (1)");
  for (const auto* pod : {"demo-1", "demo-2"}) {
    EXPECT_TRUE(eventually([&] { return value(pod, "(SELECT COUNT(*) FROM app.t)") == "1"; }));
    EXPECT_EQ(value(pod, "@@global.read_only"), "1");
  }
  EXPECT_TRUE(eventually([&] {
    const auto semi_sync = query("demo-0", "SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'");
    return sql::text_of(semi_sync.at(0), "Value") == "2";
  }));
}

// kill -9: the exporter answers that its server is down, the replicas have lost it.
TEST_F(RealFailoverTest, AKilledPrimaryIsReplacedNothingIsLostAndItComesBackAsAReplica) {
  given_running(three_servers);
  scope.spawn(writer.run());
  ASSERT_TRUE(eventually([&] { return writer.acknowledged().size() > 100; }));
  runner.kill_server("demo-0");
  ASSERT_TRUE(failed_over_from("demo-0")) << status_text() << runner.log_of("demo-0");
  const auto count = writer.acknowledged().size();
  ASSERT_TRUE(eventually([&] { return writer.acknowledged().size() > count + 100; })) << status_text();
  EXPECT_THAT(missing(writer), IsEmpty());
  EXPECT_THAT(writable(), ElementsAre(primary()));
  EXPECT_THAT(writers(), ElementsAre(primary()));
  EXPECT_THAT(query(primary(), "SHOW ALL SLAVES STATUS"), IsEmpty());
  // All replicas, the old primary among them, have the same rows.
  for (const auto* pod : {"demo-0", "demo-1", "demo-2"}) {
    if (pod == primary()) continue;
    const auto status = query(pod, "SHOW ALL SLAVES STATUS");
    ASSERT_EQ(status.size(), 1U);
    EXPECT_EQ(sql::text_of(status[0], "Master_Host"), runner.address_of(primary())) << pod;
    // It may have lost its connection for a moment.
    EXPECT_TRUE(eventually([&] {
      return sql::text_of(query(pod, "SHOW ALL SLAVES STATUS").at(0), "Slave_IO_Running") == "Yes";
    })) << pod
        << sql::text_of(status[0], "Last_IO_Error") << status_text() << runner.log_of(pod);
  }
  EXPECT_EQ(events("FailoverSuccess"), 1U);
}

TEST_F(RealFailoverTest, AHangingPrimaryIsReplaced) {
  given_running(three_servers);
  scope.spawn(writer.run());
  ASSERT_TRUE(eventually([&] { return writer.acknowledged().size() > 50; }));
  runner.signal_server("demo-0", SIGSTOP);
  ASSERT_TRUE(failed_over_from("demo-0")) << status_text();
  EXPECT_THAT(missing(writer), IsEmpty());
  EXPECT_THAT(writable(), ElementsAre(primary()));
}

TEST_F(RealFailoverTest, ADeadExporterAloneIsNoReason) {
  given_running(three_servers);
  runner.signal_exporter("demo-0", SIGKILL);
  ASSERT_TRUE(eventually([&] { return condition("PrimaryHealthy") == "False PrimaryUnreachable"; })) << status_text();
  run_for(5s);
  EXPECT_EQ(primary(), "demo-0");
  EXPECT_TRUE(eventually([&] {
    return condition_message("PrimaryHealthy").find("replicas are still connected") != std::string::npos;
  })) << status_text();
}

TEST_F(RealFailoverTest, AReadOnlyPrimaryIsMadeWritableAgain) {
  given_running(three_servers);
  query("demo-0", "SET GLOBAL read_only=1");
  ASSERT_TRUE(eventually([&] { return value("demo-0", "@@global.read_only") == "0"; })) << status_text();
  ASSERT_TRUE(eventually([&] { return is_settled(); })) << status_text();
  run_for_some_probes();
  EXPECT_EQ(primary(), "demo-0");
  EXPECT_EQ(events("FailoverSuccess"), 0U);
}

TEST_F(RealFailoverTest, WhatAReplicaReceivedIsAppliedBeforeItIsPromoted) {
  given_running(R"({"replicas": 2, "failoverCoolDownSeconds": 0})");
  stop_operator();
  query("demo-1", "STOP SLAVE SQL_THREAD");
  for (int i = 1; i <= 20; ++i) query("demo-0", "INSERT INTO app.t VALUES (" + std::to_string(i) + ")");
  EXPECT_EQ(value("demo-1", "(SELECT COUNT(*) FROM app.t)"), "0");
  runner.kill_server("demo-0");
  start_operator();
  ASSERT_TRUE(failed_over_from("demo-0")) << status_text();
  EXPECT_EQ(value("demo-1", "(SELECT COUNT(*) FROM app.t)"), "20");
}

// Scenario 30: both have the same transactions, and nobody knows how far demo-1 was behind.
TEST_F(RealFailoverTest, AReplicaWithAKnownLagIsPreferredToOneWhoseLagIsUnknown) {
  given_running(three_servers);
  stop_operator();
  query("demo-0", "INSERT INTO app.t VALUES (1)");
  for (const auto* pod : {"demo-1", "demo-2"})
    ASSERT_TRUE(eventually([&] { return value(pod, "(SELECT COUNT(*) FROM app.t)") == "1"; }));
  runner.signal_exporter("demo-1", SIGKILL);
  start_operator();
  run_for_some_probes();
  runner.kill_server("demo-0");
  ASSERT_TRUE(eventually([&] { return primary() != "demo-0"; })) << status_text();
  EXPECT_EQ(primary(), "demo-2") << status_text();
}

TEST_F(RealFailoverTest, AReplicaThatReceivedLessIsNotPromoted) {
  given_running(three_servers);
  stop_operator();
  query("demo-1", "STOP SLAVE IO_THREAD");
  for (int i = 1; i <= 20; ++i) query("demo-0", "INSERT INTO app.t VALUES (" + std::to_string(i) + ")");
  runner.kill_server("demo-0");
  start_operator();
  ASSERT_TRUE(failed_over_from("demo-0")) << status_text();
  EXPECT_EQ(primary(), "demo-2");
  EXPECT_EQ(value("demo-2", "(SELECT COUNT(*) FROM app.t)"), "20");
}

// The primary says itself which replicas are connected to it.
TEST_F(RealFailoverTest, AReplicaThatWasDownBeforeThePrimaryIsNotWaitedFor) {
  given_running(three_servers);
  runner.hold("demo-2");
  ASSERT_TRUE(eventually([&] { return condition("ReplicasHealthy") == "False NotReplicating"; })) << status_text();
  query("demo-0", "INSERT INTO app.t VALUES (1)");
  // It notices with its second heartbeat.
  ASSERT_TRUE(eventually([&] { return query("demo-0", "SHOW SLAVE HOSTS").size() == 1; }));
  int asked = 0;
  operators_connector.after = [&](const std::string& statement) { asked += statement == "SHOW SLAVE HOSTS" ? 1 : 0; };
  ASSERT_TRUE(eventually([&] { return asked >= 5; })) << status_text();
  operators_connector.after = {};
  runner.kill_server("demo-0");
  ASSERT_TRUE(eventually([&] { return primary() == "demo-1" && value("demo-1", "@@global.read_only") == "0"; }))
      << status_text();
  EXPECT_EQ(value("demo-1", "(SELECT COUNT(*) FROM app.t)"), "1");
  EXPECT_EQ(events("FailoverFailed"), 0U);
}

// Scenario 39: after each step of a failover. Those that are writes to the API server are seen there, the others are
// statements.
TEST_F(RealFailoverTest, AnOperatorThatDiesInAFailoverIsFollowedByOneThatFinishesIt) {
  given_running(three_servers);
  scope.spawn(writer.run());
  std::size_t failovers = 0;
  std::string executed;
  std::string old;
  const auto is_recorded = [&] { return condition("FailoverInProgress").starts_with("True"); };
  const auto after = [&](const std::string& statement) {
    return [&executed, statement] { return executed == statement; };
  };
  const std::pair<std::string, std::function<bool()>> moments[] = {
      {"recorded", is_recorded},
      {"fenced", [&] { return is_recorded() && writers().empty(); }},
      {"receiving stopped", after("STOP SLAVE IO_THREAD")},
      {"chosen", [&] { return !cluster().string_at({"status", "failover", "to"}).empty(); }},
      {"left its replication", after("RESET SLAVE ALL")},
      {"writable", after("SET GLOBAL read_only=0")},
      {"endpoint moved", [&] { return is_recorded() && !writers().empty() && writers().front() != old; }},
      {"another one repointed", after("START SLAVE")}};
  for (const auto& [step, reached] : moments) {
    bool died = false;
    // On a busy machine a failover may end without this step: a replica that gives no answer follows later.
    for (int turn = 0; turn < 3 && !died; ++turn) {
      const auto before = writer.acknowledged().size();
      ASSERT_TRUE(eventually([&] { return writer.acknowledged().size() > before + 20; })) << status_text();
      old = primary();
      executed.clear();
      operators_connector.after = [&](const std::string& statement) {
        if (died || !is_recorded()) return;
        executed = statement;
        if (!reached()) return;
        died = true;
        working->stop();
      };
      runner.kill_server(old);
      ASSERT_TRUE(eventually([&] {
        died = died || reached();
        return died || primary() != old;
      })) << step
          << status_text();
      operators_connector.after = {};
      stop_operator();
      start_operator();
      ASSERT_TRUE(failed_over_from(old)) << step << status_text();
      EXPECT_EQ(events("FailoverSuccess"), ++failovers) << step;
      EXPECT_THAT(missing(writer), IsEmpty());
      EXPECT_THAT(writable(), ElementsAre(primary()));
    }
    EXPECT_TRUE(died) << step << ": the failover ended without it";
  }
}

TEST_F(RealFailoverTest, AnOldPrimaryWithAnExtraTransactionIsReportedAndKept) {
  given_running(R"({"replicas": 3, "failoverCoolDownSeconds": 0, "semiSync": false})");
  stop_operator();
  for (const auto* pod : {"demo-1", "demo-2"}) query(pod, "STOP SLAVE IO_THREAD");
  query("demo-0", "INSERT INTO app.t VALUES (77)");
  // Otherwise its recovery rolls it back.
  query("demo-0", "FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS");
  runner.kill_server("demo-0");
  start_operator();
  ASSERT_TRUE(eventually([&] {
    return primary() != "demo-0" && condition("ReplicasHealthy") == "False ErrantTransactions" &&
           condition_message("ReplicasHealthy").find("demo-0: has transactions") != std::string::npos;
  })) << status_text();
  EXPECT_EQ(value("demo-0", "(SELECT COUNT(*) FROM app.t)"), "1") << "its data is not touched";
  EXPECT_EQ(value("demo-0", "@@global.read_only"), "1");
  EXPECT_THAT(query("demo-0", "SHOW ALL SLAVES STATUS"), IsEmpty());
}

TEST_F(RealFailoverTest, ASwitchoverEndsTheConnectionsOfTheOldPrimary) {
  given_running(three_servers);
  auto held = loop.run(connector->connect({runner.address_of("demo-0"), mysql_port}, {"app", obs::Secret{"app"}},
                                          async::later(clock.now(), 30s)));
  ASSERT_TRUE(held);
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/switchover": "demo-2"}}})");
  ASSERT_TRUE(eventually([&] { return primary() == "demo-2" && is_settled(); })) << status_text();
  auto written = loop.run((*held)->query("INSERT INTO app.t VALUES (1)", async::later(clock.now(), 30s)));
  EXPECT_FALSE(written);
  EXPECT_THAT(writable(), ElementsAre("demo-2"));
}

// On servers that would read a literal otherwise: there a backslash may be no more than one, or half of a character.
TEST_F(RealFailoverTest, APasswordIsChangedInTheServersFirst) {
  given_running(R"({"replicas": 2, "rootPassword": "first one", "failoverCoolDownSeconds": 0,
                    "config": "sql_mode=NO_BACKSLASH_ESCAPES\ncharacter-set-server=gbk\nskip-character-set-client-handshake"})");
  patch(R"({"spec": {"rootPassword": "second 'one' \\\" # €' OR '"}})");
  ASSERT_TRUE(eventually([&] {
    return root().password.reveal() == R"(second 'one' \" # €' OR ')" && is_settled() &&
           server.object(kinds::stateful_sets, {"db", "demo"})->generation() > 1;
  })) << status_text();
  // The servers are restarted now, one after the other.
  EXPECT_TRUE(eventually([&] { return answers(primary(), "SELECT 1"); })) << status_text();
  EXPECT_EQ(events("SpecInvalid"), 0U);
}

TEST_F(RealFailoverTest, AChangeOfThePasswordThatIsRevertedHalfWayIsTakenBackOnEveryServer) {
  given_running(R"({"replicas": 3, "rootPassword": "first", "failoverCoolDownSeconds": 0})");
  const auto accepts = [&](const std::string& pod, const std::string& password) {
    return loop.run(query_as(pod, "SELECT 1", {"root", obs::Secret{password}})).has_value();
  };
  const auto in_secret = [&](const char* key) {
    const auto secret = server.object(kube::resources::secrets, {"db", "demo-root"});
    return kube::decode_base64(secret->string_at({"data", key})).value_or("");
  };
  // Nothing can be applied there while this connection is open.
  auto lock =
      loop.run(connector->connect({runner.address_of("demo-2"), mysql_port}, root(), async::later(clock.now(), 30s)));
  ASSERT_TRUE(lock && loop.run((*lock)->query("FLUSH TABLES WITH READ LOCK", async::later(clock.now(), 30s))));
  patch(R"({"spec": {"rootPassword": "second"}})");
  ASSERT_TRUE(eventually([&] { return accepts("demo-0", "second"); })) << status_text();
  EXPECT_TRUE(accepts("demo-2", "first"));
  EXPECT_EQ(in_secret("password"), "first");
  EXPECT_EQ(in_secret("pendingPassword"), "second");
  stop_operator();
  patch(R"({"spec": {"rootPassword": "first"}})");
  start_operator();
  ASSERT_TRUE(eventually([&] { return accepts("demo-0", "first"); })) << status_text();
  EXPECT_EQ(in_secret("revokedPassword"), "second") << "demo-2 has yet to apply both changes";
  lock->reset();
  ASSERT_TRUE(eventually([&] { return in_secret("revokedPassword").empty() && is_settled(); })) << status_text();
  for (const auto* pod : {"demo-0", "demo-1", "demo-2"}) EXPECT_TRUE(accepts(pod, "first")) << pod;
  EXPECT_EQ(in_secret("pendingPassword"), "");
  EXPECT_EQ(events("SpecInvalid"), 0U);
  runner.kill_server("demo-0");
  ASSERT_TRUE(failed_over_from("demo-0")) << status_text();
}

}  // namespace
}  // namespace hubferry::mysql::test
