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
  /// With the finalizers of both DNS controllers, and delegated from its parent domain.
  void given_zone(const std::string& name, const std::string& content) {
    create(ocm::dns_zones, R"({"metadata": {"name": ")" + name + R"(", "namespace": "prod", "finalizers":
        ["hive.openshift.io/dnszone", "hive.openshift.io/dnsendpoint"])" +
                               annotations(content) + R"(}, "spec": {"zone": ")" + name +
                               R"(.example.com", "linkToParentDomain": true}, "status": {"nameServers": ["ns1"]}})");
  }
  /// The DNS controllers whose finalizers it has: "zone endpoint", "zone", "endpoint", "" or "gone".
  std::string holders_of(const std::string& name) {
    const auto zone = on_source(ocm::dns_zones, name);
    if (!zone) return "gone";
    const bool by_zone = kube::has_finalizer(*zone, ocm::names::hive_dns_zone_finalizer);
    const bool by_endpoint = kube::has_finalizer(*zone, "hive.openshift.io/dnsendpoint");
    return std::string{by_zone ? "zone" : ""} + (by_zone && by_endpoint ? " " : "") + (by_endpoint ? "endpoint" : "");
  }
  /// The reason of its condition GenericDNSErrors; "" if it has none.
  std::string dns_error(const std::string& name) {
    const auto zone = on_source(ocm::dns_zones, name);
    const auto* found = zone ? kube::find_condition(*zone, "GenericDNSErrors") : nullptr;
    return found == nullptr ? "" : std::string{kube::string_at(*found, {"reason"})};
  }
  /// What was done to DNS for that zone.
  std::vector<std::string> dns_actions(const std::string& name) {
    std::vector<std::string> found;
    for (const auto& action : source.hive.actions())
      if (action.ends_with(" prod/" + name)) found.push_back(action.substr(0, action.rfind(' ')));
    return found;
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
  EXPECT_THAT(dns_actions("none"), testing::IsSupersetOf({"dns", "delegate"}));
  for (const auto* name : {"none", "moving", "arriving", "unknown", "malformed"})
    EXPECT_EQ(holders_of(name), "zone endpoint") << name;
  EXPECT_EQ(holders_of("moved"), "");
  for (const auto* name : {"moving", "moved", "arriving"}) {
    EXPECT_THAT(dns_actions(name), IsEmpty()) << name;
    EXPECT_EQ(dns_error(name), "") << name;
  }
  for (const auto* name : {"unknown", "malformed"}) {
    EXPECT_EQ(dns_error(name), "RelocationError") << name;
    EXPECT_THAT(dns_actions(name), Contains("error dns")) << name;
    EXPECT_THAT(dns_actions(name), testing::Each("error dns")) << name;
    EXPECT_GE(dns_actions(name).size(), 3u) << name << " is an error, which is retried";
  }
}

TEST_P(HiveTest, AZoneThatArrivesAndIsDeletedGoesWithoutACallToTheCloud) {
  given_zone("arriving", arriving());
  given_zone("moving", moving());
  for (const auto* name : {"arriving", "moving"}) remove(ocm::dns_zones, {"prod", name});
  live_for(1min);
  EXPECT_EQ(holders_of("arriving"), "gone");
  EXPECT_EQ(holders_of("moving"), "zone endpoint");
  EXPECT_THAT(source.hive.actions(), IsEmpty());
}

TEST_P(HiveTest, AZoneThatHasMovedLosesBothFinalizersBeforeItIsDeletedAndWithoutACallToTheCloud) {
  given_zone("moved", moved());
  given_zone("none", "");
  live_for(1min);
  EXPECT_EQ(holders_of("moved"), "");
  remove(ocm::dns_zones, {"prod", "moved"});
  remove(ocm::dns_zones, {"prod", "none"});
  live_for(1min);
  EXPECT_EQ(holders_of("moved"), "gone");
  EXPECT_THAT(dns_actions("moved"), IsEmpty());
  // So that the absence of calls means something.
  EXPECT_EQ(holders_of("none"), "gone");
  EXPECT_THAT(dns_actions("none"), testing::IsSupersetOf({"remove dns", "remove delegation"}));
}

// The hazard for which the copy of a zone brings its name servers along.
TEST_P(HiveTest, AZoneWithoutNameServersLosesItsDelegation) {
  create(ocm::dns_zones, R"({"metadata": {"name": "bare", "namespace": "prod"},
                             "spec": {"zone": "bare.example.com", "linkToParentDomain": true}})");
  live_for(1min);
  EXPECT_THAT(dns_actions("bare"), Contains("remove delegation"));
}

// Hive stops only what is outgoing: one that arrives, and is not installed, is installed at once.
TEST_P(HiveTest, OneThatArrivesAndIsNotInstalledIsInstalledAtOnce) {
  given_deployment(annotations(arriving()), R"(, "installed": false)");
  live_for(1min);
  EXPECT_EQ(source.hive.count("provision prod/c1"), 1u);
}

/// With Hive's own relocation controller.
class HiveRelocateTest : public RelocatorTest {
 protected:
  HiveRelocateTest() : RelocatorTest(sim::HiveOptions{}) { managers = 0; }
};

// clearRelocateAnnotation of Hive writes the DNSZone that it has read, once: after a conflict it begins anew, with the
// ClusterDeployment. If it wrote what it reads after the conflict, the zone would be deleted with its records.
TEST_F(HiveRelocateTest, AZoneThatChangesWhileHiveReleasesItKeepsItsNewAnnotation) {
  const std::string arriving = R"(, "annotations": {"hive.openshift.io/relocate": "r1/incoming"})";
  given_deployment(arriving, R"(, "manageDNS": true)");
  create(ocm::dns_zones,
         R"({"metadata": {"name": "c1-zone", "namespace": "prod", "finalizers": ["hive.openshift.io/dnszone",
             "hive.openshift.io/dnsendpoint"])" +
             arriving + R"(}, "spec": {"linkToParentDomain": true}, "status": {"nameServers": ["ns1"]}})");
  source.server.faults().on({.verb = "update", .resource = "dnszones"}).times(1).delay(sim::Latency::fixed(4s));
  live([&]() -> Awaitable<> {
    co_await sleep(2s);
    const auto moved = json::parse(R"({"metadata": {"annotations": {"hive.openshift.io/relocate": "r2/complete"}}})");
    auto& admin = source.server.api();
    EXPECT_TRUE(co_await admin.merge_patch(ocm::dns_zones, {"prod", "c1-zone"}, moved.as_object()));
    EXPECT_TRUE(co_await admin.merge_patch(ocm::cluster_deployments, {"prod", "c1"}, moved.as_object()));
    co_await holds([&] { return !is_on_source() && !on_source(ocm::dns_zones, "c1-zone"); });
  });
  EXPECT_TRUE(source.server.faults().script_exhausted());
  EXPECT_THAT(history, Contains("c1-zone: none, -, -, r2/complete"));
  EXPECT_THAT(history, Not(Contains(HasSubstr("c1-zone: none, -, -, -"))));
  expect_no_deprovision();
}

// finishRelocateCompletion of Hive: its cache of ClusterDeployments may have been so old that it has cleared the zone
// of one that had moved on.
TEST_F(HiveRelocateTest, HiveAnnotatesTheZoneOfOneThatHasMovedBeforeItDeletesIt) {
  given_deployment(R"(, "annotations": {"hive.openshift.io/relocate": "r1/complete"})", R"(, "manageDNS": true)");
  create(ocm::dns_zones, R"({"metadata": {"name": "c1-zone", "namespace": "prod", "finalizers":
      ["hive.openshift.io/dnszone", "hive.openshift.io/dnsendpoint"]}, "spec": {"linkToParentDomain": true},
      "status": {"nameServers": ["ns1"]}})");
  live_until([&] { return !is_on_source() && !on_source(ocm::dns_zones, "c1-zone"); });
  EXPECT_THAT(history, Contains("c1-zone: none, -, -, r1/complete"));
  expect_no_deprovision();
}

// So that the test of the zone that changes means something: one that does not change is released, and Hive works on
// it.
TEST_F(HiveRelocateTest, OneThatArrivesIsReleasedTogetherWithItsZone) {
  const std::string arriving = R"(, "annotations": {"hive.openshift.io/relocate": "r1/incoming"})";
  given_deployment(arriving, R"(, "manageDNS": true)");
  create(ocm::dns_zones, R"({"metadata": {"name": "c1-zone", "namespace": "prod")" + arriving + R"(}, "spec": {}})");
  live_for(1min);
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), ocm::names::hive_relocate_annotation), "-");
  EXPECT_EQ(annotation(on_source(ocm::dns_zones, "c1-zone"), ocm::names::hive_relocate_annotation), "-");
  EXPECT_GE(source.hive.count("dns prod/c1-zone"), 1u);
}

INSTANTIATE_TEST_SUITE_P(Annotations, HiveTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "OfTheSeed" : "OfHive"; });

}  // namespace
}  // namespace hubferry::relocator::test
