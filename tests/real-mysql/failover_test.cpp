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
  const auto semi_sync = query("demo-0", "SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'");
  EXPECT_EQ(sql::text_of(semi_sync.at(0), "Value"), "2");
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
  EXPECT_THAT(query(primary(), "SHOW ALL SLAVES STATUS"), IsEmpty());
  // All replicas, the old primary among them, have the same rows.
  for (const auto* pod : {"demo-0", "demo-1", "demo-2"}) {
    if (pod == primary()) continue;
    const auto status = query(pod, "SHOW ALL SLAVES STATUS");
    ASSERT_EQ(status.size(), 1U);
    EXPECT_EQ(sql::text_of(status[0], "Master_Host"), runner.address_of(primary())) << pod;
    EXPECT_EQ(sql::text_of(status[0], "Slave_IO_Running"), "Yes")
        << pod << sql::text_of(status[0], "Last_IO_Error") << status_text() << runner.log_of(pod);
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
  EXPECT_THAT(condition_message("PrimaryHealthy"), HasSubstr("replicas are still connected"));
}

TEST_F(RealFailoverTest, AReadOnlyPrimaryIsMadeWritableAgain) {
  given_running(three_servers);
  query("demo-0", "SET GLOBAL read_only=1");
  ASSERT_TRUE(eventually([&] { return value("demo-0", "@@global.read_only") == "0"; })) << status_text();
  EXPECT_EQ(primary(), "demo-0");
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
  run_for(2s);  // several probes, and as many questions to the primary
  runner.kill_server("demo-0");
  ASSERT_TRUE(eventually([&] { return primary() == "demo-1" && value("demo-1", "@@global.read_only") == "0"; }))
      << status_text();
  EXPECT_EQ(value("demo-1", "(SELECT COUNT(*) FROM app.t)"), "1");
  EXPECT_EQ(events("FailoverFailed"), 0U);
}

// Scenario 39.
TEST_F(RealFailoverTest, AnOperatorThatDiesInAFailoverIsFollowedByOneThatFinishesIt) {
  given_running(three_servers);
  scope.spawn(writer.run());
  std::size_t failovers = 0;
  const auto is_recorded = [&] { return condition("FailoverInProgress").starts_with("True"); };
  const auto is_chosen = [&] { return !cluster().string_at({"status", "failover", "to"}).empty(); };
  for (const std::function<bool()>& moment : {std::function<bool()>{is_recorded}, std::function<bool()>{is_chosen}}) {
    const auto before = writer.acknowledged().size();
    ASSERT_TRUE(eventually([&] { return writer.acknowledged().size() > before + 20; })) << status_text();
    const auto old = primary();
    runner.kill_server(old);
    ASSERT_TRUE(eventually([&] { return moment() || primary() != old; })) << status_text();
    stop_operator();
    start_operator();
    ASSERT_TRUE(failed_over_from(old)) << status_text();
    EXPECT_EQ(events("FailoverSuccess"), ++failovers);
    EXPECT_THAT(missing(writer), IsEmpty());
    EXPECT_THAT(writable(), ElementsAre(primary()));
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
    return primary() != "demo-0" && condition("ReplicasHealthy") == "False ErrantTransactions";
  })) << status_text();
  EXPECT_THAT(condition_message("ReplicasHealthy"), HasSubstr("demo-0"));
  EXPECT_EQ(value("demo-0", "(SELECT COUNT(*) FROM app.t)"), "1") << "its data is not touched";
  EXPECT_EQ(value("demo-0", "@@global.read_only"), "1");
  EXPECT_THAT(query("demo-0", "SHOW ALL SLAVES STATUS"), IsEmpty());
}

TEST_F(RealFailoverTest, ASwitchoverEndsTheConnectionsOfTheOldPrimary) {
  given_running(three_servers);
  auto held = loop.run(connector->connect({runner.address_of("demo-0"), mysql_port}, {"app", obs::Secret{"app"}},
                                          async::later(clock.now(), 5s)));
  ASSERT_TRUE(held);
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/switchover": "demo-2"}}})");
  ASSERT_TRUE(eventually([&] { return primary() == "demo-2" && is_settled(); })) << status_text();
  auto written = loop.run((*held)->query("INSERT INTO app.t VALUES (1)", async::later(clock.now(), 5s)));
  EXPECT_FALSE(written);
  EXPECT_THAT(writable(), ElementsAre("demo-2"));
}

TEST_F(RealFailoverTest, APasswordIsChangedInTheServersFirst) {
  given_running(R"({"replicas": 2, "rootPassword": "first one", "failoverCoolDownSeconds": 0})");
  patch(R"({"spec": {"rootPassword": "second 'one'"}})");
  ASSERT_TRUE(eventually([&] {
    return root().password.reveal() == "second 'one'" && is_settled() &&
           server.object(kinds::stateful_sets, {"db", "demo"})->generation() > 1;
  })) << status_text();
  EXPECT_EQ(value(primary(), "1"), "1");
}

/// Failovers in a row under a client that writes all the time. HUBFERRY_FAILOVERS says how many. With
/// HUBFERRY_SEMI_SYNC=off acknowledged writes may be lost: then they are only counted.
class RealManyFailoversTest : public RealFailoverTest {
 protected:
  enum class Fault { kill, stop, cut };
  struct Times {
    std::vector<double> outages;
    std::vector<double> promotions;  // of it from the third failed probe
    [[nodiscard]] std::vector<double> detections() const {
      auto list = outages;
      for (std::size_t at = 0; at < list.size(); ++at) list[at] -= promotions[at];
      return list;
    }
  };

  void cause(Fault fault, const std::string& pod) {
    if (fault == Fault::cut) runner.cut_off(pod);
    if (fault != Fault::cut) runner.signal_server(pod, fault == Fault::kill ? SIGKILL : SIGSTOP);
  }
  /// As the documentation says: the data of those that are reported is given up, and they begin again.
  void rebuild_errant() {
    const auto reported = condition_message("ReplicasHealthy");
    for (const std::string pod : {"demo-0", "demo-1", "demo-2"}) {
      if (reported.find(pod + ": ") == std::string::npos) continue;
      runner.lose_volume(pod);
      EXPECT_TRUE(loop.run(server.api().remove(kinds::pods, {"db", pod})));
    }
    EXPECT_TRUE(eventually([&] { return is_settled(); })) << status_text();
  }
  static std::string percentiles(std::vector<double> values) {
    if (values.empty()) return "-";
    std::ranges::sort(values);
    const auto at = [&](double part) {
      return values[std::min(values.size() - 1, static_cast<std::size_t>(part * double(values.size())))];
    };
    char text[64];
    std::snprintf(text, sizeof text, "p50 %.1f s, p99 %.1f s", at(0.5), at(0.99));
    return text;
  }
};

TEST_F(RealManyFailoversTest, ByKillHangAndCutOffInTurnsNoAcknowledgedWriteIsLost) {
  const char* wanted = std::getenv("HUBFERRY_FAILOVERS");
  const int count = wanted == nullptr ? 3 : std::atoi(wanted);
  const char* semi_sync = std::getenv("HUBFERRY_SEMI_SYNC");
  const bool may_lose = semi_sync != nullptr && std::string_view{semi_sync} == "off";
  runner.behind_proxies = true;
  given_running(may_lose ? R"({"replicas": 3, "failoverCoolDownSeconds": 0, "semiSync": false})" : three_servers);
  scope.spawn(writer.run());
  std::map<Fault, Times> times;
  int errant = 0;
  for (int turn = 0; turn < count; ++turn) {
    const auto before = writer.acknowledged().size();
    ASSERT_TRUE(eventually([&] { return writer.acknowledged().size() > before + 20; })) << status_text();
    const auto old = primary();
    writer.take_longest_pause();
    const auto fault = static_cast<Fault>(turn % 3);
    cause(fault, old);
    const auto is_errant = [&] { return condition("ReplicasHealthy") == "False ErrantTransactions"; };
    ASSERT_TRUE(eventually([&] { return primary() != old && (is_settled() || (may_lose && is_errant())); }))
        << "turn " << turn << status_text() << runner.log_of(old);
    const auto after = writer.acknowledged().size();
    ASSERT_TRUE(eventually([&] { return writer.acknowledged().size() > after + 5; })) << status_text();
    times[fault].outages.push_back(std::chrono::duration<double>(writer.take_longest_pause()).count());
    times[fault].promotions.push_back(cluster().find({"status", "lastFailover", "seconds"})->to_number<double>());
    if (is_errant()) {
      ++errant;
      rebuild_errant();
    }
  }
  const auto lost = missing(writer).size();
  if (!may_lose) EXPECT_EQ(lost, 0U);
  EXPECT_THAT(writable(), ElementsAre(primary()));
  std::printf(
      "%d failovers: %zu writes acknowledged, %zu of them lost, %zu refused or without an answer; %d old "
      "primaries with transactions of their own\n",
      count, writer.acknowledged().size(), lost, writer.refused(), errant);
  for (const auto& [fault, of] : times)
    std::printf("%s: write outage %s; detection %s; from the third failed probe %s\n",
                fault == Fault::kill   ? "kill -9"
                : fault == Fault::stop ? "SIGSTOP"
                                       : "cut off",
                percentiles(of.outages).c_str(), percentiles(of.detections()).c_str(),
                percentiles(of.promotions).c_str());
}

}  // namespace
}  // namespace hubferry::mysql::test
