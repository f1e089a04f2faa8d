#include <fstream>
#include <sstream>

#include "backup_fixture.hpp"
#include "hubferry/kube/yaml.hpp"
#include "hubferry/mysql/operator_lease.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::IsEmpty;

/// Who runs the operator, and what binds its rights to that account.
struct Account {
  const char* user;
  const char* bindings;
};

/// Everything again with the rights of manifests/mysql and no others.
class MysqlRightsTest : public BackupTest, public testing::WithParamInterface<Account> {
 protected:
  MysqlRightsTest() {
    stop_operator();
    for (const std::string file : {"mysql/rights/cluster-role.yaml", "mysql/rights/role.yaml", GetParam().bindings}) {
      std::ifstream in{std::string{HUBFERRY_SOURCE_ROOT} + "/manifests/" + file};
      std::stringstream text;
      text << in.rdbuf();
      for (const auto& document : kube::parse_yaml_documents(text.str(), file)) install(document.as_object());
    }
    limited = server.api_as({GetParam().user, {"system:serviceaccounts"}, ""});
    working = std::make_unique<async::TaskScope>(loop.executor());
    working->spawn(operate());
  }
  Awaitable<> operate() {
    kube::LeaderElectionOptions election;
    election.ns = "db";
    election.identity = GetParam().user;
    auto work = [this](kube::Fence* fence) -> Awaitable<> {
      EXPECT_NE(fence, nullptr) << "no right to the Lease";
      ControllerOptions options;
      options.watch_namespace = "db";
      options.fence = fence;
      Controller limited_controller{*limited, mysql, mysql, options, env};
      co_await limited_controller.run();
    };
    co_await run_as_only_operator(*limited, election, nullptr, env, work);
  }
  void install(json::object object) {
    using namespace kube::resources;
    auto& metadata = object["metadata"].as_object();
    if (metadata.contains("namespace")) metadata["namespace"] = "db";
    for (const auto& kind : {cluster_roles, cluster_role_bindings, roles, role_bindings})
      if (object.at("kind").as_string() == kind.kind) EXPECT_TRUE(loop.run(server.api().create(kind, object)));
  }
  [[nodiscard]] std::vector<std::string> refused() const {
    std::vector<std::string> all;
    for (const auto& request : server.requests())
      if (request.outcome.starts_with("403"))
        all.push_back(request.verb + " " + request.resource + "/" + request.subresource + " " + request.key.name);
    return all;
  }
  std::unique_ptr<kube::Api> limited;
};

TEST_P(MysqlRightsTest, TheRoleOfTheManifestsIsSufficient) {
  given_claim();
  given_running(R"({"rootPassword": "first", "failoverCoolDownSeconds": 0,
                    "restoreFrom": {"claimName": "backups", "backup": "old"},
                    "backupSchedule": {"schedule": "0 * * * *", "storage": {"claimName": "backups"}}})");
  given_backup();
  run_for(2s);
  end_job("full-1", "Complete");
  mysql.at("demo-0").runs = false;
  run_for(2min);
  patch(R"({"spec": {"rootPassword": "second", "storage": {"size": "20Gi"}, "replicas": 2}})");
  run_for(10min);
  patch(R"({"spec": {"mysqlVersion": "11.4"}})");
  run_for(10min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_FALSE(exists(kinds::persistent_volume_claims, "data-demo-2"));
  EXPECT_EQ(backup_phase(), "Succeeded");
  EXPECT_GE(events("FailoverSuccess"), 2U) << "one failure, and a switchover for each restart of the primary";
  EXPECT_THAT(refused(), IsEmpty());
  working->stop();
  loop.run(working->join());
  working.reset();
}

INSTANTIATE_TEST_SUITE_P(
    AloneAndBesideMigrations, MysqlRightsTest,
    testing::Values(Account{"system:serviceaccount:hubferry-mysql:hubferry-mysql", "mysql/bindings.yaml"},
                    Account{"system:serviceaccount:hubferry-system:hubferry", "overlays/with-mysql/bindings.yaml"}));

}  // namespace
}  // namespace hubferry::mysql::test
