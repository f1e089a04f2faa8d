#include "hub_test.hpp"

/// The users' ManifestWorks go to the target with their cluster.
namespace hubferry::hubagent {
namespace {

class WorksTest : public HubTest {
 protected:
  Awaitable<> put_work(std::string name, std::string metadata) {
    auto work = parsed(R"({"metadata": )" + metadata + R"(, "spec": {"workload": {"manifests": [
      {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}}]}}})");
    auto& fields = work["metadata"].as_object();
    fields["name"] = name;
    fields["namespace"] = "c1";
    co_await put(*hub1_, ocm::manifest_works, std::move(work));
  }
  Awaitable<> put_works() {
    co_await put_cluster(*hub1_, "c1");
    co_await put_work("app", "{}");
    co_await put_work("c1-klusterlet", "{}");
    co_await put_work("c1-klusterlet-crds",
                      R"({"labels": {"import.open-cluster-management.io/klusterlet-works": "true"}})");
    co_await put_work("addon-search-deploy-0", R"({"labels": {"open-cluster-management.io/addon-name": "search"}})");
    co_await put_work("fleet", R"({"labels": {"work.open-cluster-management.io/manifestworkreplicaset": "ns.fleet"}})");
    co_await put_work("left", R"({"annotations": {"hubferry.io/stays": "true"}})");
    json::object owner{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"name", "c1"}};
    owner["uid"] = object(*hub1_, kube::resources::namespaces, {{}, "c1"}).uid();
    json::object owned{{"ownerReferences", json::array{std::move(owner)}}};
    co_await put_work("owned", json::serialize(owned));
  }
};

TEST_F(WorksTest, TheUsersWorksAreCopiedAndTheOthersStayWithAReason) {
  run([&]() -> Awaitable<> {
    co_await put_works();
    auto bundle = co_await collected(*hub1_, {"c1"});
    CO_ASSERT_EQ(bundle.clusters.size(), 1U);
    EXPECT_THAT(names_in(bundle.clusters[0]), ElementsAre("ManagedCluster c1", "ManifestWork app"));
    std::map<std::string, std::string> staying;
    for (const auto& one : bundle.clusters[0].staying) staying[one.name] = one.why;
    EXPECT_THAT(staying["addon-search-deploy-0"], HasSubstr("add-on"));
    EXPECT_THAT(staying["fleet"], HasSubstr("ManifestWorkReplicaSet"));
    EXPECT_THAT(staying["left"], HasSubstr("hubferry.io/stays"));
    EXPECT_THAT(staying["owned"], HasSubstr("owned by Namespace c1"));
    EXPECT_EQ(staying.size(), 4U) << "the klusterlet's own are nobody's business";
    auto deployed = co_await hub2_->target->deploy(migration_, bundle);
    CO_ASSERT_TRUE(deployed);
    EXPECT_THAT(deployed->done, ElementsAre("c1"));
    auto verified = co_await hub2_->target->verify(migration_, bundle);
    CO_ASSERT_TRUE(verified);
    EXPECT_TRUE(verified->failed.empty());
  });
  EXPECT_EQ(object(*hub2_, ocm::manifest_works, {"c1", "app"}).label(migration_label), "uid-1");
}

// A work of the klusterlet is the hub's own word to the agent: no source may send one.
TEST_F(WorksTest, ATargetTakesNoWorkOfTheKlusterlet) {
  run([&]() -> Awaitable<> {
    Bundle bundle;
    bundle.clusters.push_back({"c1", {}});
    bundle.clusters[0].objects.push_back(
        {parsed(R"({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
                    "metadata": {"name": "c1-klusterlet", "namespace": "c1"}, "spec": {}})"),
         false});
    auto outcome = co_await hub2_->target->deploy(migration_, bundle);
    CO_ASSERT_TRUE(outcome);
    CO_ASSERT_EQ(outcome->failed.size(), 1U);
    EXPECT_EQ(outcome->failed[0].reason, FailureReason::resource_not_allowed);
  });
}

// Their workloads would be evicted an hour later.
TEST_F(WorksTest, AClusterWhoseWorksMayNotBeCreatedIsNotDeployed) {
  run([&]() -> Awaitable<> {
    co_await put_works();
    auto bundle = co_await collected(*hub1_, {"c1"});
    hub2_->server.faults().on({"create", "manifestworks"}).always().fail(403);
    auto outcome = co_await hub2_->target->deploy(migration_, bundle);
    CO_ASSERT_TRUE(outcome);
    CO_ASSERT_EQ(outcome->failed.size(), 1U);
    EXPECT_EQ(outcome->failed[0].reason, FailureReason::resource_not_allowed);
    EXPECT_THAT(outcome->failed[0].message, HasSubstr("manifests/hub-rbac/workloads"));
  });
}

}  // namespace
}  // namespace hubferry::hubagent
