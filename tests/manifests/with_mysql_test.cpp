// The manager with migrations and the MySQL operator in one process, with the rights of overlays/with-mysql and no
// others.
#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "app/cli/server_client.hpp"
#include "hubferry/mysql/resource.hpp"
#include "hubferry/sim/crds.hpp"
#include "manifest_files.hpp"
#include "sim/served_test.hpp"
#include "support/process.hpp"
#include "support/real_loop.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* databases = "hubferry-mysql";
const std::string with_mysql_flags[] = {"--controllers=migration,mysql", "--mysql-namespace=hubferry-mysql"};

class WithMysql : public testing::Test {
 protected:
  WithMysql() {
    served_.run([](sim::Server& server, kube::Env env) { return sim::install_crds(server.api(), env); });
    using namespace kube::resources;
    for (const auto& kind : {namespaces, service_accounts, cluster_roles, cluster_role_bindings, roles, role_bindings})
      for (const auto& manifest : flattened(manifests_directory() / "overlays" / "with-mysql"))
        if (manifest.kind() == kind.kind) create(kind, manifest.content);
    create(namespaces, json::parse(R"({"metadata": {"name": "elsewhere"}})").as_object());
    for (const auto* ns : {databases, "elsewhere"}) {
      json::object metadata{{"name", "demo"}, {"namespace", ns}};
      create(mysql::mysql_clusters, {{"metadata", std::move(metadata)}, {"spec", json::object{}}});
    }
  }
  void create(const kube::Resource& kind, json::object object) {
    auto made = loop_.run(api_.create(kind, std::move(object)));
    EXPECT_TRUE(made || made.error().kind == kube::ErrorKind::already_exists) << made.error();
  }
  [[nodiscard]] bool exists(const kube::Resource& kind, const std::string& ns, const std::string& name) {
    return loop_.run(api_.get(kind, {ns, name})).has_value();
  }
  [[nodiscard]] std::vector<std::string> refused() {
    std::vector<std::string> all;
    served_.on_loop([&] {
      for (const auto& request : served_.server().requests())
        if (request.outcome.starts_with("403"))
          all.push_back(request.verb + " " + request.resource + " " + request.key.ns + "/" + request.key.name);
    });
    return all;
  }

  sim::Served served_;
  TemporaryDirectory directory_;
  const sim::User manager_{"system:serviceaccount:hubferry-system:hubferry", {"system:serviceaccounts"}, ""};
  app::ServerClient client_{
      kube::load_kubeconfig(directory_.write("admin", served_.kubeconfig_for(sim::admin())).string())};
  kube::Api& api_ = client_.api();
  RealLoop loop_;
};

TEST_F(WithMysql, OneProcessRunsBothWithTheRightsOfTheOverlay) {
  const auto overlay = text_of(manifests_directory() / "overlays" / "with-mysql" / "kustomization.yaml");
  for (const auto& flag : with_mysql_flags) EXPECT_THAT(overlay, HasSubstr("value: " + flag + "\n"));
  std::vector<std::string> command{
      hubferry_binary(),
      "manager",
      "--kubeconfig=" + directory_.write("manager", served_.kubeconfig_for(manager_)).string(),
      "--namespace=hubferry-system",
      "--leader-elect",
      "--metrics-bind-address=0",
      "--health-probe-bind-address=0"};
  command.insert(command.end(), std::begin(with_mysql_flags), std::end(with_mysql_flags));
  Process manager{command};
  manager.await_error_text("migration cache synced");
  manager.await_error_text("mysqlcluster cache synced");
  for (int i = 0; i < 600 && !exists(mysql::kinds::endpoint_slices, databases, "demo-mysql-write"); ++i) {
    if (exists(mysql::kinds::stateful_sets, databases, "demo")) break;
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  }
  EXPECT_TRUE(exists(mysql::kinds::stateful_sets, databases, "demo")) << manager.err();
  EXPECT_FALSE(exists(mysql::kinds::stateful_sets, "elsewhere", "demo")) << "not in its namespace";
  manager.signal(SIGTERM);
  EXPECT_EQ(manager.wait(), 0) << manager.err();
  EXPECT_THAT(refused(), IsEmpty());
}

TEST_F(WithMysql, StatusShowsClustersAndBackups) {
  const auto state = R"({"status": {"phase": "Running", "primary": "demo-1", "replicas": 3,
      "servers": [{"name": "demo-1", "role": "primary", "health": "writable"}]}})";
  const kube::Key key{databases, "demo"};
  ASSERT_TRUE(loop_.run(api_.merge_patch(mysql::mysql_clusters, key, json::parse(state).as_object(), "status")));
  create(mysql::mysql_backups, json::parse(R"({"metadata": {"name": "full", "namespace": "hubferry-mysql"},
      "spec": {"cluster": "demo", "storage": {"claimName": "backups"}}})")
                                   .as_object());
  const auto config = "--kubeconfig=" + directory_.write("admin", served_.kubeconfig_for(sim::admin())).string();
  Process all{{hubferry_binary(), "status", "--mysql", config}};
  EXPECT_EQ(all.wait(), 0) << all.err();
  EXPECT_THAT(all.out(), testing::AllOf(testing::ContainsRegex("hubferry-mysql/demo +Running +demo-1 +3/3"),
                                        HasSubstr("elsewhere/demo"), HasSubstr("hubferry-mysql/full")));
  Process one{{hubferry_binary(), "status", "--mysql", "-n", databases, "demo", config}};
  EXPECT_EQ(one.wait(), 0) << one.err();
  EXPECT_THAT(one.out(), testing::ContainsRegex("demo-1 +primary +writable"));
  Process none{{hubferry_binary(), "status", "--mysql", "dem", config}};
  EXPECT_EQ(none.wait(), 1);
  EXPECT_THAT(none.err(), HasSubstr("no MySQL cluster 'dem' found (did you mean demo?)"));
  Process both{{hubferry_binary(), "status", "--mysql", "--watch", config}};
  EXPECT_EQ(both.wait(), 2);
}

}  // namespace
}  // namespace hubferry::test
