// `hubferry hub` and `migrate --selector` as people start them, against a simulated global hub and a simulated hub.
#include <gmock/gmock.h>

#include <csignal>
#include <map>
#include <regex>
#include <thread>

#include "app/cli/server_client.hpp"
#include "app/doctor/diagnosis.hpp"
#include "hubferry/hubagent/hub_permissions.hpp"
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
    for (const auto& document : kube::parse_yaml_documents(hubagent::hub_rbac_manifests(), "manifests")) {
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

// Which product a hub is decides what can be done with it.
TEST_F(HubProcess, CheckNamesTheProductOfTheHub) {
  add_hub("hub1");
  add_secret("hub1", hub_.kubeconfig_for(sim::admin()));
  const auto kinds = [&](const char* use) {
    const auto checked = json::parse(run({"hub", "check", "hub1", "--as", use, "-o", "json"}).out);
    for (const auto& check : checked.at("checks").as_array())
      if (check.at("name") == "kinds")
        return std::string{check.at("result").as_string()} + ": " + std::string{check.at("message").as_string()};
    return std::string{};
  };
  const auto install = [&](const std::string& group, const std::string& plural, const std::string& kind) {
    auto definition = json::parse(R"({"spec": {"scope": "Namespaced", "versions": [{"name": "v1", "served": true,
      "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})")
                          .as_object();
    definition["metadata"] = json::object{{"name", plural + "." + group}};
    auto& spec = definition["spec"].as_object();
    spec["group"] = group;
    spec["names"] = json::object{{"plural", plural}, {"kind", kind}};
    loop_.run(hub_client_.api().create(kube::resources::custom_resource_definitions, definition)).value();
    const kube::Resource resource{group, "v1", plural, kind, true};
    while (!loop_.run(hub_client_.api().serves(resource)).value()) std::this_thread::yield();
  };
  EXPECT_EQ(kinds("source"), "ok: Open Cluster Management, with KlusterletConfigs");
  install("multicluster.openshift.io", "multiclusterengines", "MultiClusterEngine");
  EXPECT_EQ(kinds("source"), "ok: multicluster engine, with KlusterletConfigs");
  install("operator.open-cluster-management.io", "multiclusterhubs", "MultiClusterHub");
  EXPECT_EQ(kinds("source"), "ok: Advanced Cluster Management, with KlusterletConfigs");
  const auto& configs = ocm::klusterlet_configs;
  const kube::Key definition{"", configs.plural + "." + configs.group};
  loop_.run(hub_client_.api().remove(kube::resources::custom_resource_definitions, definition)).value();
  while (loop_.run(hub_client_.api().get(kube::resources::custom_resource_definitions, definition)))
    std::this_thread::yield();
  EXPECT_THAT(kinds("source"),
              HasSubstr("failed: Advanced Cluster Management, without KlusterletConfigs: it cannot be"));
  EXPECT_EQ(kinds("target"), "ok: Advanced Cluster Management, without KlusterletConfigs");
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

TEST_F(HubProcess, AddRegistersAHubAndRepeatedItRenewsTheToken) {
  const auto admin = directory_.write("hub1.admin", hub_.kubeconfig_for(sim::admin())).string();
  const std::vector<std::string> add{"hub", "add", "hub1", "--hub-kubeconfig", admin};
  EXPECT_THAT(run(add).err, HasSubstr("the global hub has no ManagedCluster hub1: import the hub there first"));
  auto cluster = named("hub1");
  loop_.run(client_.api().create(ocm::managed_clusters, cluster)).value();
  if (namespaces_.insert("hub1").second) add_namespace(client_, "hub1");
  EXPECT_THAT(run(add).err, HasSubstr("has no ServiceAccount hubferry-system/hubferry-hub for the manager: apply"));
  add_namespace(hub_client_, "hubferry-system");
  json::object manager{{"metadata", json::object{{"name", "hubferry-hub"}, {"namespace", "hubferry-system"}}}};
  loop_.run(hub_client_.api().create(kube::resources::service_accounts, manager)).value();
  auto dry = add;
  dry.emplace_back("--dry-run");
  EXPECT_THAT(run(dry).out, AllOf(HasSubstr("name: hubferry-kubeconfig"), Not(HasSubstr("TOKEN"))));
  EXPECT_FALSE(loop_.run(client_.api().get(kube::resources::secrets, {"hub1", "hubferry-kubeconfig"})));

  const auto added = run(add);
  EXPECT_EQ(added.code, 0) << added.err;
  EXPECT_THAT(added.out, AllOf(HasSubstr("Hub hub1 added: Secret hub1/hubferry-kubeconfig"), HasSubstr("expires at 20"),
                               HasSubstr("Check it: hubferry hub check hub1 --kubeconfig ")));
  const auto secret = loop_.run(client_.api().get(kube::resources::secrets, {"hub1", "hubferry-kubeconfig"})).value();
  const auto config = hubs::read_hub_kubeconfig(secret);
  EXPECT_THAT(added.out, Not(HasSubstr(config.token)));
  EXPECT_FALSE(config.token.empty());
  EXPECT_EQ(results(run({"hub", "check", "hub1", "-o", "json"}))["credential"], "ok");
  const auto labelled = loop_.run(client_.api().get(ocm::managed_clusters, {"", "hub1"})).value();
  EXPECT_EQ(labelled.label(ocm::names::deploy_mode_label), "default");

  EXPECT_EQ(run(add).code, 0);
  const auto renewed = loop_.run(client_.api().get(kube::resources::secrets, {"hub1", "hubferry-kubeconfig"})).value();
  EXPECT_NE(hubs::read_hub_kubeconfig(renewed).token, config.token);
  add_secret("hub1", nowhere, "another");
  EXPECT_THAT(run(add).err, HasSubstr("Secret hub1/another has a kubeconfig of the hub already"));
  EXPECT_EQ(run({"hub", "add", "hub1"}).code, 2);
  EXPECT_EQ(run({"hub", "check", "hub1", "--dry-run"}).code, 2);
  EXPECT_EQ(run({"hub", "list", "--token-duration", "720h"}).code, 2);
  // Of a flag that an action does not have, nobody should believe that it was heard.
  EXPECT_THAT(run({"hub", "list", "--as", "source"}).err, HasSubstr("--as is for hub check"));
  EXPECT_EQ(run({"hub", "add", "hub1", "--hub-kubeconfig", admin, "--as", "target"}).code, 2);
  EXPECT_EQ(run({"hub", "add", "hub1", "--hub-kubeconfig", admin, "-o", "json"}).code, 2);
}

// The manager would not use it, and the token would be out.
TEST_F(HubProcess, AddRefusesAServerWithoutHttpsBeforeItRequestsAToken) {
  const auto admin = directory_.write("hub1.admin", hub_.kubeconfig_for(sim::admin())).string();
  const auto refusal = [&](const std::string& url) {
    return run({"hub", "add", "hub1", "--hub-kubeconfig", admin, "--server", url}).err;
  };
  EXPECT_THAT(refusal("http://hub1:6443"), HasSubstr("--server: the server is not https"));
  EXPECT_THAT(refusal("hub1:6443"), HasSubstr("--server: a server URL begins with https://"));
  const auto clear = directory_.write("clear.admin", std::regex_replace(nowhere, std::regex{"https"}, "http")).string();
  EXPECT_THAT(run({"hub", "add", "hub1", "--hub-kubeconfig", clear}).err,
              HasSubstr("the kubeconfig of hub hub1: the server is not https"));
}

TEST(Doctor, HidesWhatFlagsProbesAndVariablesMayHold) {
  const auto container = json::parse(R"({"spec": {"containers": [{
    "command": ["hubferry", "--api-token", "s3cret"],
    "args": ["manager", "--log-format=json", "--Password=s3cret", "sh -c 'x --token s3cret'"],
    "env": [{"name": "A", "value": "s3cret"}],
    "livenessProbe": {"exec": {"command": ["s3cret"]}},
    "readinessProbe": {"httpGet": {"path": "/readyz", "httpHeaders": [{"name": "A", "value": "s3cret"}]}}}]}})");
  EXPECT_EQ(json::value(without_secrets(container.as_object())), json::parse(R"({"spec": {"containers": [{
    "command": ["hubferry", "--api-token", "hidden"],
    "args": ["manager", "--log-format=json", "--Password=hidden", "hidden"],
    "env": [{"name": "A", "value": "hidden"}],
    "livenessProbe": {"exec": {}},
    "readinessProbe": {"httpGet": {"path": "/readyz"}}}]}})"));
}

TEST_F(HubProcess, DoctorNamesWhatLooksWrongAndItsBundleHasNoSecrets) {
  add_namespace(client_, "hubferry-system");
  add_hub("dead");
  add_secret("dead", nowhere);
  json::object spec{{"from", "dead"}, {"to", "other"}, {"includedManagedClusters", json::array{"c1"}}};
  json::object annotations{{"kubectl.kubernetes.io/last-applied-configuration", "very-secret"}};
  json::object metadata{{"name", "m"}, {"namespace", "hubferry-system"}, {"annotations", std::move(annotations)}};
  json::object migration{{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  loop_.run(client_.api().create(migration::managed_cluster_migrations, migration)).value();
  // None of them is ours: not the migration's ledger, not of leader election, not of the manager.
  const auto in_namespace = [](const std::string& name) {
    return json::object{{"metadata", json::object{{"name", name}, {"namespace", "hubferry-system"}}}};
  };
  auto foreign = in_namespace("m");
  foreign["data"] = json::object{{"key", "very-secret"}};
  loop_.run(client_.api().create(kube::resources::config_maps, foreign)).value();
  auto lease = in_namespace("other");
  lease["spec"] = json::object{{"holderIdentity", "very-secret"}};
  loop_.run(client_.api().create(kube::resources::leases, lease)).value();
  auto workload = in_namespace("very-secret");
  workload["spec"] = json::object{{"replicas", 1}};
  const kube::Resource deployments{"apps", "v1", "deployments", "Deployment", true};
  loop_.run(client_.api().create(deployments, workload)).value();
  const auto bundle = directory_.file("support.tar.gz");
  const auto found = run({"doctor", "--bundle", bundle});
  EXPECT_EQ(found.code, 1);
  EXPECT_THAT(found.out, AllOf(HasSubstr("- migration hubferry-system/m has not been seen by a manager"),
                               HasSubstr("- namespace hubferry-system has no Lease"),
                               HasSubstr("- hub dead: reachable: "), HasSubstr("Written to " + bundle)));
  Process listing{{"tar", "-xzOf", bundle}};
  EXPECT_EQ(listing.wait(), 0) << listing.err();
  EXPECT_THAT(listing.out(),
              AllOf(HasSubstr("name: m"), HasSubstr("\"hub\": \"dead\""), Not(HasSubstr("very-secret"))));
  Process names{{"tar", "-tzf", bundle}};
  EXPECT_EQ(names.wait(), 0) << names.err();
  EXPECT_THAT(names.out(), AllOf(HasSubstr("findings.txt"), HasSubstr("migrations.yaml"), HasSubstr("hubs.json")));
  EXPECT_EQ(std::filesystem::status(bundle).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_THAT(run({"doctor", "--bundle", bundle}).err, HasSubstr("File exists"));
  auto unreadable = in_namespace("hubferry-manager");
  unreadable["spec"] = json::object{{"holderIdentity", "manager"}, {"renewTime", "soon"}};
  loop_.run(client_.api().create(kube::resources::leases, unreadable)).value();
  EXPECT_THAT(run({"doctor"}).out, HasSubstr("Lease hubferry-system/hubferry-manager has a renewTime that is no time"));
  const kube::Key key{"hubferry-system", "hubferry-manager"};
  json::object released{{"spec", json::object{{"holderIdentity", nullptr}}}};
  loop_.run(client_.api().merge_patch(kube::resources::leases, key, released)).value();
  EXPECT_THAT(run({"doctor"}).out, HasSubstr("Lease hubferry-system/hubferry-manager has no holder: no manager leads"));
  // As of a migration of thousands of clusters.
  json::object condition{{"type", "ResourceValidated"},
                         {"status", "False"},
                         {"reason", "ClusterNotFound"},
                         {"message", std::string(2000, 'x')},
                         {"lastTransitionTime", "2030-01-01T00:00:00Z"}};
  json::object status{{"phase", "Failed"}, {"conditions", json::array{std::move(condition)}}};
  loop_
      .run(client_.api().merge_patch(migration::managed_cluster_migrations, {"hubferry-system", "m"},
                                     json::object{{"status", std::move(status)}}, "status"))
      .value();
  EXPECT_THAT(run({"doctor"}).out,
              AllOf(HasSubstr("migration hubferry-system/m is Failed: xxx"), Not(HasSubstr(std::string(1000, 'x')))));
}

TEST_F(HubProcess, ShellCompletionOffersTheNamesOnTheServers) {
  add_namespace(client_, "hubferry-system");
  add_hub("hub1");
  add_secret("hub1", hub_.kubeconfig_for(sim::admin()));
  loop_.run(hub_client_.api().create(ocm::managed_clusters, named("c1"))).value();
  run({"migrate", "--from", "hub1", "--to", "hub2", "c1", "--name", "move-one"});
  const auto printed = [](std::vector<std::string> words) {
    words.insert(words.begin(), test::hubferry_binary());
    Process process{words};
    EXPECT_EQ(process.wait(), 0) << process.err();
    return process.out();
  };
  const auto offers = [&](const std::string& words) {
    const auto script = printed({"completion", "bash"});
    Process bash{{"bash", "-c",
                  "PATH=" + std::filesystem::path{test::hubferry_binary()}.parent_path().string() + ":$PATH; . " +
                      directory_.write("completion", script).string() + " && COMP_WORDS=(" + words +
                      ") && COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && _hubferry && printf '%s ' \"${COMPREPLY[@]}\""}};
    EXPECT_EQ(bash.wait(), 0) << bash.err();
    return bash.out();
  };
  const auto server = " --kubeconfig " + config_;
  EXPECT_EQ(offers("hubferry status" + server + " mo"), "move-one ");
  EXPECT_EQ(offers("hubferry hub" + server + " check h"), "hub1 ");
  EXPECT_EQ(offers("hubferry migrate" + server + " --from h"), "hub1 ");
  EXPECT_EQ(offers("hubferry migrate" + server + " --from hub1 --to hub2 c"), "c1 ");
  EXPECT_EQ(offers("hubferry status --kubeconfig /does/not/exist mo"), " ") << "and says nothing";
  EXPECT_THAT(printed({"completion", "zsh"}), HasSubstr("{_hubferry_names migrations}"));
  EXPECT_THAT(printed({"completion", "fish"}), HasSubstr("-a '(__hubferry_names hubs)'"));
  EXPECT_THAT(printed({"--help"}), Not(HasSubstr("  complete ")));
}

TEST_F(HubProcess, ASecondSecretOfAHubIsNotIgnoredInSilence) {
  add_hub("hub1");
  add_secret("hub1", hub_.kubeconfig_for(sim::admin()), "a");
  add_secret("hub1", nowhere, "b");
  const auto checked = run({"hub", "check", "hub1"});
  EXPECT_EQ(checked.code, 0) << checked.out;
  EXPECT_THAT(checked.out, HasSubstr("Secret hub1/a is used; 1 further Secret of the hub is ignored"));
}

TEST_F(HubProcess, TheManagerLogsWhichOfSeveralSecretsOfAHubItIgnores) {
  add_hub("hub1");
  add_secret("hub1", hub_.kubeconfig_for(sim::admin()), "a");
  add_secret("hub1", nowhere, "b");
  Process manager{{test::hubferry_binary(), "manager", "--kubeconfig=" + config_, "--namespace=default",
                   "--metrics-bind-address=0", "--health-probe-bind-address=0"}};
  manager.await_error_text("hub has several kubeconfig Secrets, using the first by name");
  manager.signal(SIGTERM);
  EXPECT_EQ(manager.wait(), 0) << manager.err();
  EXPECT_THAT(manager.err(), HasSubstr(R"("hub":"hub1","used":"a","ignored":"b")"));
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
