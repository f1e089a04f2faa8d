#include "sim/sim_process.hpp"
#include "support/temporary_directory.hpp"

#include <sys/stat.h>

#include <boost/json.hpp>

namespace hubferry::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(SimProcessTest, ATourWithKubectl) {
  SimProcess sim{{"--clusters=5", "--hubs=hub1,hub2", "--seed=3"}};
  struct stat status{};
  ASSERT_EQ(::stat(sim.kubeconfig("hub1").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);

  // The hubs on the global hub, the clusters on the first hub.
  const auto hubs = sim.must("global", "get managedclusters");
  EXPECT_THAT(hubs, AllOf(HasSubstr("HUB ACCEPTED"), HasSubstr("JOINED"), HasSubstr("hub1"), HasSubstr("hub2")));
  const auto clusters = sim.must("hub1", "get mcl --no-headers");
  EXPECT_EQ(std::count(clusters.begin(), clusters.end(), '\n'), 5);
  EXPECT_THAT(clusters, AllOf(HasSubstr("cluster-00001"), HasSubstr("True")));
  EXPECT_THAT(sim.must("hub1", "describe managedcluster cluster-00001"),
              AllOf(HasSubstr("Hub Accepts Client:"), HasSubstr("ManagedClusterConditionAvailable")));
  EXPECT_THAT(sim.must("hub1", "api-resources"),
              AllOf(HasSubstr("manifestworks"), HasSubstr("baremetalhosts"), HasSubstr("clusterdeployments")));
  EXPECT_THAT(sim.must("hub1", "get manifestworks -A"), HasSubstr("cluster-00005-klusterlet"));
  EXPECT_THAT(sim.must("hub1", "get secrets -n cluster-00002"), HasSubstr("cluster-00002-import"));

  // The hub's controllers run: clusters are accepted, labelled, selected, denied, deleted.
  const auto file =
      sim.write("c.yaml",
                "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n"
                "metadata: {name: mine, labels: {team: blue}}\n"
                "---\napiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n"
                "metadata: {name: blue, namespace: default}\nspec: {predicates: [{requiredClusterSelector: "
                "{labelSelector: {matchLabels: {team: blue}}}}]}\n");
  sim.must("hub2", "apply -f " + file);
  sim.must("hub2", "wait --for=condition=HubAcceptedManagedCluster --timeout=30s managedcluster/mine");
  sim.must("hub2", "wait --for=condition=PlacementSatisfied --timeout=30s placement/blue");
  EXPECT_THAT(sim.must("hub2", "get placementdecisions -o jsonpath={.items[*].status.decisions[*].clusterName}"),
              HasSubstr("mine"));
  sim.must("hub2", "get namespace mine");
  sim.must("hub2", "patch managedcluster mine --type=merge -p '{\"spec\":{\"hubAcceptsClient\":false}}'");
  sim.must("hub2", "delete manifestwork -n mine --all --timeout=30s");
  sim.must("hub2", "wait --for=condition=HubAcceptedManagedCluster=False --timeout=30s managedcluster/mine");
  sim.must("hub2", "delete managedcluster mine --timeout=30s");
  // An old kubectl fails if the object is already deleted.
  const auto waited = sim.kubectl("hub2", "wait --for=delete --timeout=30s namespace/mine");
  EXPECT_THAT(waited.output, testing::AnyOf(HasSubstr("no matching resources"), testing::IsEmpty(),
                                            HasSubstr("condition met"), HasSubstr("not found")));
  EXPECT_THAT(sim.kubectl("hub2", "get namespace mine").output, HasSubstr("not found"));

  // New ones speak protobuf here; old ones speak JSON.
  EXPECT_THAT(sim.must("hub1", "create configmap c --from-literal=a=b"), HasSubstr("configmap/c created"));

  EXPECT_EQ(sim.stop(), 0);
  EXPECT_THAT(sim.process().out(), AllOf(HasSubstr("NAME "), HasSubstr("global "), HasSubstr("hub1.kubeconfig")));
}

TEST(SimProcessTest, TheOutputIsMachineReadable) {
  SimProcess sim{{"--hubs=east", "--clusters=2", "-o", "json", "--insecure-http"}};
  EXPECT_THAT(sim.must("east", "get managedclusters"), HasSubstr("cluster-00002"));
  EXPECT_EQ(sim.stop(), 0);
  const auto output = boost::json::parse(sim.process().out()).as_object();
  EXPECT_EQ(output.at("seed").as_int64(), 1);
  const auto& servers = output.at("servers").as_array();
  ASSERT_EQ(servers.size(), 2U);
  EXPECT_EQ(servers[0].at("name").as_string(), "global");
  EXPECT_THAT(std::string{servers[0].at("url").as_string()}, testing::StartsWith("http://127.0.0.1:"));
  EXPECT_EQ(servers[1].at("name").as_string(), "east");
  EXPECT_EQ(servers[1].at("clusters").as_int64(), 2);
}

TEST(SimProcessTest, FaultsHappenOnRealSocketsToo) {
  TemporaryDirectory directory;
  const auto file = directory.file("faults.yaml");
  std::ofstream{file} << "- {server: hub1, verb: get, resource: configmaps, name: broken, always: true, fail: 500}\n"
                         "- {server: hub1, verb: create, resource: configmaps, times: 1, reset: after}\n"
                         "- {server: hub1, verb: get, resource: configmaps, name: c, times: 1, reset: before}\n"
                         "- {server: hub1, resource: configmaps, name: c, times: 1, watch: cut}\n";
  SimProcess sim{{"--hubs=hub1", "--faults=" + file}};
  EXPECT_THAT(sim.kubectl("hub1", "get configmap broken").output, HasSubstr("Internal"));
  // The watch breaks at its first event, which is not delivered; kubectl ends then.
  Process watcher{{"sh", "-c", "kubectl get configmaps -w -o name 2>&1"},
                  {.environment = {"HOME=" + directory.path().string(), "KUBECONFIG=" + sim.kubeconfig("hub1")}}};
  sim.must("hub1", "get namespace default");
  // The connection breaks after the write: kubectl fails, and the object is there.
  const auto manifest = sim.write("c.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n");
  EXPECT_NE(sim.kubectl("hub1", "create -f " + manifest).code, 0);
  // It breaks before the read: kubectl retries.
  EXPECT_THAT(sim.must("hub1", "get configmap c -o name"), HasSubstr("configmap/c"));
  sim.must("hub1", "label configmap c a=b");  // an event, should the watch have begun after the creation
  watcher.wait();
  EXPECT_EQ(sim.stop(), 0);
}

TEST(SimProcessTest, InvalidFlagsAreNamedAndTheExitCodeIsTwo) {
  const auto refusal = [](const std::vector<std::string>& flags) {
    std::vector<std::string> words{hubferry_binary(), "sim"};
    words.insert(words.end(), flags.begin(), flags.end());
    Process process{words};
    EXPECT_EQ(process.wait(), 2);
    return process.err();
  };
  EXPECT_THAT(refusal({}), HasSubstr("--kubeconfig-dir is required"));
  EXPECT_THAT(refusal({"--hubs=Hub_1"}), HasSubstr("'Hub_1' is not a valid namespace"));
  EXPECT_THAT(refusal({"--hubs=global"}), HasSubstr("which always exists"));
  EXPECT_THAT(refusal({"--clusters=-1"}), HasSubstr("--clusters"));
  EXPECT_THAT(refusal({"--listen=here"}),
              HasSubstr("--listen: 'here' is not a bind address: it has no port; use :8080, "
                        "127.0.0.1:8080 or [::1]:8080\n"));
  EXPECT_THAT(refusal({"--ui-bind-address=here"}), HasSubstr("[::1]:8080, or 0 to disable it\n"));
  EXPECT_THAT(refusal({"--listen=127.0.0.1:65534", "--insecure-http"}), HasSubstr("the last port is 65535"));
  EXPECT_THAT(refusal({"--attach=a/hub1.kubeconfig", "--attach=b/hub1.yaml"}), HasSubstr("attached twice"));
  EXPECT_THAT(refusal({"--attach=hub1.kubeconfig", "--hubs=hub1", "--insecure-http"}),
              HasSubstr("have the same name hub1"));
}

TEST(SimProcessTest, AnUnreadableFaultFileIsReported) {
  TemporaryDirectory directory;
  Process process{{hubferry_binary(), "sim", "--insecure-http", "--faults", directory.file("none")}};
  EXPECT_EQ(process.wait(), 1);
  EXPECT_THAT(process.err(), HasSubstr("/none: No such file or directory"));
  const auto file = directory.file("faults.yaml");
  std::ofstream{file} << "- {server: hub9, fail: 500}\n";
  Process stranger{{hubferry_binary(), "sim", "--insecure-http", "--faults", file}};
  EXPECT_EQ(stranger.wait(), 1);
  EXPECT_THAT(stranger.err(), HasSubstr("hub9"));
}

TEST(SimProcessTest, AnUnavailableListenAddressIsNamed) {
  // From a block that is reserved for documentation: no machine has it.
  Process process{{hubferry_binary(), "sim", "--insecure-http", "--listen", "192.0.2.1:0"}};
  EXPECT_EQ(process.wait(), 1);
  EXPECT_THAT(process.err(), HasSubstr("cannot listen on 192.0.2.1:0: "));
}

TEST(SimProcessTest, ItCanBeStoppedWhileItBuilds) {
  TemporaryDirectory directory;
  Process process{SimProcess::command(directory.path(), {"--clusters=20000", "--log-level=debug"})};
  ::usleep(500'000);
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), 0) << process.err();
}

}  // namespace
}  // namespace hubferry::test
