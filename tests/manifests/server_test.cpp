// Holds the manifests against a real kube-apiserver: tests/real-kube/run, or ./dev test --real-kube.
#include <gmock/gmock.h>

#include <boost/json/serialize.hpp>
#include <fstream>
#include <set>

#include "app/cli/server_client.hpp"
#include "hubferry/sim/crds.hpp"
#include "manifest_files.hpp"
#include "support/process.hpp"
#include "support/real_loop.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

class RealServer : public testing::Test {
 protected:
  RealServer() {
    const char* kubeconfig = std::getenv("KUBECONFIG");
    if (std::getenv("HUBFERRY_REAL_KUBECONFIG") == nullptr || kubeconfig == nullptr)
      throw std::runtime_error("run this by tests/real-kube/run, or ./dev test --real-kube");
    client_ = std::make_unique<app::ServerClient>(kube::load_kubeconfig(kubeconfig));
    loop_.run(sim::install_crds(client_->api(), client_->env()));
    std::set<std::string> names;
    for (const auto& manifest : all_manifests()) names.insert(manifest.ns());
    names.erase("");
    for (const auto& name : names) {
      kube::json::object space{{"metadata", kube::json::object{{"name", name}}}};
      auto made = loop_.run(client_->api().create(kube::resources::namespaces, space));
      EXPECT_TRUE(made || made.error().kind == kube::ErrorKind::already_exists);
    }
  }

  /// As `kubectl apply --dry-run=server` sees it: the server decides, and nothing changes.
  std::string refusal(const Manifest& manifest) {
    const auto file = directory_.file("object.json");
    std::ofstream{file} << json::serialize(manifest.content);
    std::vector<std::string> command{"kubectl", "apply", "--dry-run=server", "-f", file};
    // kubectl checks fields by the server's schema, and this server is older than validation rules in CRDs.
    if (manifest.kind() == "CustomResourceDefinition") command.emplace_back("--validate=false");
    Process kubectl{command};
    return kubectl.wait() == 0 ? "" : kubectl.err();
  }

  TemporaryDirectory directory_;
  std::unique_ptr<app::ServerClient> client_;
  RealLoop loop_;
};

TEST_F(RealServer, AcceptsEveryManifestOfAKindThatItServes) {
  std::set<std::string> unknown;
  std::size_t taken = 0;
  for (const auto& manifest : all_manifests()) {
    const auto why_not = refusal(manifest);
    if (why_not.find("no matches for kind") != std::string::npos)
      unknown.insert(manifest.kind());
    else
      EXPECT_EQ(why_not, "") << manifest.file << " " << manifest.label();
    taken += why_not.empty() ? 1U : 0U;
  }
  EXPECT_GT(taken, 15U);
  // policy/v1 came with 1.21, admission policies with 1.30; the others are the Prometheus operator's.
  EXPECT_THAT(unknown, UnorderedElementsAre("PodDisruptionBudget", "PrometheusRule", "ServiceMonitor",
                                            "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"));
}

TEST_F(RealServer, RejectsInvalidMigrations) {
  for (const auto& change :
       std::vector<std::pair<std::string, json::value>>{{"includedManagedClusters", nullptr},
                                                        {"includedManagedClustersPlacementRef", "both"},
                                                        {"from", ""},
                                                        {"to", nullptr}}) {
    auto manifest = find_manifest("ManagedClusterMigration", "move-three");
    auto& spec = manifest.content.at("spec").as_object();
    if (change.second.is_null())
      spec.erase(change.first);
    else
      spec[change.first] = change.second;
    EXPECT_THAT(refusal(manifest), HasSubstr("spec")) << change.first;
  }
}

}  // namespace
}  // namespace hubferry::test
