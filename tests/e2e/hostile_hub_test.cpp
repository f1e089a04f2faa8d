#include "hubferry/kube/base64.hpp"
#include "stage.hpp"
#include "support/scripted_server.hpp"

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

// Each answer claims a body of 4 EiB: once, the manager ended by std::bad_alloc, again at every restart.
TEST(HostileHub, DoesNotEndTheManagerNorStopOtherHubs) {
  const Authority authority{"hostile"};
  ScriptedServer hostile{authority.issue({"IP:127.0.0.1"}), [](Session& session) {
                           session.read_request();
                           session.send(
                               "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                               "Content-Length: 4611686018427387904\r\n\r\n{");
                           session.wait_until_gone();
                         }};
  SimProcess sim{{"--clusters=3", "--hubs=hub1,hub2"}};
  Onlooker onlooker{sim};
  ManagerOfWorld manager{sim};
  sim.must("global", "apply -f " + sim.write("hostile.yaml", hub_manifest("hostile", hostile, authority)));
  ASSERT_TRUE(onlooker.eventually([&] { return !hostile.requests().empty(); }));
  sim.must("global", "apply -f " + sim.write("migration.yaml", migration_manifest("m", 1, 2)));
  ASSERT_TRUE(onlooker.eventually([&] { return onlooker.all_ended() || !manager.process().running(); }));
  EXPECT_TRUE(manager.process().running());
  EXPECT_EQ(onlooker.phases().at("m"), "Completed");
  manager.process().signal(SIGTERM);
  EXPECT_EQ(manager.process().wait(), 0) << manager.process().err();
}

}  // namespace
}  // namespace hubferry::test
