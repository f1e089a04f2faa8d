#include <map>

#include "state_test.hpp"

/// How many requests a move costs.
namespace hubferry::relocator::test {
namespace {

const sim::User relocating_manager{"manager", {"system:masters"}, ""};

class RequestsTest : public StateTest {
 protected:
  RequestsTest() = default;
  explicit RequestsTest(sim::HiveOptions hive) : StateTest(std::move(hive)) {}

  kube::Api& api() override { return *mine; }

  /// A ClusterDeployment in a namespace of its own, with that many Secrets, half of them ConfigMaps.
  void given_cluster(const std::string& ns, int objects) {
    create(kube::resources::namespaces, R"({"metadata": {"name": ")" + ns + R"("}})");
    for (int i = 0; i < objects; ++i)
      create(i % 2 == 0 ? kube::resources::secrets : kube::resources::config_maps,
             R"({"metadata": {"name": "object-)" + std::to_string(i) + R"(", "namespace": ")" + ns +
                 R"(", "labels": {"hive.openshift.io/cluster-deployment-name": "cluster"}}})");
    create(ocm::cluster_deployments,
           R"({"metadata": {"name": "cluster", "namespace": ")" + ns + R"(", "labels": {"hive-instance": "hive2"}},
               "spec": {"baseDomain": "example.com", "installed": true}})");
  }

  /// The manager's requests for `clusters` ClusterDeployments, by hub, verb and kind.
  std::map<std::string, std::size_t> requests_for(std::size_t clusters, int objects) {
    given_secret("to-destination", kube::to_kubeconfig(network.config_for(destination.server, relocating_manager)));
    for (std::size_t i = 0; i < clusters; ++i) given_cluster("ns-" + std::to_string(i), objects);
    live([&]() -> Awaitable<> {
      co_await sleep(1min);  // until each has its condition: that happens once, long before a move
      for (auto* hub : {&source, &destination}) hub->server.forget_requests();
      const auto relocator = json::parse(
          R"({"metadata": {"name": "r1"}, "spec": {"kubeconfigSecretRef": {"namespace": "hive", "name":
              "to-destination"}, "clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
      co_await source.server.api().create(cluster_relocators, relocator.as_object());
      co_await holds([&] {
        return source.server.count(ocm::cluster_deployments) == 0 &&
               destination.server.count(ocm::cluster_deployments) == clusters;
      });
      co_await sleep(1min);
    });
    std::map<std::string, std::size_t> found;
    for (auto* hub : {&source, &destination})
      for (const auto& request : hub->server.requests())
        if (request.user == relocating_manager.name && request.verb != "watch")
          ++found[hub->server.name() + ": " + request.verb + " " + request.resource +
                  (request.subresource.empty() ? "" : "/" + request.subresource)];
    return found;
  }

  /// Moves them, and compares with `for_each` ClusterDeployment.
  void expect_requests(const std::map<std::string, std::size_t>& for_each) {
    auto found = requests_for(clusters, objects);
    for (const auto& [kind, count] : for_each) {
      EXPECT_EQ(found[kind], count * clusters) << kind;
      found.erase(kind);
    }
    // What is shared by many: the kubeconfig Secret, the relocator's status, events.
    std::size_t shared = 0;
    for (const auto& [kind, count] : found) shared += count;
    EXPECT_LE(found["source: get secrets"], 2u) << "those that move at once share the look at the destination";
    EXPECT_LT(shared, clusters) << testing::PrintToString(found);
    for (std::size_t i = 0; i < clusters; ++i) {
      const auto copy = on_destination(ocm::cluster_deployments, "cluster", "ns-" + std::to_string(i));
      EXPECT_EQ(annotation(copy, names::confirmed), "true");
      EXPECT_EQ(annotation(copy, names::relocating), "-");
      EXPECT_EQ(annotation(copy, ocm::names::hive_relocate_annotation), "-");
    }
  }

  static constexpr std::size_t clusters = 50;
  static constexpr int objects = 10;
  std::shared_ptr<kube::Api> mine = source.server.api_as(relocating_manager);
};

TEST_F(RequestsTest, AMoveCostsOneRequestForEachObjectAndEightForTheRest) {
  expect_requests({
      {"source: patch clusterdeployments.hive.openshift.io", 2},  // it moves; it has moved
      {"source: delete clusterdeployments.hive.openshift.io", 1},
      {"source: list secrets", 1},
      {"source: list configmaps", 1},
      {"destination: create namespaces", 1},  // a new one has no ClusterDeployment of that name
      {"destination: create secrets", objects / 2},
      {"destination: create configmaps", objects / 2},
      {"destination: create clusterdeployments.hive.openshift.io", 1},
      {"destination: patch clusterdeployments.hive.openshift.io", 1},  // it has arrived
  });
}

/// Hive as it is installed, and servers that take their time: its relocation controller deletes what has moved, and
/// writes to what arrives, before we do.
class RequestsBesideHiveTest : public RequestsTest {
 protected:
  RequestsBesideHiveTest() : RequestsTest(sim::HiveOptions{}) {
    for (auto* hub : {&source, &destination}) hub->server.faults().on({}).always().delay(sim::Latency::fixed(10ms));
  }
};

TEST_F(RequestsBesideHiveTest, AMoveCostsOneRequestForEachObjectAndSevenForTheRest) {
  expect_requests({
      {"source: patch clusterdeployments.hive.openshift.io", 2},
      {"source: list secrets", 1},
      {"source: list configmaps", 1},
      {"destination: create namespaces", 1},
      {"destination: create secrets", objects / 2},
      {"destination: create configmaps", objects / 2},
      {"destination: create clusterdeployments.hive.openshift.io", 1},
      {"destination: patch clusterdeployments.hive.openshift.io", 1},
  });
  expect_no_deprovision();
}

TEST_F(RequestsBesideHiveTest, AManagerOnTheDestinationCostsTheOneOnTheSourceNoRequests) {
  manager_on_destination = true;
  expect_requests({
      {"source: patch clusterdeployments.hive.openshift.io", 2},
      {"source: list secrets", 1},
      {"source: list configmaps", 1},
      {"destination: create namespaces", 1},
      {"destination: create secrets", objects / 2},
      {"destination: create configmaps", objects / 2},
      {"destination: create clusterdeployments.hive.openshift.io", 1},
      {"destination: patch clusterdeployments.hive.openshift.io", 1},
  });
}

}  // namespace
}  // namespace hubferry::relocator::test
