#pragma once

#include "hubferry/kube/base64.hpp"
#include "relocator_test.hpp"

namespace hubferry::relocator::test {

/// A relocation in any of its states, as a predecessor, users or others left it. Nobody else writes the condition:
/// Hive's own relocation controller is disabled.
class StateTest : public RelocatorTest {
 protected:
  StateTest() : RelocatorTest({.relocate_controller = false}) {}
  explicit StateTest(sim::HiveOptions hive) : RelocatorTest(std::move(hive)) {}

  /// As a predecessor left it that died after annotating.
  void given_moving(const std::string& relocator, const std::string& more_spec = "", const std::string& name = "c1") {
    given_deployment(R"(, "annotations": {"hive.openshift.io/relocating": ")" + relocator +
                         R"(", "hive.openshift.io/relocate": ")" + relocator +
                         R"(/outgoing", "hive.openshift.io/reconcile-pause": "true",
                         "hubferry.io/relocating-to": ")" +
                         identity(destination.server) + R"("})",
                     more_spec, name);
  }
  /// As a predecessor has created it.
  void given_copy_on_destination(const std::string& more_spec = "", const std::string& more_metadata = "") {
    given_namesake_on_destination(
        "example.com", R"(, "clusterMetadata": {"infraID": "c1-x1", "clusterID": "id-c1"})" + more_spec,
        R"(, "annotations": {"hubferry.io/relocated-from": ")" + identity(source.server) + R"("})" + more_metadata);
  }
  void given_namesake_on_destination(const std::string& base_domain = "example.com", const std::string& more_spec = "",
                                     const std::string& more_metadata = "") {
    create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
    create(ocm::cluster_deployments,
           R"({"metadata": {"name": "c1", "namespace": "prod")" + more_metadata + R"(}, "spec": {"installed": true,
               "baseDomain": ")" +
               base_domain + "\"" + more_spec + "}}",
           &destination.server);
  }
  void given_zone(const std::string& annotations = "") {
    create(ocm::dns_zones, R"({"metadata": {"name": "c1-zone", "namespace": "prod", "finalizers":
        ["hive.openshift.io/dnszone"])" +
                               annotations + R"(}, "spec": {"zone": "c1.example.com", "linkToParentDomain": true},
        "status": {"nameServers": ["ns1", "ns2"], "aws": {"zoneID": "Z1"}, "lastSyncTimestamp": "x"}})");
  }
  /// A third hub, without Hive.
  sim::Server& given_third() {
    if (third == nullptr) {
      third = std::make_unique<sim::Server>(sim::Options{.name = "third"}, quiet);
      network.add("https://third.sim", *third);
      loop.run(sim::install_crds(third->api(), kinds_of_hive(), quiet));
    }
    return *third;
  }
  /// A third hub, to which the kubeconfig Secret leads from now on.
  sim::Server& given_repointing() {
    auto& hub = given_third();
    point_at(hub);
    return hub;
  }
  void point_at(sim::Server& server) {
    change(kube::resources::secrets, {"hive", "to-destination"}, kubeconfig_patch(server));
  }
  std::string kubeconfig_patch(sim::Server& server) {
    return R"({"data": {"kubeconfig": ")" +
           kube::encode_base64(kube::to_kubeconfig(network.config_for(server, sim::admin()))) + R"("}})";
  }
  std::string zone_annotation(const char* key) { return annotation(on_source(ocm::dns_zones, "c1-zone"), key); }
  double aborts(const std::string& relocator, const std::string& reason) {
    return metric("hive_aborted_cluster_relocations", relocator, reason);
  }
  std::size_t position(const std::string& line) {
    return static_cast<std::size_t>(std::find(history.begin(), history.end(), line) - history.begin());
  }

  std::unique_ptr<sim::Server> third;
};

}  // namespace hubferry::relocator::test
