#include "relocator_test.hpp"

/// The simulated Hive: which of its controllers respect which annotation.
namespace hubferry::relocator::test {
namespace {

/// One hub with Hive, and no hubferry. The parameter: it knows the seed's annotations, or its own.
class HiveTest : public RelocatorTest, public testing::WithParamInterface<bool> {
 protected:
  HiveTest() : RelocatorTest({.knows_relocators = GetParam(), .relocate_controller = false}) { managers = 0; }

  std::string moving() const {
    return GetParam() ? R"("hive.openshift.io/relocating": "")" : R"("hive.openshift.io/relocate": "r1/outgoing")";
  }
  std::string moved() const {
    return GetParam() ? R"("hive.openshift.io/relocated": "r1")" : R"("hive.openshift.io/relocate": "r1/complete")";
  }
  std::string arriving() const {
    return GetParam() ? R"("hive.openshift.io/relocating": "r1", "hive.openshift.io/relocation-role": "incoming")"
                      : R"("hive.openshift.io/relocate": "r1/incoming")";
  }
  static std::string annotations(const std::string& content) { return R"(, "annotations": {)" + content + "}"; }
  void given_pool() {
    create(ocm::machine_pools, R"({"metadata": {"name": "c1-worker", "namespace": "prod", "finalizers":
        ["hive.openshift.io/remotemachineset"]}, "spec": {"clusterDeploymentRef": {"name": "c1"}}})");
  }
  void given_zone(const std::string& name, const std::string& content) {
    create(ocm::dns_zones, R"({"metadata": {"name": ")" + name + R"(", "namespace": "prod", "finalizers":
        ["hive.openshift.io/dnszone"])" +
                               annotations(content) + R"(}, "spec": {}})");
  }
  bool zone_is_held(const std::string& name) {
    const auto zone = on_source(ocm::dns_zones, name);
    return zone && kube::has_finalizer(*zone, ocm::names::hive_dns_zone_finalizer);
  }
};

TEST_P(HiveTest, SyncSetsAndMachinePoolsAreSkippedWhileItMoves) {
  given_deployment(annotations(moving()));
  given_pool();
  live_for(1min);
  EXPECT_EQ(source.hive.count("sync"), 0u);
  EXPECT_EQ(source.hive.count("machines"), 0u);
  EXPECT_TRUE(
      kube::has_finalizer(*on_source(ocm::machine_pools, "c1-worker"), ocm::names::hive_machine_pool_finalizer));
}

TEST_P(HiveTest, AnotherPauseOfSyncSetsDoesNotCount) {
  given_deployment(annotations(R"("hive.openshift.io/syncset-pause": "other")"));
  given_pool();
  live_for(1min);
  EXPECT_GE(source.hive.count("sync"), 1u);
  EXPECT_GE(source.hive.count("machines"), 1u);
}

TEST_P(HiveTest, ADeletionIsHeldWhileItMovesAndDoesNotDeprovisionWhenItHasMoved) {
  given_deployment(annotations(moving()));
  given_deployment(annotations(moved()), "", "c2");
  given_deployment("", "", "c3");
  for (const auto* name : {"c1", "c2", "c3"}) remove(ocm::cluster_deployments, {"prod", name});
  live_for(1min);
  EXPECT_TRUE(is_on_source("c1"));
  EXPECT_FALSE(is_on_source("c2"));
  EXPECT_FALSE(is_on_source("c3"));
  EXPECT_THAT(source.hive.actions(), Contains("deprovision prod/c3"));  // so that the others mean something
  EXPECT_EQ(source.hive.count("deprovision"), 1u);
  EXPECT_EQ(source.server.count(ocm::cluster_deprovisions), 1u);
}

TEST_P(HiveTest, AProvisionOfOneThatMovesIsDeletedAndNoneIsMade) {
  given_deployment("", R"(, "installed": false)");
  live_for(1min);
  EXPECT_EQ(source.server.count(ocm::cluster_provisions), 1u);
  change(ocm::cluster_deployments, {"prod", "c1"}, R"({"metadata": {"annotations": {)" + moving() + "}}}");
  live_for(1min);
  EXPECT_EQ(source.server.count(ocm::cluster_provisions), 0u);
  EXPECT_EQ(source.hive.count("provision"), 1u);
}

TEST_P(HiveTest, AZoneIsReconciledHeldOrReleasedByItsAnnotation) {
  given_zone("none", "");
  given_zone("moving", moving());
  given_zone("moved", moved());
  given_zone("arriving", arriving());
  given_zone("unknown", R"("hive.openshift.io/relocate": "r1/sideways")");
  given_zone("malformed", R"("hive.openshift.io/relocate": "r1")");
  live_for(1min);
  EXPECT_THAT(source.hive.actions(), Contains("dns prod/none"));
  for (const auto* name : {"none", "moving", "arriving", "unknown", "malformed"})
    EXPECT_TRUE(zone_is_held(name)) << name;
  EXPECT_FALSE(zone_is_held("moved"));
  EXPECT_TRUE(on_source(ocm::dns_zones, "moved"));
  EXPECT_THAT(source.hive.actions(), Contains("error dns prod/unknown"));
  EXPECT_THAT(source.hive.actions(), Contains("error dns prod/malformed"));
  for (const auto* name : {"moving", "moved", "arriving"})
    EXPECT_THAT(source.hive.actions(), Not(Contains("dns prod/" + std::string{name})));
}

TEST_P(HiveTest, AZoneThatArrivesAndIsDeletedGoesWithoutACallToTheCloud) {
  given_zone("arriving", arriving());
  given_zone("moving", moving());
  for (const auto* name : {"arriving", "moving"}) remove(ocm::dns_zones, {"prod", name});
  live_for(1min);
  EXPECT_FALSE(on_source(ocm::dns_zones, "arriving"));
  EXPECT_TRUE(zone_is_held("moving"));
  EXPECT_THAT(source.hive.actions(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Annotations, HiveTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "OfTheSeed" : "OfHive"; });

}  // namespace
}  // namespace hubferry::relocator::test
