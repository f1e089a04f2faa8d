// Moves ClusterDeployments with the rights of the manifests and no others, on simulated servers that check them.
#include "../relocator/relocator_test.hpp"
#include "manifest_files.hpp"

namespace hubferry::relocator::test {
namespace {

using hubferry::test::flattened;
using hubferry::test::manifests_directory;

const sim::User manager{"system:serviceaccount:hubferry-system:hubferry", {"system:serviceaccounts"}, ""};
const sim::User mover{"system:serviceaccount:hubferry-system:hubferry-relocator", {"system:serviceaccounts"}, ""};

class RelocatorRightsTest : public RelocatorTest {
 protected:
  RelocatorRightsTest() : RelocatorTest({.relocate_controller = false}) {
    install(source.server, manifests_directory() / "relocator");
    install(destination.server, manifests_directory() / "relocator" / "destination");
    as_manager = source.server.api_as(manager);
  }
  void install(sim::Server& server, const std::filesystem::path& directory) {
    for (const auto& manifest : flattened(directory))
      for (const auto& kind : {kube::resources::cluster_roles, kube::resources::cluster_role_bindings})
        if (manifest.kind() == kind.kind) create(kind, json::serialize(manifest.content), &server);
  }
  kube::Api& api() override { return *as_manager; }
  hubs::Connect connect() override {
    return [this](const std::string&, const kube::ClientConfig&) -> std::shared_ptr<kube::Api> {
      return destination.server.api_as(mover);
    };
  }
  std::vector<std::string> refused() {
    std::vector<std::string> all;
    for (auto* server : {&source.server, &destination.server})
      for (const auto& request : server->requests())
        if (request.outcome.starts_with("403"))
          all.push_back(server->name() + ": " + request.verb + " " + request.resource);
    return all;
  }
  void given_everything() {
    given_move(R"(, "manageDNS": true)");
    create(ocm::dns_zones, R"({"metadata": {"name": "c1-zone", "namespace": "prod"}, "spec": {},
                               "status": {"nameServers": ["ns1"]}})");
    create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
    // Copied before, and out of date.
    const auto copied = R"(, "labels": {"hubferry.io/relocated-from": ")" + identity(source.server) + R"("})";
    for (const auto* name : {"pull", "c1-kubeconfig"}) {
      const auto text = R"({"metadata": {"name": ")" + std::string{name} + R"(", "namespace": "prod")";
      create(kube::resources::secrets, text + R"(}, "data": {"a": "YQ=="}})");
      create(kube::resources::secrets, text + copied + R"(}, "data": {"a": "Yg=="}})", &destination.server);
    }
    create(ocm::machine_pools,
           R"({"metadata": {"name": "w", "namespace": "prod"}, "spec": {"clusterDeploymentRef": {"name": "c1"}}})");
    create(
        ocm::selector_sync_sets,
        R"({"metadata": {"name": "all"}, "spec": {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
  }

  std::unique_ptr<kube::Api> as_manager;
};

TEST_F(RelocatorRightsTest, AreSufficientForAMoveAndAnAbort) {
  given_everything();
  // One update is refused, so that the object is replaced.
  destination.server.faults().on({.verb = "update", .resource = "secrets"}).times(1).fail(422);
  live_until([&] { return has_moved(); });
  EXPECT_THAT(refused(), IsEmpty());
  given_deployment(R"(, "annotations": {"hive.openshift.io/relocating": "r1", "hubferry.io/relocating-to": ")" +
                       identity(destination.server) + R"("})",
                   "", "c2");
  change(ocm::cluster_deployments, {"prod", "c2"}, R"({"metadata": {"labels": {"hive-instance": "stays"}}})");
  live_for(5min);
  expect_untouched("c2");
  EXPECT_THAT(condition("c2"), HasSubstr("NoMatchingRelocators"));
  EXPECT_THAT(refused(), IsEmpty());
}

TEST_F(RelocatorRightsTest, AMissingOneIsNamed) {
  auto role = hubferry::test::find_manifest("ClusterRole", "hubferry-relocator-destination").content;
  for (auto& rule : role.at("rules").as_array())
    if (rule.at("resources").at(0) == "machinepools") rule.at("verbs") = json::array{"get"};
  auto changed = loop.run(destination.server.api().update(kube::resources::cluster_roles, role));
  ASSERT_TRUE(changed) << changed.error();
  given_everything();
  live_for(1min);
  EXPECT_THAT(refused(), Contains("destination: create machinepools.hive.openshift.io"));
  EXPECT_THAT(condition(), HasSubstr("True MoveFailed: cannot copy MachinePool prod/w"));
}

}  // namespace
}  // namespace hubferry::relocator::test
