// Scenarios of tests/mysql/README.md that only real servers can show.
#include "mysql/server.hpp"
#include "real_mysql_test.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RealScenarioTest : public RealMysqlTest {
 protected:
  /// False: a probe has failed meanwhile, on a busy machine, and its strike may still count.
  bool is_without_strikes() {
    const auto failed = probes("unreachable");
    const auto good = probes("writable");
    EXPECT_TRUE(eventually([&] { return probes("writable") > good && is_settled(); })) << status_text();
    return probes("unreachable") == failed;
  }
  /// Fails two probes of the primary. False: it were more, on a busy machine.
  bool fail_two_probes() {
    EXPECT_TRUE(eventually([&] { return is_without_strikes(); }));
    const auto before = probes("unreachable");
    runner.signal_exporter("demo-0", SIGSTOP);
    EXPECT_TRUE(eventually([&] { return probes("unreachable") >= before + 2; }));
    runner.signal_exporter("demo-0", SIGCONT);
    const auto good = probes("writable");
    EXPECT_TRUE(eventually([&] { return probes("writable") > good; }));
    return probes("unreachable") == before + 2;
  }
  /// How often the operator wrote who is read from.
  [[nodiscard]] std::size_t changes_of_readers() const {
    std::size_t count = 0;
    for (const auto& request : server.requests())
      count += request.verb == "patch" && request.key.name == "demo-mysql-read" &&
                       request.resource.starts_with("endpointslices")
                   ? 1
                   : 0;
    return count;
  }
  void set_delay(const std::string& pod, int seconds) {
    // The operator starts what it finds stopped.
    ASSERT_TRUE(eventually([&] {
      query(pod, "STOP SLAVE");
      return loop.run(query_as(pod, "CHANGE MASTER TO MASTER_DELAY=" + std::to_string(seconds), root())).has_value();
    }));
    query(pod, "START SLAVE");
  }
  /// By its own clock, as the operator tells a restart.
  std::string started(const std::string& pod) {
    auto connection =
        loop.run(connector->connect({runner.address_of(pod), mysql_port}, root(), async::later(clock.now(), 30s)));
    if (!connection) return "";
    Session session{std::move(*connection), clock, nullptr};
    const auto facts = loop.run(session.facts());
    return facts ? facts->started : "";
  }
  /// Restarts it and waits until it is writable, which must not be while it is young. False: it was never seen young.
  bool was_seen_young(const std::string& pod) {
    runner.kill_server(pod);
    EXPECT_TRUE(eventually([&] { return runner.server_of(pod) == 0; }));
    loop.run(runner.restart_server(pod));
    bool is_seen = false;
    EXPECT_TRUE(eventually([&] {
      const auto rows = loop.run(query_as(pod,
                                          "SELECT @@global.read_only AS value, (SELECT VARIABLE_VALUE FROM "
                                          "information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'UPTIME') AS uptime",
                                          root()));
      if (!rows) return false;  // it is starting
      const bool is_writable = sql::text_of(rows->at(0), "value") == "0";
      if (std::chrono::seconds{std::stoi(sql::text_of(rows->at(0), "uptime"))} >= young) return is_writable;
      EXPECT_FALSE(is_writable) << status_text();
      is_seen = true;
      return false;
    })) << status_text();
    return is_seen;
  }
  std::string received(const std::string& pod) {
    const auto status = query(pod, "SHOW ALL SLAVES STATUS");
    return status.empty() ? "" : sql::text_of(status.front(), "Gtid_IO_Pos");
  }
  /// A row that the primary will write too: applying it fails.
  void given_conflict(const std::string& pod, int row) {
    query(pod, "SET STATEMENT sql_log_bin=0 FOR INSERT INTO app.t VALUES (" + std::to_string(row) + ")");
  }
};

// Scenarios 20, 25, 46 and 26, on one cluster: starting servers is what takes the time.
TEST_F(RealScenarioTest, ProbesThatFailForAWhileAndReplicasThatLagAreNoReasonForAFailover) {
  given_running(R"({"replicas": 3, "failoverCoolDownSeconds": 0, "maxReplicaLagSeconds": 1})");
  // Two that fail: with the third the condition would say so.
  ASSERT_TRUE(eventually([&] {
    const bool were_two = fail_two_probes();
    if (were_two) EXPECT_EQ(condition("PrimaryHealthy"), "True HeartbeatOK") << status_text();
    return were_two;
  }));
  EXPECT_EQ(primary(), "demo-0");

  // Nothing answers: the operator cannot know on which side of the cut it is.
  for (const auto* pod : {"demo-0", "demo-1", "demo-2"}) runner.signal_server(pod, SIGSTOP);
  EXPECT_TRUE(eventually([&] { return condition("PrimaryHealthy") == "False ProbeUnknown"; })) << status_text();
  // The primary first: its replicas have lost it, and on a busy machine it might not answer in time for them.
  const auto good = probes("writable");
  runner.signal_server("demo-0", SIGCONT);
  EXPECT_TRUE(eventually([&] { return probes("writable") > good; })) << status_text();
  for (const auto* pod : {"demo-1", "demo-2"}) runner.signal_server(pod, SIGCONT);
  ASSERT_TRUE(eventually([&] { return is_settled(); })) << status_text();
  EXPECT_EQ(primary(), "demo-0");

  set_delay("demo-1", 100);
  query("demo-0", "INSERT INTO app.t VALUES (1)");
  EXPECT_TRUE(eventually([&] { return condition("ReplicasHealthy") == "False Lagging"; })) << status_text();
  EXPECT_TRUE(eventually([&] { return readers() == std::vector<std::string>{"demo-2"}; })) << status_text();
  set_delay("demo-1", 0);
  EXPECT_TRUE(eventually([&] { return readers().size() == 2 && is_settled(); })) << status_text();
  server.forget_requests();
  query("demo-2", "STOP SLAVE");
  // The operator starts it again at once: it leaves, and is back.
  EXPECT_TRUE(eventually([&] { return changes_of_readers() >= 2 && readers().size() == 2 && is_settled(); }))
      << status_text();

  // Without the grant the series of replication are missing: the servers themselves are asked.
  for (const auto* pod : {"demo-0", "demo-1", "demo-2"})
    query(pod, "SET STATEMENT sql_log_bin=0 FOR REVOKE SLAVE MONITOR ON *.* FROM 'hubferry-exporter'@'%'");
  run_for_some_probes();
  EXPECT_EQ(primary(), "demo-0") << status_text();
  runner.kill_server("demo-0");
  ASSERT_TRUE(eventually([&] { return primary() != "demo-0"; })) << status_text();
  EXPECT_EQ(value(primary(), "@@global.read_only"), "0");
  EXPECT_THAT(writers(), ElementsAre(primary()));
}

// Scenarios 29, 41 and 42.
TEST_F(RealScenarioTest, TheReplicaThatKeepsUpIsPromotedAndASecondFailureWaits) {
  stop_operator();
  young = 8s;
  start_operator();
  given_running(R"({"replicas": 3, "failoverCoolDownSeconds": 3600})");
  set_delay("demo-1", 3600);
  for (int i = 1; i <= 5; ++i) query("demo-0", "INSERT INTO app.t VALUES (" + std::to_string(i) + ")");
  ASSERT_TRUE(eventually([&] { return value("demo-2", "(SELECT COUNT(*) FROM app.t)") == "5"; }));
  const auto before = started("demo-2");
  run_for_some_probes();  // which see the lag
  EXPECT_EQ(started("demo-2"), before);
  EXPECT_EQ(value("demo-1", "(SELECT COUNT(*) FROM app.t)"), "0") << "it lags";
  runner.kill_server("demo-0");
  ASSERT_TRUE(eventually([&] { return primary() == "demo-2"; })) << status_text();
  EXPECT_EQ(value("demo-2", "(SELECT COUNT(*) FROM app.t)"), "5");
  set_delay("demo-1", 0);
  ASSERT_TRUE(eventually([&] { return is_settled(); })) << status_text();
  runner.kill_server("demo-2");
  EXPECT_TRUE(eventually([&] { return condition_message("PrimaryHealthy").find("cool-down") != std::string::npos; }))
      << status_text();
  EXPECT_EQ(primary(), "demo-2");
  EXPECT_THAT(value("demo-0", "@@global.read_only") + value("demo-1", "@@global.read_only"), "11");
  // It starts again, read-only as always, and stays the primary; but not before it has been up for a while.
  // On a busy machine it may not be young any more when it answers: then it starts once more.
  ASSERT_TRUE(eventually([&] { return was_seen_young("demo-2"); })) << status_text();
  EXPECT_GT(started("demo-2"), before);
  ASSERT_TRUE(eventually([&] { return is_settled(); })) << status_text();
  EXPECT_EQ(primary(), "demo-2");
  EXPECT_EQ(events("FailoverSuccess"), 1U);
}

// Scenarios 33, 32 (drain timeout) and 19.
TEST_F(RealScenarioTest, WithoutAReplicaThatCanApplyEverythingNothingIsPromoted) {
  given_running(R"({"replicas": 3, "failoverCoolDownSeconds": 0, "drainTimeoutSeconds": 2})");
  stop_operator();
  given_conflict("demo-1", 1);
  // Nothing can be applied there while this connection is open.
  auto lock =
      loop.run(connector->connect({runner.address_of("demo-2"), mysql_port}, root(), async::later(clock.now(), 30s)));
  ASSERT_TRUE(lock && loop.run((*lock)->query("LOCK TABLES app.t READ", async::later(clock.now(), 30s))));
  for (int i = 1; i <= 5; ++i) query("demo-0", "INSERT INTO app.t VALUES (" + std::to_string(i) + ")");
  // One replica is enough to acknowledge them, and it may have been demo-1.
  ASSERT_TRUE(eventually([&] { return received("demo-2") == value("demo-0", "@@global.gtid_binlog_pos"); }));
  runner.kill_server("demo-0");
  start_operator();
  ASSERT_TRUE(eventually([&] { return phase() == "Failed"; })) << status_text();
  for (const auto* pod : {"demo-1", "demo-2"}) EXPECT_EQ(value(pod, "@@global.read_only"), "1") << pod;
  EXPECT_TRUE(eventually([&] { return events("FailoverFailed") == 1; })) << status_text();
  EXPECT_EQ(value("demo-2", "(SELECT COUNT(*) FROM app.t)"), "0") << "what it received is still in its relay log";
  // Repaired by a person.
  lock->reset();
  ASSERT_TRUE(eventually([&] { return value("demo-2", "(SELECT COUNT(*) FROM app.t)") == "5"; }));
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/reconcile": "now"}}})");
  ASSERT_TRUE(eventually([&] {
    return phase() == "Running" && condition("PrimaryHealthy") == "True HeartbeatOK" &&
           writable() == std::vector<std::string>{primary()};
  })) << status_text();
  EXPECT_EQ(value(primary(), "(SELECT COUNT(*) FROM app.t)"), "5");
  // The failover may have replaced the pod of the old primary once more.
  for (const auto* pod : {"demo-0", "demo-1", "demo-2"})
    ASSERT_TRUE(eventually([&] { return runner.server_of(pod) != 0 && answers(pod, "SELECT 1"); })) << pod;
  // A password that only the Secret has.
  auto changed = loop.run(server.api().merge_patch(kube::resources::secrets, {"db", "demo-root"},
                                                   json::parse(R"({"data": {"password": "b3RoZXI="}})").as_object()));
  ASSERT_TRUE(changed);
  std::vector<pid_t> servers;
  for (const auto* pod : {"demo-0", "demo-1", "demo-2"}) servers.push_back(runner.server_of(pod));
  EXPECT_TRUE(eventually([&] { return condition("ReplicasHealthy") == "False PasswordMismatch"; })) << status_text();
  run_for(5s);  // several passes
  for (const auto* pod : {"demo-2", "demo-1", "demo-0"}) {
    EXPECT_EQ(runner.server_of(pod), servers.back()) << pod << " was restarted: " << status_text();
    servers.pop_back();
  }
}

// Scenario 43, and two writable servers: after the status was lost.
TEST_F(RealScenarioTest, WithoutAnUnambiguousPrimaryNothingIsWritable) {
  given_running(R"({"replicas": 2, "failoverCoolDownSeconds": 0})");
  const auto lose_status = [&] {
    const auto text = R"({"status": {"primary": null, "phase": "Creating", "state": null}})";
    auto written = loop.run(
        server.api().merge_patch(mysql_clusters, {"db", "demo"}, json::parse(text).as_object(), std::string{"status"}));
    EXPECT_TRUE(written);
  };
  stop_operator();
  query("demo-1", "SET GLOBAL read_only=0");
  lose_status();
  start_operator();
  ASSERT_TRUE(eventually([&] { return phase() == "Failed"; })) << status_text();
  EXPECT_THAT(writable(), IsEmpty());
  EXPECT_THAT(cluster().string_at({"status", "message"}), HasSubstr("more than one server was writable"));
  stop_operator();
  query("demo-0", "CHANGE MASTER TO MASTER_HOST='" + runner.address_of("demo-1") + "', MASTER_USE_GTID=slave_pos");
  lose_status();
  start_operator();
  ASSERT_TRUE(eventually([&] {
    return cluster().string_at({"status", "message"}).find("the replica of another") != std::string::npos;
  })) << status_text();
  EXPECT_EQ(phase(), "Failed");
  EXPECT_THAT(writable(), IsEmpty());
}

// A lost replica is given up, and the cluster continues without it.
TEST_F(RealScenarioTest, AClusterThatLostTwoServersContinuesWithTheLastOneWhenAPersonSaysSo) {
  given_running(R"({"replicas": 3, "failoverCoolDownSeconds": 0})");
  scope.spawn(writer.run());
  ASSERT_TRUE(eventually([&] { return writer.acknowledged().size() > 20; }));
  runner.hold("demo-0");
  runner.hold("demo-2");
  ASSERT_TRUE(eventually([&] {
    return condition_message("FailoverInProgress").find("waiting for demo-2") != std::string::npos;
  })) << status_text();
  EXPECT_EQ(value("demo-1", "@@global.read_only"), "1");
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/give-up": "demo-2"}}})");
  ASSERT_TRUE(eventually([&] { return primary() == "demo-1" && value("demo-1", "@@global.read_only") == "0"; }))
      << status_text();
  EXPECT_EQ(cluster().string_at({"status", "lastFailover", "without"}), "demo-2");
}

}  // namespace
}  // namespace hubferry::mysql::test
