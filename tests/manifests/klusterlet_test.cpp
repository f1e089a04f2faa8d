// The manifests of the agent: what they promise, and the agent with their rights and no others.
#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <set>

#include "../klusterlet/test_hub.hpp"
#include "app/commands/commands.hpp"
#include "app/commands/klusterlet_command.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/klusterlet/cluster_facts.hpp"
#include "hubferry/klusterlet/klusterlet_store.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/leader_election.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/crds.hpp"
#include "manifest_files.hpp"

namespace hubferry::test {
namespace {

using namespace std::chrono_literals;
using async::Awaitable;
using testing::IsEmpty;

constexpr const char* name_of_all = "hubferry-klusterlet";
const std::string ns = ocm::names::agent_namespace;

std::vector<Manifest> agent_manifests() {
  return flattened(manifests_directory() / "klusterlet");
}

Manifest agent_manifest(const std::string& kind) {
  for (const auto& manifest : agent_manifests())
    if (manifest.kind() == kind && manifest.name() == name_of_all) return manifest;
  throw std::runtime_error("no " + kind);
}

json::array rules_of(const char* kind) {
  return agent_manifest(kind).content.at("rules").as_array();
}

json::object agent_pod() {
  return agent_manifest("Deployment").content.at("spec").at("template").at("spec").as_object();
}

TEST(KlusterletDeployment, MeetsThePodSecurityProfileOfItsNamespace) {
  const auto pod = agent_pod();
  EXPECT_EQ(pod.at("securityContext").at("runAsNonRoot"), true);
  EXPECT_EQ(pod.at("securityContext").at("seccompProfile").at("type"), "RuntimeDefault");
  const auto& security = pod.at("containers").at(0).at("securityContext");
  EXPECT_EQ(security.at("allowPrivilegeEscalation"), false);
  EXPECT_EQ(security.at("readOnlyRootFilesystem"), true);
  EXPECT_EQ(security.at("capabilities").at("drop"), json::array{"ALL"});
  EXPECT_FALSE(pod.contains("hostNetwork"));
  EXPECT_FALSE(pod.contains("volumes"));
  EXPECT_EQ(agent_manifests().front().content.at("metadata").at("labels").at("pod-security.kubernetes.io/enforce"),
            "restricted");
}

TEST(KlusterletDeployment, StartsTheAgentWithExistingFlagsAndItsDefaultNames) {
  app::CommandLine line{"hubferry", ""};
  app::add_klusterlet_command(line);
  std::map<std::string, const app::Flag*> flags;
  for (const auto& flag : line.commands().front().flags()) flags["--" + flag.name] = &flag;
  const auto pod = agent_pod();
  const auto& arguments = pod.at("containers").at(0).at("args").as_array();
  EXPECT_EQ(arguments.at(0), "klusterlet");
  for (std::size_t at = 1; at < arguments.size(); ++at) {
    const std::string text{arguments[at].as_string()};
    const auto equals = text.find('=');
    ASSERT_TRUE(flags.contains(text.substr(0, equals))) << text;
    EXPECT_NO_THROW(flags[text.substr(0, equals)]->apply(text.substr(equals + 1)));
  }
  // The rights are given by name: what the agent asks for must be what the roles name.
  const app::KlusterletOptions options;
  EXPECT_EQ(options.own_namespace, ns);
  EXPECT_TRUE(options.leader_elect) << "two replicas";
  EXPECT_EQ(agent_manifest("Deployment").content.at("spec").at("replicas"), 2);
  std::set<std::string> named;
  for (const auto* kind : {"Role", "ClusterRole"})
    for (const auto& rule : rules_of(kind))
      if (const auto* names = rule.as_object().if_contains("resourceNames"))
        for (const auto& name : names->as_array()) named.emplace(name.as_string());
  EXPECT_THAT(named, testing::ElementsAre("klusterlet", options.lease_name));
  EXPECT_EQ(options.klusterlet_name, "klusterlet");
}

TEST(KlusterletDeployment, PortsProbesAndSelectorsAgree) {
  const auto pod = agent_pod();
  const auto& container = pod.at("containers").at(0);
  EXPECT_EQ(container.at("livenessProbe").at("httpGet").at("path"), "/livez");
  EXPECT_EQ(container.at("readinessProbe").at("httpGet").at("path"), "/readyz");
  for (const auto* probe : {"livenessProbe", "readinessProbe"})
    EXPECT_EQ(container.at(probe).at("httpGet").at("port"), "health");
  const auto selector = agent_manifest("Deployment").content.at("spec").at("selector").at("matchLabels");
  EXPECT_EQ(agent_manifest("PodDisruptionBudget").content.at("spec").at("selector").at("matchLabels"), selector);
  EXPECT_EQ(agent_manifest("NetworkPolicy").content.at("spec").at("podSelector").at("matchLabels"), selector);
  const auto account = agent_manifest("ServiceAccount");
  for (const auto* kind : {"RoleBinding", "ClusterRoleBinding"}) {
    const auto binding = agent_manifest(kind);
    EXPECT_EQ(binding.content.at("roleRef").at("name"), name_of_all);
    EXPECT_EQ(binding.content.at("subjects").at(0).at("name"), account.name().c_str());
    EXPECT_EQ(binding.content.at("subjects").at(0).at("namespace"), account.ns().c_str());
  }
  EXPECT_EQ(pod.at("serviceAccountName"), account.name().c_str());
}

/// The agent's own cluster, whose server checks rights, and two hubs.
class KlusterletRightsTest : public testing::Test {
 protected:
  KlusterletRightsTest() {
    for (auto* hub : {&hub1_, &hub2_, &hub3_}) loop_.run(hub->set_up());
    for (auto* hub : {&hub1_, &hub2_, &hub3_}) scope_.spawn(hub->react());
    loop_.run(sim::install_crds(own_.api(), env_));
    const std::vector<kube::Resource> kinds{kube::resources::namespaces,    kube::resources::service_accounts,
                                            kube::resources::roles,         kube::resources::role_bindings,
                                            kube::resources::cluster_roles, kube::resources::cluster_role_bindings};
    for (const auto& kind : kinds)
      for (const auto& manifest : agent_manifests())
        if (manifest.kind() == kind.kind) create(kind, manifest.content);
    put_secret("hub1", hub1_.bootstrap());
    put_secret("hub2", hub2_.bootstrap());
    create(ocm::klusterlets, json::parse(R"({"metadata": {"name": "klusterlet"}, "spec": {"clusterName": "cluster1",
      "registrationConfiguration": {"featureGates": [{"feature": "MultipleHubs", "mode": "Enable"}],
      "bootstrapKubeConfigs": {"type": "LocalSecrets", "localSecretsConfig": {"hubConnectionTimeoutSeconds": 300,
      "kubeConfigSecrets": [{"name": "hub1"}, {"name": "hub2"}]}}}}})")
                                 .as_object());
    create(klusterlet::cluster_claims,
           json::parse(R"({"metadata": {"name": "id.k8s.io"}, "spec": {"value": "1"}})").as_object());
    create(klusterlet::nodes, json::parse(R"({"metadata": {"name": "n1"}})").as_object());
    own_.forget_requests();
    api_ = own_.api_as(agent_);
  }
  ~KlusterletRightsTest() override {
    scope_.stop();
    loop_.run(scope_.join());
  }

  void create(const kube::Resource& kind, json::object content) {
    auto made = loop_.run(own_.api().create(kind, std::move(content)));
    EXPECT_TRUE(made) << made.error();
  }
  void put_secret(const std::string& name, const klusterlet::BootstrapConfig& bootstrap) {
    create(kube::resources::secrets, {{"metadata", json::object{{"name", name}, {"namespace", ns}}},
                                      {"stringData", json::object{{"kubeconfig", bootstrap.kubeconfig.reveal()}}}});
  }

  klusterlet::Connect connect() {
    return [this](const kube::ClientConfig& config) {
      for (auto* hub : {&hub1_, &hub2_, &hub3_})
        if (hub->url() == config.server) return hub->connect(config);
      throw kube::ConfigError("unknown server " + config.server);
    };
  }

  /// As `hubferry klusterlet` does it in a pod.
  Awaitable<> live() {
    kube::LeaderElectionOptions election;
    election.name = app::KlusterletOptions{}.lease_name;
    election.ns = ns;
    election.identity = "pod";
    kube::LeaderElector elector{*api_, election, env_};
    auto lead = [this](kube::LeaderEpoch) { return work(); };
    co_await elector.run(lead);
  }
  Awaitable<> work() {
    klusterlet::KlusterletStore store{*api_, {}, env_};
    klusterlet::ClusterFactsWatch facts{*api_, {}, env_};
    auto all = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(store.run());
      scope.spawn(facts.run());
      co_await store.wait_ready();
      klusterlet::AgentOptions options;
      options.cluster_name = store.cluster_name();
      options.agent_name = "agent";
      options.probe = klusterlet::probe_of(std::shared_ptr<kube::Api>(api_.get(), [](kube::Api*) {}));
      options.facts = &facts;
      klusterlet::Agent agent{options, store, connect(), env_};
      co_await agent.run();
    };
    co_await async::with_scope(all);
  }

  /// hub1 sends a list with a further hub, in a Secret of this name.
  Awaitable<> send_list(std::string secret) {
    json::object work{{"metadata", json::object{{"name", "cluster1-klusterlet"}, {"namespace", "cluster1"}}},
                      {"spec", json::object{{"workload", json::object{{"manifests", sent_manifests(secret)}}}}}};
    auto& api = hub1_.server.api();
    const kube::Key key{"cluster1", "cluster1-klusterlet"};
    const bool is_there = hub1_.server.object(ocm::manifest_works, key).has_value();
    auto made = is_there ? api.merge_patch(ocm::manifest_works, key, std::move(work))
                         : api.create(ocm::manifest_works, std::move(work));
    const auto sent = co_await std::move(made);
    EXPECT_TRUE(sent) << sent.error();
  }
  json::array sent_manifests(const std::string& name) const {
    json::object secret{{"apiVersion", "v1"},
                        {"kind", "Secret"},
                        {"metadata", json::object{{"name", name}, {"namespace", ns}}},
                        {"stringData", json::object{{"kubeconfig", hub3_.bootstrap(name).kubeconfig.reveal()}}}};
    auto klusterlet = json::parse(R"({"apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet",
      "metadata": {"name": "klusterlet"}, "spec": {"registrationConfiguration": {"bootstrapKubeConfigs":
        {"type": "LocalSecrets", "localSecretsConfig": {}}}}})");
    klusterlet.at_pointer("/spec/registrationConfiguration/bootstrapKubeConfigs/localSecretsConfig")
        .as_object()["kubeConfigSecrets"] = json::array{json::object{{"name", name}}};
    return {std::move(secret), std::move(klusterlet)};
  }

  template <typename Condition>
  bool until(Condition condition) {
    for (int step = 0; step < 3000 && !condition(); ++step) loop_.run_for(100ms);
    return condition();
  }

  static std::string right(const sim::RequestRecord& request) {
    return (request.verb == "apply" ? "patch" : request.verb) + " " + request.resource +
           (request.subresource.empty() ? "" : "/" + request.subresource);
  }
  std::set<std::string> refused() {
    std::set<std::string> all;
    for (const auto& request : own_.requests())
      if (request.user == agent_.name && request.outcome.starts_with("403")) all.insert(right(request));
    return all;
  }
  std::set<std::string> used() {
    std::set<std::string> all;
    for (const auto& request : own_.requests())
      if (request.user == agent_.name) all.insert(right(request));
    return all;
  }
  static std::set<std::string> granted() {
    std::set<std::string> all;
    for (const auto* kind : {"Role", "ClusterRole"})
      for (const auto& rule : rules_of(kind))
        for (const auto& resource : rule.at("resources").as_array())
          for (const auto& verb : rule.at("verbs").as_array()) {
            const std::string group{rule.at("apiGroups").at(0).as_string()};
            const std::string plural{resource.as_string()};
            const auto slash = plural.find('/');
            all.insert(std::string{verb.as_string()} + " " + plural.substr(0, slash) + (group.empty() ? "" : ".") +
                       group + (slash == std::string::npos ? "" : plural.substr(slash)));
          }
    return all;
  }

  async::VirtualLoop loop_;
  async::Random random_{7};
  obs::Metrics metrics_;
  kube::Env env_{loop_.clock(), random_, metrics_, obs::Logger{}};
  klusterlet::test::Hub hub1_{"hub1", env_};
  klusterlet::test::Hub hub2_{"hub2", env_};
  klusterlet::test::Hub hub3_{"hub3", env_};
  sim::Server own_{{}, env_};
  const sim::User agent_{
      "system:serviceaccount:" + ns + ":" + name_of_all, {"system:serviceaccounts", "system:authenticated"}, ""};
  std::unique_ptr<kube::Api> api_;
  async::TaskScope scope_{loop_.executor()};
};

// Not one right too few, and not one too many.
TEST_F(KlusterletRightsTest, TheAgentNeedsEveryRightThatItHasAndNoOther) {
  scope_.spawn(live());
  ASSERT_TRUE(until([&] { return hub1_.is_available("cluster1"); }));
  // The second list does not name the first one's Secret, which is deleted.
  for (const auto* secret : {"hub3-old", "hub3"}) {
    loop_.run(send_list(secret));
    loop_.run_for(15s);
  }
  EXPECT_FALSE(own_.object(kube::resources::secrets, {ns, "hub3-old"}));
  EXPECT_TRUE(own_.object(kube::resources::secrets, {ns, "hub2"})) << "the administrator's own stays";
  loop_.run(hub1_.accept("cluster1", false));
  ASSERT_TRUE(until([&] { return hub3_.is_available("cluster1"); }));
  // A renewed credential is patched into the Secret.
  loop_.run_for(1min);
  EXPECT_THAT(refused(), IsEmpty());
  auto unused = granted();
  for (const auto& right : used()) {
    unused.erase(right);
    // A server that does not stream the initial objects is asked for a list before the watch.
    if (right.starts_with("watch ")) unused.erase("list " + right.substr(6));
  }
  EXPECT_THAT(unused, IsEmpty());
  const auto cluster = hub3_.cluster("cluster1");
  ASSERT_TRUE(cluster);
  EXPECT_NE(cluster->find({"status", "clusterClaims"}), nullptr);
}

// The other direction: the test above would notice a missing right.
TEST_F(KlusterletRightsTest, AMissingPermissionIsDetected) {
  auto role = agent_manifest("Role").content;
  role.at("rules").at(0).at("verbs") = json::array{"get", "list", "watch"};
  auto changed = loop_.run(own_.api().update(kube::resources::roles, role));
  ASSERT_TRUE(changed) << changed.error();
  scope_.spawn(live());
  EXPECT_TRUE(until([&] { return refused().contains("create secrets"); }));
}

}  // namespace
}  // namespace hubferry::test
