#include "real_mysql_test.hpp"

namespace hubferry::mysql::test {
namespace {

class RealBackupTest : public RealMysqlTest {};

// With a password that has to be quoted almost everywhere.
TEST_F(RealBackupTest, ABackupOfAReplicaRestoresToAClusterWhoseServersReplicate) {
  given_running(
      R"({"replicas": 2, "rootPassword": "a\\b\"c'd #e $(f) %g", "config": "sql_mode=NO_BACKSLASH_ESCAPES"})");
  ASSERT_EQ(root().password.reveal(), R"(a\b"c'd #e $(f) %g)");
  for (int i = 1; i <= 10; ++i) query("demo-0", "INSERT INTO app.t VALUES (" + std::to_string(i) + ")");
  const auto create = [&](const kube::Resource& kind, const std::string& text) {
    auto made = loop.run(server.api().create(kind, json::parse(text).as_object()));
    EXPECT_TRUE(made) << made.error();
  };
  create(kinds::persistent_volume_claims, R"({"metadata": {"name": "backups", "namespace": "db"}, "spec": {}})");
  create(mysql_backups, R"({"metadata": {"name": "full", "namespace": "db"},
                            "spec": {"cluster": "demo", "storage": {"claimName": "backups"}}})");
  const auto backup = [&] { return server.object(mysql_backups, {"db", "full"}).value_or(kube::Object{}); };
  ASSERT_TRUE(eventually([&] { return backup().string_at({"status", "phase"}) == "Succeeded"; }))
      << json::serialize(backup().json()) << runner.log_of("scripts");
  EXPECT_EQ(backup().string_at({"status", "source"}), "demo-1");
  query("demo-0", "INSERT INTO app.t VALUES (11)");  // after the backup
  create(mysql_clusters, R"({"metadata": {"name": "copy", "namespace": "db"},
                             "spec": {"replicas": 2, "rootPassword": "ref://demo-root",
                                      "restoreFrom": {"claimName": "backups", "backup": "full"}}})");
  // The first start of the replica is cut short, before the server has read the position of the backup.
  ASSERT_TRUE(eventually([&] { return runner.server_of("copy-1") != 0; }));
  runner.kill_server("copy-1");
  ASSERT_TRUE(eventually([&] { return runner.server_of("copy-1") == 0; }));
  loop.run(runner.restart_server("copy-1"));
  const auto copy = [&] { return server.object(mysql_clusters, {"db", "copy"}).value_or(kube::Object{}); };
  ASSERT_TRUE(eventually([&] {
    return copy().string_at({"status", "phase"}) == "Running" && kube::is_condition_true(copy(), "ReplicasHealthy");
  })) << json::serialize(copy().json())
      << status_text() << runner.log_of("scripts") << runner.log_of("copy-0");
  EXPECT_EQ(value("copy-0", "(SELECT COUNT(*) FROM app.t)"), "10");
  query("copy-0", "INSERT INTO app.t VALUES (100)");
  EXPECT_TRUE(eventually([&] { return value("copy-1", "(SELECT COUNT(*) FROM app.t)") == "11"; }));
  // Nor is that position set when the server has gone on since then: it would replicate the row once more.
  const auto first = runner.server_of("copy-1");
  ASSERT_TRUE(loop.run(server.api().remove(kinds::pods, {"db", "copy-1"})));
  ASSERT_TRUE(eventually([&] { return runner.server_of("copy-1") != 0 && runner.server_of("copy-1") != first; }))
      << status_text();
  query("copy-0", "INSERT INTO app.t VALUES (101)");
  EXPECT_TRUE(eventually([&] {
    const auto rows = loop.run(query_as("copy-1", "SELECT COUNT(*) AS value FROM app.t", root()));
    return rows && sql::text_of(rows->at(0), "value") == "12";
  })) << json::serialize(copy().json())
      << runner.log_of("copy-1");
}

}  // namespace
}  // namespace hubferry::mysql::test
