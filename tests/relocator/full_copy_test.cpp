#include <set>

#include "state_test.hpp"

/// A namespace with everything in it: what arrives is exactly what belongs to the ClusterDeployment.
namespace hubferry::relocator::test {
namespace {

const kube::Resource jobs{"batch", "v1", "jobs", "Job"};

class FullCopyTest : public StateTest {
 protected:
  /// One object of a kind, by its content.
  static std::string object(const std::string& name, const std::string& content, const std::string& labels = "",
                            const std::string& ns = "prod", const std::string& more_metadata = "") {
    return R"({"metadata": {"name": ")" + name + R"(", "namespace": ")" + ns + R"(", "labels": {)" + labels + "}" +
           more_metadata + "}, " + content + "}";
  }
  static std::string belongs_to(const std::string& deployment) {
    return R"("hive.openshift.io/cluster-deployment-name": ")" + deployment + "\"";
  }
  std::string copied() { return R"("hubferry.io/relocated-from": ")" + identity(source.server) + "\""; }

  /// `new-…`, `equal-…` and `old-…` of a kind on the source, and what the destination has of them already. `content`
  /// makes an object's content from a value.
  void given_kind(const kube::Resource& kind, const std::function<std::string(const std::string&)>& content) {
    const auto& plural = kind.plural;
    for (const auto* state : {"new-", "equal-", "old-"})
      create(kind, object(state + plural, content("now"), belongs_to("c1")));
    create(kind, object("equal-" + plural, content("now"), belongs_to("c1")), &destination.server);
    create(kind, object("old-" + plural, content("before"), belongs_to("c1") + ", " + copied()), &destination.server);
    create(kind, object("there-" + plural, content("theirs")), &destination.server);
    // Of nobody, and in another namespace.
    create(kind, object("elsewhere-" + plural, content("now"), belongs_to("c1"), "other"));
  }

  /// "namespace/name", of that kind on the destination, beside those of the server's own.
  std::set<std::string> there(const kube::Resource& kind) {
    std::set<std::string> found;
    for (const auto& one : destination.server.objects(kind))
      if (one.ns() == "prod" || one.ns() == "other" || one.ns() == "hive") found.insert(kube::to_string(one.key()));
    return found;
  }
  static std::set<std::string> expected(const std::string& plural) {
    return {"prod/new-" + plural, "prod/equal-" + plural, "prod/old-" + plural, "prod/there-" + plural};
  }
};

TEST_F(FullCopyTest, EveryKindNewEqualAndOutOfDateArrivesAsOnTheSourceAndNothingElseDoes) {
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
  const auto data = [](const std::string& value) { return R"("data": {"a": ")" + value + R"("})"; };
  const auto secret_data = [](const std::string& value) {
    return R"("data": {"a": ")" + std::string{value == "now" ? "bm93" : "b2xk"} + R"("})";
  };
  const auto of_one = [](const std::string& value) {
    return R"("spec": {"clusterDeploymentRef": {"name": "c1"}, "note": ")" + value + R"("})";
  };
  const auto of_several = [](const std::string& value) {
    return R"("spec": {"clusterDeploymentRefs": [{"name": "c1"}], "note": ")" + value + R"("})";
  };
  const std::vector<kube::Resource> kinds{kube::resources::secrets, kube::resources::config_maps, ocm::machine_pools,
                                          ocm::sync_sets, ocm::sync_identity_providers};
  given_kind(kinds[0], secret_data);
  given_kind(kinds[1], data);
  given_kind(kinds[2], of_one);
  given_kind(kinds[3], of_several);
  given_kind(kinds[4], of_several);
  // A second ClusterDeployment in the same namespace, with objects of its own, which stays.
  given_deployment("", "", "c2");
  change(ocm::cluster_deployments, {"prod", "c2"}, R"({"metadata": {"labels": {"hive-instance": "stays"}}})");
  create(kube::resources::secrets, object("c2-secret", secret_data("now"), belongs_to("c2")));
  create(kube::resources::config_maps, object("c2-map", data("now"), belongs_to("c2")));
  create(ocm::machine_pools, object("c2-pool", R"("spec": {"clusterDeploymentRef": {"name": "c2"}})"));
  create(ocm::sync_sets, object("c2-set", R"("spec": {"clusterDeploymentRefs": [{"name": "c2"}]})"));
  create(ocm::dns_zones, object("c2-zone", R"("spec": {"zone": "c2.example.com"})"));
  create(jobs, object("c1-job", R"("spec": {})", belongs_to("c1")));
  given_zone();
  // Left by an earlier attempt from this hub.
  create(ocm::dns_zones,
         object("c1-zone", R"("spec": {"zone": "before"})", copied(), "prod",
                R"(, "annotations": {"hive.openshift.io/relocating": "r0",
                     "hive.openshift.io/relocation-role": "incoming", "hive.openshift.io/relocate": "r0/incoming"})"),
         &destination.server);
  const auto equal = std::string{on_destination(kube::resources::secrets, "equal-secrets")->resource_version()};
  given_move(R"(, "manageDNS": true)");
  live_until([&] { return has_moved(); });
  live_for(1min);
  expect_moved();
  for (const auto& kind : kinds) {
    EXPECT_EQ(there(kind), expected(kind.plural)) << kind.plural;
    for (const auto* state : {"new-", "equal-", "old-"}) {
      const auto copy = on_destination(kind, state + kind.plural);
      const auto original = on_source(kind, state + kind.plural);
      ASSERT_TRUE(copy && original) << state << kind.plural;
      for (const auto* part : {"data", "spec"})
        if (const auto* content = original->find({part})) EXPECT_EQ(*copy->find({part}), *content) << kind.plural;
    }
  }
  EXPECT_EQ(on_destination(kube::resources::secrets, "there-secrets")->string_at({"data", "a"}), "b2xk");
  EXPECT_EQ(on_destination(kube::resources::secrets, "equal-secrets")->resource_version(), equal);
  EXPECT_EQ(there(ocm::dns_zones), std::set<std::string>{"prod/c1-zone"});
  EXPECT_EQ(on_destination(ocm::dns_zones, "c1-zone")->string_at({"spec", "zone"}), "c1.example.com");
  EXPECT_EQ(there(ocm::cluster_deployments), std::set<std::string>{"prod/c1"});
  EXPECT_EQ(there(jobs), std::set<std::string>{});
  EXPECT_TRUE(is_on_source("c2"));
}

TEST_F(FullCopyTest, AJobIsNotCopiedNotEvenWithTheWholeNamespace) {
  given_secret();
  given_deployment();
  create(jobs, object("c1-install", R"("spec": {})", belongs_to("c1")));
  create(kube::resources::config_maps, object("copied", R"("data": {})"));
  given_relocator("r1", "hive2", true);
  live_until([&] { return has_moved(); });
  EXPECT_EQ(there(kube::resources::config_maps), std::set<std::string>{"prod/copied"});
  EXPECT_EQ(there(jobs), std::set<std::string>{});
  EXPECT_TRUE(on_source(jobs, "c1-install"));
}

// Users do not know that it moves. The destination would scale the cluster back.
TEST_F(FullCopyTest, WhatAUserChangesWhileTheRestIsCopiedArrivesAsItIsNow) {
  given_move(R"(, "manageDNS": true)");
  create(ocm::dns_zones, R"({"metadata": {"name": "c1-zone", "namespace": "prod"}, "spec": {}})");
  create(ocm::machine_pools, R"({"metadata": {"name": "c1-worker", "namespace": "prod"},
                                 "spec": {"clusterDeploymentRef": {"name": "c1"}, "replicas": 3}})");
  create(kube::resources::secrets, R"({"metadata": {"name": "mapped", "namespace": "prod"}})");
  destination.server.faults().on({.verb = "create", .resource = "dnszones"}).times(1).delay(sim::Latency::fixed(5s));
  live([&]() -> Awaitable<> {
    co_await holds([&] { return on_destination(ocm::machine_pools, "c1-worker").has_value(); });
    const auto scaled = json::parse(R"({"spec": {"replicas": 5}})");
    const Key pool{"prod", "c1-worker"};
    co_await source.server.api().merge_patch(ocm::machine_pools, pool, scaled.as_object());
    const auto added = json::parse(R"({"metadata": {"name": "added", "namespace": "prod"}, "spec":
        {"clusterDeploymentRefs": [{"name": "c1"}], "secretMappings": [{"sourceRef": {"name": "mapped"}}]}})");
    co_await source.server.api().create(ocm::sync_sets, added.as_object());
    co_await holds([&] { return has_moved(); });
  });
  const auto pool = on_destination(ocm::machine_pools, "c1-worker");
  EXPECT_EQ(pool->find({"spec", "replicas"})->to_number<int>(), 5);
  EXPECT_TRUE(on_destination(ocm::sync_sets, "added"));
  EXPECT_TRUE(on_destination(kube::resources::secrets, "mapped"));
  expect_moved();
}

}  // namespace
}  // namespace hubferry::relocator::test
