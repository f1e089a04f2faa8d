#pragma once

#include "mysql_test.hpp"

namespace hubferry::mysql::test {

class BackupTest : public MysqlTest {
 protected:
  void given_backup(const std::string& spec = R"({"cluster": "demo", "storage": {"claimName": "backups"}})",
                    const std::string& name = "full") {
    create(mysql_backups, R"({"metadata": {"name": ")" + name + R"(", "namespace": "db"}, "spec": )" + spec + "}");
  }
  void given_claim() {
    create(kinds::persistent_volume_claims, R"({"metadata": {"name": "backups", "namespace": "db"}, "spec": {}})");
  }
  [[nodiscard]] kube::Object backup(const std::string& name = "full") const {
    return server.object(mysql_backups, {"db", name}).value_or(kube::Object{});
  }
  [[nodiscard]] std::string backup_phase(const std::string& name = "full") const {
    return std::string{backup(name).string_at({"status", "phase"})};
  }
  void end_job(const std::string& name, const std::string& condition) {
    patch(
        R"({"status": {"startTime": "2030-01-01T00:01:00Z", "completionTime": "2030-01-01T00:04:12Z", "conditions": [{"type": ")" +
            condition + R"(", "status": "True"}]}})",
        kinds::jobs, name, "status");
    run_for(1s);
  }
  [[nodiscard]] std::vector<std::string> jobs() const {
    std::vector<std::string> names;
    for (const auto& job : server.objects(kinds::jobs)) names.emplace_back(job.name());
    return names;
  }
};

}  // namespace hubferry::mysql::test
