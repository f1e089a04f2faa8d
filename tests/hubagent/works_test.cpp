#include "hub_test.hpp"

/// The users' ManifestWorks go to the target with their cluster.
namespace hubferry::hubagent {
namespace {

class WorksTest : public HubTest {
 protected:
  Awaitable<> put_work(std::string name, std::string metadata) {
    return put_work(*hub1_, std::move(name), std::move(metadata));
  }
  Awaitable<> put_work(TestHub& hub, std::string name, std::string metadata) {
    auto work = parsed(R"({"metadata": )" + metadata + R"(, "spec": {"workload": {"manifests": [
      {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}}]}}})");
    auto& fields = work["metadata"].as_object();
    fields["name"] = name;
    fields["namespace"] = "c1";
    co_await put(hub, ocm::manifest_works, std::move(work));
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

// An agent that still serves the target would delete the workloads with the copies.
TEST_F(WorksTest, ARollbackOrphansTheWorkloadsBeforeItDeletesTheCopies) {
  run([&]() -> Awaitable<> {
    co_await put_works();
    auto bundle = co_await collected(*hub1_, {"c1"});
    co_await hub2_->target->deploy(migration_, bundle);
    hub2_->server.faults().on({"delete", "manifestworks"}).times(1).fail(403);
    auto refused = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
    EXPECT_FALSE(refused && refused->failed.empty());
    const auto copy = object(*hub2_, ocm::manifest_works, {"c1", "app"});
    EXPECT_EQ(copy.string_at({"spec", "deleteOption", "propagationPolicy"}), "Orphan");
    EXPECT_FALSE(copy.is_being_deleted());
    auto undone = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
    EXPECT_TRUE(undone && undone->failed.empty());
    EXPECT_FALSE(exists(*hub2_, kube::resources::namespaces, {{}, "c1"}));
  });
}

// Its agent is back on the source, and a hub without an import controller leaves the finalizer to the agent.
TEST_F(WorksTest, ARollbackRemovesTheAgentsFinalizerFromTheCopiesAndNoOther) {
  run([&]() -> Awaitable<> {
    co_await put_works();
    auto bundle = co_await collected(*hub1_, {"c1"});
    co_await hub2_->target->deploy(migration_, bundle);
    co_await patch(*hub2_, ocm::manifest_works, {"c1", "app"},
                   R"({"metadata": {"finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup",
                                                   "example.com/audit"]}})");
    auto held = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
    CO_ASSERT_TRUE(held);
    EXPECT_EQ(held->failed.size(), 1U);
    const auto rest = object(*hub2_, ocm::manifest_works, {"c1", "app"});
    EXPECT_EQ(*rest.find({"metadata", "finalizers"}), json::array{"example.com/audit"});
    co_await patch(*hub2_, ocm::manifest_works, {"c1", "app"}, R"({"metadata": {"finalizers": null}})");
    auto undone = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
    EXPECT_TRUE(undone && undone->failed.empty());
    EXPECT_FALSE(exists(*hub2_, kube::resources::namespaces, {{}, "c1"}));
  });
}

// With its namespace it would be deleted as it is, and an agent that serves the target would delete the workloads.
TEST_F(WorksTest, ACopyIsNotTakenForGoneWhenAProxyAnswers404) {
  run([&]() -> Awaitable<> {
    co_await put_works();
    auto bundle = co_await collected(*hub1_, {"c1"});
    co_await hub2_->target->deploy(migration_, bundle);
    for (const char* verb : {"get", "patch", "delete"}) {
      hub2_->server.faults().on({verb, "manifestworks"}).always().fail(404);
      auto undone = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
      CO_ASSERT_TRUE(undone);
      EXPECT_THAT(reasons_of(*undone), ElementsAre("c1: Error")) << verb;
      EXPECT_TRUE(exists(*hub2_, ocm::manifest_works, {"c1", "app"})) << verb;
      EXPECT_TRUE(exists(*hub2_, ocm::managed_clusters, {{}, "c1"})) << verb;
      hub2_->server.faults().clear();
    }
    auto undone = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
    EXPECT_TRUE(undone && undone->failed.empty());
  });
}

TEST_F(WorksTest, AWorkOfSomebodyElseOnTheTargetIsKeptByARollbackAndNamed) {
  run([&]() -> Awaitable<> {
    co_await put_works();
    auto bundle = co_await collected(*hub1_, {"c1"});
    co_await hub2_->target->deploy(migration_, bundle);
    co_await put_work(*hub2_, "c1-klusterlet", "{}");
    co_await put_work(*hub2_, "addon-search-deploy-0",
                      R"({"labels": {"open-cluster-management.io/addon-name": "search"}})");
    co_await put_work(*hub2_, "fleet",
                      R"({"labels": {"work.open-cluster-management.io/manifestworkreplicaset": "ns.fleet"}})");
    co_await put_work(*hub2_, "mine", "{}");
    auto kept = co_await hub2_->target->roll_back(migration_, Stage::deploying, {"c1"});
    CO_ASSERT_TRUE(kept);
    EXPECT_THAT(reasons_of(*kept), ElementsAre("c1: ClusterConflict"));
    EXPECT_TRUE(exists(*hub2_, ocm::manifest_works, {"c1", "mine"}));
    EXPECT_TRUE(exists(*hub2_, ocm::managed_clusters, {{}, "c1"})) << "the hub would delete the namespace with it";
    CO_ASSERT_EQ(kept->failed.size(), 1U);
    EXPECT_THAT(kept->failed[0].message, HasSubstr("ManifestWork c1/mine on hub hub2 does not belong"));
    co_await hub2_->server.api().remove(ocm::manifest_works, {"c1", "mine"});
    auto undone = co_await hub2_->target->roll_back(migration_, Stage::deploying, {"c1"});
    EXPECT_TRUE(undone && undone->failed.empty());
    EXPECT_FALSE(exists(*hub2_, kube::resources::namespaces, {{}, "c1"}));
  });
}

}  // namespace
}  // namespace hubferry::hubagent
