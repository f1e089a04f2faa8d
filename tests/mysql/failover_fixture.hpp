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
  [[nodiscard]] double failovers() {
    return static_cast<double>(
        metrics
            .histogram("mysqlcluster_failover_seconds",
                       "Duration of failovers, from the third failed probe until writes go to the new primary.",
                       obs::exponential_buckets(0.25, 2, 12))
            .count());
  }
};

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

}  // namespace hubferry::mysql::test
