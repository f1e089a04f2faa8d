// `hubferry hub` and `migrate --selector` as people start them, against a simulated global hub and a simulated hub.
#include <gmock/gmock.h>

#include <map>

#include "app/cli/server_client.hpp"
#include "app/hubs/hub_permissions.hpp"
#include "hubferry/hubs/hub_registration.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/yaml.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/crds.hpp"
#include "sim/served_test.hpp"
#include "support/process.hpp"
#include "support/real_loop.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::app {
namespace {

namespace json = kube::json;
using test::Process;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// The account of manifests/hub-rbac.
const sim::User account{
    .name = "system:serviceaccount:hubferry-system:hubferry-hub",
    .groups = {"system:serviceaccounts", "system:serviceaccounts:hubferry-system", "system:authenticated"},
    .uid = ""};

class HubProcess : public testing::Test {
 protected:
  HubProcess() {
    for (auto* server : {&global_, &hub_})
      server->run([](sim::Server& one, const kube::Env& env) { return sim::install_crds(one.api(), env); });
  }

  static json::object named(const std::string& name) { return {{"metadata", json::object{{"name", name}}}}; }
  void add_namespace(ServerClient& client, const std::string& name) {
    loop_.run(client.api().create(kube::resources::namespaces, named(name))).value();
  }
  /// A ManagedCluster that is a hub and Available.
  void add_hub(const std::string& name) {
    auto cluster = named(name);
    cluster["metadata"].as_object()["labels"] = json::object{{ocm::names::deploy_mode_label, "default"}};
    loop_.run(client_.api().create(ocm::managed_clusters, cluster)).value();
    json::object condition{{"type", ocm::names::available},
                           {"status", "True"},
                           {"reason", "Test"},
                           {"message", ""},
                           {"lastTransitionTime", "2030-01-01T00:00:00Z"}};
    json::object patch{{"status", json::object{{"conditions", json::array{std::move(condition)}}}}};
    loop_.run(client_.api().merge_patch(ocm::managed_clusters, {"", name}, patch, "status")).value();
  }
  void add_secret(const std::string& hub, const std::string& kubeconfig, const std::string& name = "hub-kubeconfig") {
    if (namespaces_.insert(hub).second) add_namespace(client_, hub);
    json::object secret{{"metadata", json::object{{"name", name},
                                                  {"namespace", hub},
                                                  {"labels", json::object{{hubs::hub_kubeconfig_label, "true"}}}}},
                        {"data", json::object{{hubs::hub_kubeconfig_key, kube::encode_base64(kubeconfig)}}}};
    loop_.run(client_.api().create(kube::resources::secrets, secret)).value();
  }
  /// The roles of manifests/hub-rbac and, of the bindings, those of `bound`.
  void grant(const std::vector<std::string>& bound) {
    if (!std::exchange(has_roles_, true)) add_namespace(hub_client_, "multicluster-engine");
    const std::map<std::string_view, const kube::Resource*> kinds{
        {"Namespace", &kube::resources::namespaces},
        {"Role", &kube::resources::roles},
        {"ClusterRole", &kube::resources::cluster_roles},
        {"RoleBinding", &kube::resources::role_bindings},
        {"ClusterRoleBinding", &kube::resources::cluster_role_bindings}};
    for (const auto& document : kube::parse_yaml_documents(hub_rbac_manifests(), "manifests")) {
      const auto& object = document.as_object();
      const auto kind = kube::string_at(object, {"kind"});
      const auto name = kube::string_at(object, {"metadata", "name"});
      if (kind.ends_with("Binding") && std::ranges::find(bound, name) == bound.end()) continue;
      const auto created = loop_.run(hub_client_.api().create(*kinds.at(kind), object));
      ASSERT_TRUE(created || created.error().kind == kube::ErrorKind::already_exists) << created.error();
    }
  }
  struct Ended {
    int code;
    std::string out;
    std::string err;
  };
  Ended run(std::vector<std::string> words) {
    words.insert(words.begin(), test::hubferry_binary());
    words.push_back("--kubeconfig=" + config_);
    Process process{words};
    const int code = process.wait();
    return {code, process.out(), process.err()};
  }
  /// The results of `hub check`, by the name of the check.
  static std::map<std::string, std::string> results(const Ended& checked) {
    std::map<std::string, std::string> all;
    const auto parsed = json::parse(checked.out);
    for (const auto& check : parsed.at("checks").as_array())
      all[std::string{check.at("name").as_string()}] = std::string{check.at("result").as_string()};
    return all;
  }

  sim::Served global_;
  sim::Served hub_;
  bool has_roles_ = false;
  test::TemporaryDirectory directory_;
  std::string config_ = directory_.write("kubeconfig", global_.kubeconfig_for(sim::admin())).string();
  ServerClient client_{kube::load_kubeconfig(config_)};
  ServerClient hub_client_{
      kube::load_kubeconfig(directory_.write("hub.kubeconfig", hub_.kubeconfig_for(sim::admin())).string())};
  std::set<std::string> namespaces_;
  test::RealLoop loop_;
};

constexpr const char* nowhere =
    "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
    "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
    "users: [{name: u, user: {token: very-secret}}]\ncurrent-context: c\n";

TEST_F(HubProcess, ListShowsEveryHubWithItsProblem) {
  EXPECT_EQ(run({"hub", "list"}).out, "The global hub knows no hubs.\n");
  add_hub("good");
  add_secret("good", hub_.kubeconfig_for(account));
  add_hub("bare");
  add_hub("dead");
  add_secret("dead", nowhere);
  add_hub("garbage");
  add_secret("garbage", "token: very-secret\n");
  const auto listed = run({"hub", "list", "-o", "json"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, Not(HasSubstr("very-secret")));
  std::map<std::string, json::object> hubs;
  const auto parsed = json::parse(listed.out);
  for (const auto& hub : parsed.as_array()) hubs[std::string{hub.at("name").as_string()}] = hub.as_object();
  ASSERT_EQ(hubs.size(), 4U);
  EXPECT_EQ(hubs["good"]["reachable"], true);
  EXPECT_EQ(hubs["good"]["problem"], "");
  EXPECT_NE(hubs["good"]["version"], "");
  for (const auto* name : {"bare", "dead", "garbage"}) {
    EXPECT_EQ(hubs[name]["reachable"], false) << name;
    EXPECT_NE(hubs[name]["problem"], "") << name;
  }
  const auto table = run({"hub", "list"});
  EXPECT_THAT(table.out, AllOf(HasSubstr("HUB"), HasSubstr("there is no kubeconfig for hub bare")));
}

// The permissions that are reviewed are those that the manifests grant: no more, no less.
TEST_F(HubProcess, CheckAcceptsAHubWithTheManifestsAndNamesWhatIsOptional) {
  add_hub("hub1");
  add_secret("hub1", hub_.kubeconfig_for(account));
  grant({"hubferry-source", "hubferry-target", "hubferry-bootstrap-secrets", "hubferry-credentials"});
  const auto unable = run({"hub", "check", "hub1"});
  EXPECT_EQ(unable.code, 1) << "without approval nothing can arrive here";
  EXPECT_THAT(unable.out, HasSubstr("apply manifests/hub-rbac/approval"));
  grant({"hubferry-target-approval"});
  const auto checked = run({"hub", "check", "hub1", "-o", "json"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_EQ(results(checked), (std::map<std::string, std::string>{{"registered", "ok"},
                                                                  {"kubeconfig", "ok"},
                                                                  {"reachable", "ok"},
                                                                  {"credential", "ok"},
                                                                  {"kinds", "ok"},
                                                                  {"permissions: source", "ok"},
                                                                  {"permissions: target", "ok"},
                                                                  {"permissions: source clusters", "warning"},
                                                                  {"permissions: target clusters", "warning"},
                                                                  {"permissions: approval", "ok"},
                                                                  {"permissions: workloads", "warning"}}));
}

TEST_F(HubProcess, CheckNamesTheMissingPermissionsAndWhatToDo) {
  add_hub("hub1");
  add_secret("hub1", hub_.kubeconfig_for(account));
  grant({"hubferry-source"});
  const auto both = run({"hub", "check", "hub1"});
  EXPECT_EQ(both.code, 1);
  EXPECT_THAT(both.out, AllOf(HasSubstr("may not get secrets in namespace multicluster-engine"),
                              HasSubstr("apply manifests/hub-rbac on the hub"), HasSubstr("permissions: target")));
  const auto source = run({"hub", "check", "hub1", "--as", "source"});
  EXPECT_EQ(source.code, 1);
  EXPECT_THAT(source.out, Not(HasSubstr("permissions: target")));
}

TEST_F(HubProcess, CheckSaysWhereItStops) {
  add_hub("dead");
  add_secret("dead", nowhere);
  const auto dead = run({"hub", "check", "dead", "-o", "json"});
  EXPECT_EQ(dead.code, 1);
  EXPECT_EQ(results(dead)["reachable"], "failed");
  EXPECT_FALSE(results(dead).contains("credential"));
  add_hub("expired");
  auto config = kube::parse_kubeconfig(hub_.kubeconfig_for(account), "test", std::nullopt);
  config.token = "very-secret";
  add_secret("expired", kube::to_kubeconfig(config));
  const auto expired = run({"hub", "check", "expired", "-o", "json"});
  EXPECT_EQ(expired.code, 1);
  EXPECT_EQ(results(expired)["credential"], "failed");
  EXPECT_THAT(expired.out, AllOf(HasSubstr("rejects it (401)"), Not(HasSubstr("very-secret"))));
  add_secret("stray", nowhere);
  EXPECT_THAT(run({"hub", "check", "stray"}).out, HasSubstr("the global hub has no ManagedCluster stray"));
  EXPECT_THAT(run({"hub", "check", "daed"}).err, HasSubstr("no hub 'daed' (did you mean dead?)"));
  EXPECT_EQ(run({"hub", "check"}).code, 2);
  EXPECT_EQ(run({"hub", "list", "dead"}).code, 2);
  EXPECT_EQ(run({"hub", "chekc", "dead"}).code, 2);
}

TEST_F(HubProcess, ASecondSecretOfAHubIsNotIgnoredInSilence) {
  add_hub("hub1");
  add_secret("hub1", hub_.kubeconfig_for(sim::admin()), "a");
  add_secret("hub1", nowhere, "b");
  const auto checked = run({"hub", "check", "hub1"});
  EXPECT_EQ(checked.code, 0) << checked.out;
  EXPECT_THAT(checked.out, HasSubstr("Secret hub1/a is used; 1 further Secret of the hub is ignored"));
}

TEST_F(HubProcess, MigrateTakesTheClustersWithALabelAndNeverTheHubItself) {
  add_namespace(client_, "hubferry-system");
  add_hub("hub1");
  add_secret("hub1", hub_.kubeconfig_for(sim::admin()));
  const std::map<std::string, json::object> clusters{{"c1", {{"region", "eu"}}},
                                                     {"c2", {{"region", "us"}}},
                                                     {"c3", {{"region", "eu"}}},
                                                     {"local-cluster", {{"region", "eu"}, {"local-cluster", "true"}}}};
  for (const auto& [name, labels] : clusters) {
    auto cluster = named(name);
    cluster["metadata"].as_object()["labels"] = labels;
    loop_.run(hub_client_.api().create(ocm::managed_clusters, cluster)).value();
  }
  const auto created = run({"migrate", "--from", "hub1", "--to", "hub2", "-l", "region=eu", "--name", "m"});
  EXPECT_EQ(created.code, 0) << created.err;
  EXPECT_THAT(created.out, HasSubstr("created: 2 clusters from hub1 to hub2"));
  const auto migration =
      loop_.run(client_.api().get(migration::managed_cluster_migrations, {"hubferry-system", "m"})).value();
  EXPECT_EQ(*migration.find({"spec", "includedManagedClusters"}), json::parse(R"(["c1","c3"])"));
  const auto none = run({"migrate", "--from", "hub1", "--to", "hub2", "-l", "region=asia"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("hub hub1 has no cluster with the labels 'region=asia'"));
}

}  // namespace
}  // namespace hubferry::app
