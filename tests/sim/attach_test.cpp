#include <thread>

#include "sim/sim_process.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// The controllers of a hub on a real kube-apiserver. It has no controller-manager: nothing is signed there, and
/// namespaces are not emptied.
class AttachTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* config = std::getenv("HUBFERRY_REAL_KUBECONFIG");
    ASSERT_NE(config, nullptr) << "use ./dev test --real-kube";
    std::ifstream from{config};
    std::ofstream{file_} << from.rdbuf();
  }
  std::string must(const std::string& words) const {
    const auto ran = run_kubectl(file_, directory_.path(), words);
    EXPECT_EQ(ran.code, 0) << "kubectl " << words << "\n" << ran.output;
    return ran.output;
  }
  /// For conditions that older versions of `kubectl wait` do not support.
  void await(const std::string& words) const {
    for (int attempt = 0; attempt < 60 && run_kubectl(file_, directory_.path(), words).code != 0; ++attempt)
      std::this_thread::sleep_for(std::chrono::milliseconds{500});
    must(words);
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_.file("hub1.kubeconfig");
};

TEST_F(AttachTest, ARealServerBecomesAHub) {
  Process sim{{hubferry_binary(), "sim", "--attach", file_, "--clusters=3", "--log-format=json", "-o", "json"}};
  sim.await_error_text("\"ready\"");
  EXPECT_THAT(must("get managedclusters"), AllOf(HasSubstr("HUB ACCEPTED"), HasSubstr("cluster-00003")));
  EXPECT_THAT(must("get manifestworks -A"), HasSubstr("cluster-00002-klusterlet"));
  EXPECT_THAT(must("get leases -A"), HasSubstr("managed-cluster-lease"));

  const auto manifest = directory_.file("c.yaml");
  std::ofstream{manifest} << "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n"
                             "metadata: {name: attached, labels: {team: blue}}\n";
  must("apply -f " + manifest);
  must("wait --for=condition=HubAcceptedManagedCluster --timeout=30s managedcluster/attached");
  must("get namespace attached");
  must("get clusterrole open-cluster-management:managedcluster:attached");
  await("get lease managed-cluster-lease -n attached");
  must("auth can-i update managedclusters/attached --as=agent --as-group=system:open-cluster-management:attached");
  must("patch managedcluster attached --type=merge -p '{\"spec\":{\"hubAcceptsClient\":false}}'");
  must("delete manifestworks -n attached --all --timeout=30s");
  must("wait --for=condition=HubAcceptedManagedCluster=False --timeout=30s managedcluster/attached");
  sim.signal(SIGTERM);
  EXPECT_EQ(sim.wait(), 0);
  EXPECT_THAT(sim.out(), HasSubstr("\"simulated\":false"));
}

}  // namespace
}  // namespace hubferry::test
