#include <algorithm>
#include <fstream>
#include <map>
#include <memory>

#include "hubferry/kube/base64.hpp"
#include "stage.hpp"
#include "support/hostile_scripts.hpp"

namespace hubferry::test {
namespace {

/// A hub as the manager finds it: a ManagedCluster, and a Secret with the kubeconfig of `server`.
std::string hub_manifest(const std::string& hub, const ScriptedServer& server, const Authority& authority) {
  kube::ClientConfig config;
  config.server = server.url();
  config.ca_pem = authority.certificate_pem();
  config.token = "token";
  return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + hub +
         "}\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: hub-kubeconfig\n  namespace: " + hub +
         "\n  labels: {hubferry.io/hub-kubeconfig: 'true'}\ndata: {kubeconfig: " +
         kube::encode_base64(kube::to_kubeconfig(config)) +
         "}\n---\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata:\n  name: " + hub +
         "\n  labels: {global-hub.open-cluster-management.io/deploy-mode: default}\nspec: {hubAcceptsClient: true}\n";
}

/// The most memory that the process has used, in MiB.
long peak_memory(const Process& process) {
  std::ifstream status{"/proc/" + std::to_string(process.pid()) + "/status"};
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    long kib = 0;
    status >> kib;
    return kib / 1024;
  }
  return 0;
}

// One hub claimed a body of 4 EiB, and the manager ended by std::bad_alloc, again at every restart.
TEST(HostileHub, OfNoKindEndsTheManagerOrStopsOtherHubs) {
  const Authority authority{"hostile"};
  std::map<std::string, std::unique_ptr<ScriptedServer>> hostile;
  for (auto& [name, script] : hostile_scripts())
    hostile["hostile-" + name] = std::make_unique<ScriptedServer>(authority.issue({"IP:127.0.0.1"}), std::move(script));
  const auto& brief = *(hostile["hostile-watch"] =
                            std::make_unique<ScriptedServer>(authority.issue({"IP:127.0.0.1"}), brief_watches()));
  SimProcess sim{{"--clusters=3", "--hubs=hub1,hub2"}};
  Onlooker onlooker{sim};
  ManagerOfWorld manager{sim};
  std::string manifests;
  for (const auto& [name, server] : hostile) manifests += "---\n" + hub_manifest(name, *server, authority);
  sim.must("global", "apply -f " + sim.write("hostile.yaml", manifests));
  for (const auto& [name, server] : hostile)
    ASSERT_TRUE(onlooker.eventually([&] { return !server->requests().empty() || !manager.process().running(); }))
        << name;
  sim.must("global", "apply -f " + sim.write("migration.yaml", migration_manifest("m", 1, 2)));
  ASSERT_TRUE(onlooker.eventually([&] { return onlooker.all_ended() || !manager.process().running(); }));
  ASSERT_TRUE(manager.process().running()) << manager.process().err();
  EXPECT_EQ(onlooker.phases().at("m"), "Completed");
  EXPECT_LT(peak_memory(manager.process()), 1024);
  // 1,500 a second, once.
  EXPECT_LT(brief.requests().size(), 2000U);
  manager.process().signal(SIGTERM);
  EXPECT_EQ(manager.process().wait(), 0) << manager.process().err();
}

// A migration to such a hub says so, and takes no cluster from its source.
TEST(HostileHub, AsATargetTakesNoCluster) {
  const Authority authority{"hostile"};
  auto scripts = hostile_scripts();
  const auto types = std::ranges::find(scripts, "types", &HostileScript::name);
  ASSERT_NE(types, scripts.end());
  ScriptedServer hostile{authority.issue({"IP:127.0.0.1"}), types->script};
  SimProcess sim{{"--clusters=2", "--hubs=hub1,hub2"}};
  Onlooker onlooker{sim};
  ManagerOfWorld manager{sim};
  sim.must("global", "apply -f " + sim.write("hostile.yaml", hub_manifest("hostile", hostile, authority)));
  sim.must("global", "apply -f " + sim.write("m.yaml", migration_manifest("m", 1, 2, "hub1", "hostile")));
  ASSERT_TRUE(onlooker.eventually([&] { return onlooker.phases()["m"] != ""; }));
  std::this_thread::sleep_for(3s);
  EXPECT_TRUE(manager.process().running());
  EXPECT_NE(onlooker.phases().at("m"), "Completed");
  EXPECT_EQ(onlooker.clusters("hub1", true).size(), 2U);
}

}  // namespace
}  // namespace hubferry::test
