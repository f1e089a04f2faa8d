#pragma once

#include "mysql_test.hpp"

namespace hubferry::mysql::test {

class FailoverTest : public MysqlTest {
 protected:
  void kill_primary() { mysql.at(primary()).runs = false; }
  void annotate(const std::string& name, const std::string& text) {
    patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/)" + name + R"(": ")" + text + R"("}}})");
  }
  /// The kubelet deletes a pod at the operator's wish, and the StatefulSet makes it again: its server comes back.
  void expect_one_primary_with_replicas() {
    const auto name = primary();
    EXPECT_THAT(mysql.writable(), testing::ElementsAre(name)) << status_text();
    EXPECT_THAT(writers(), testing::ElementsAre(name));
    EXPECT_FALSE(mysql.at(name).replica) << "a primary replicates from nobody";
    for (const auto& [pod, one] : mysql.servers()) {
      if (pod == name) continue;
      ASSERT_TRUE(one.replica) << pod << status_text();
      EXPECT_EQ(one.replica->host, mysql.at(name).address) << pod;
      EXPECT_TRUE(one.replica->io && one.replica->sql) << pod;
    }
  }
  [[nodiscard]] obs::Histogram& failover_seconds() {
    return metrics.histogram("mysqlcluster_failover_seconds",
                             "Duration of failovers, from the third failed probe until writes go to the new primary.",
                             obs::exponential_buckets(0.25, 2, 12));
  }
  [[nodiscard]] double failovers() { return static_cast<double>(failover_seconds().count()); }
};

/// demo-2 alone has the last acknowledged transaction, and the primary is dead.
class LastCopyTest : public FailoverTest {
 protected:
  void given_first_transaction(const std::string& spec = "{}") {
    given_running(spec);
    EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  }
  void given_last_copy_on_demo_2(const std::string& spec = "{}") {
    given_first_transaction(spec);
    write_to_demo_2_only();
  }
  void write_to_demo_2_only() {
    mysql.at("demo-1").replica->io = false;
    EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  }
  void cut_off_demo_2() { mysql.cut_off.insert(mysql.at("demo-2").address); }
  /// Neither the operator nor the primary has a connection to it.
  void lose_demo_2() {
    cut_off_demo_2();
    mysql.at("demo-2").replica->io = false;
  }
  /// Until the primary has been asked this often for its replicas.
  void run_until_asked(int times) {
    int asked = 0;
    mysql.on_statement = [&](const std::string&, const std::string& statement) {
      if (statement == "SHOW SLAVE HOSTS") ++asked;
    };
    for (int i = 0; i < 1200 && asked < times; ++i) run_for(100ms);
    mysql.on_statement = {};
    ASSERT_EQ(asked, times) << status_text();
    run_for(100ms);
  }
  void run_until_chosen(const std::string& pod = "demo-2") {
    for (int i = 0; i < 120000 && cluster().string_at({"status", "failover", "to"}).empty(); ++i) run_for(1ms);
    ASSERT_EQ(cluster().string_at({"status", "failover", "to"}), pod) << status_text();
  }
  void expect_failover_waits_for_demo_2() {
    run_for(80s);
    EXPECT_THAT(mysql.writable(), testing::IsEmpty()) << status_text();
    EXPECT_EQ(condition("FailoverInProgress"), "True PromoteReplica") << status_text();
    EXPECT_THAT(condition_message("FailoverInProgress"), testing::HasSubstr("waiting for demo-2"));
  }
  void expect_demo_2_is_promoted_with_everything(async::Duration within = 1min) {
    run_for(within);
    EXPECT_EQ(primary(), "demo-2") << status_text();
    EXPECT_EQ(mysql.at("demo-2").log.size(), 2U);
  }
};

}  // namespace hubferry::mysql::test
