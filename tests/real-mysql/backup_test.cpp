#include "real_mysql_test.hpp"

namespace hubferry::mysql::test {
namespace {

class RealBackupTest : public RealMysqlTest {};

TEST_F(RealBackupTest, ABackupOfAReplicaRestoresToAClusterWhoseServersReplicate) {
  given_running(R"({"replicas": 2})");
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
  const auto copy = [&] { return server.object(mysql_clusters, {"db", "copy"}).value_or(kube::Object{}); };
  ASSERT_TRUE(eventually([&] {
    return copy().string_at({"status", "phase"}) == "Running" && kube::is_condition_true(copy(), "ReplicasHealthy");
  })) << json::serialize(copy().json())
      << status_text() << runner.log_of("scripts") << runner.log_of("copy-0");
  EXPECT_EQ(value("copy-0", "(SELECT COUNT(*) FROM app.t)"), "10");
  query("copy-0", "INSERT INTO app.t VALUES (100)");
  EXPECT_TRUE(eventually([&] { return value("copy-1", "(SELECT COUNT(*) FROM app.t)") == "11"; }));
}

}  // namespace
}  // namespace hubferry::mysql::test
