#include "hubagent/absence.hpp"
#include "hub_test.hpp"

/// A 404 of a proxy, or of a server that does not serve a kind just now, looks as if all clusters were gone.
namespace hubferry::hubagent {
namespace {

kube::Error not_found(std::string message, std::string reason = "NotFound") {
  return {ErrorKind::not_found, 404, std::move(reason), std::move(message), std::nullopt};
}

ErrorKind judged(const kube::Resource& resource, const kube::Error& error) {
  return checked_absence(resource, "c1", error).kind;
}

TEST(Absence, OnlyA404ThatNamesTheObjectProvesIt) {
  const auto named = not_found(R"(managedclusters.cluster.open-cluster-management.io "c1" not found)");
  const auto another = not_found(R"(managedclusters.cluster.open-cluster-management.io "c10" not found)");
  const auto no_such_kind = not_found("the server could not find the requested resource");
  const auto of_a_proxy = not_found("404 page not found", "");
  EXPECT_EQ(judged(ocm::managed_clusters, named), ErrorKind::not_found);
  for (const auto& error : {another, no_such_kind, of_a_proxy}) {
    EXPECT_EQ(judged(ocm::managed_clusters, error), ErrorKind::bad_response) << error;
    EXPECT_EQ(judged(kube::resources::leases, error), ErrorKind::bad_response) << error;
    EXPECT_EQ(judged(kube::resources::namespaces, error), ErrorKind::bad_response) << error;
    EXPECT_EQ(judged(kube::resources::cluster_role_bindings, error), ErrorKind::bad_response) << error;
    EXPECT_EQ(judged(kube::resources::certificate_signing_requests, error), ErrorKind::bad_response) << error;
    EXPECT_EQ(judged(kube::resources::secrets, error), ErrorKind::bad_response) << error;
    EXPECT_EQ(judged(ocm::klusterlet_addon_configs, error), ErrorKind::not_found) << "a kind that a hub may lack";
  }
}

TEST(Absence, OtherErrorsStayAsTheyAre) {
  const kube::Error forbidden{ErrorKind::forbidden, 403, "Forbidden", "no", std::nullopt};
  EXPECT_EQ(judged(ocm::managed_clusters, forbidden), ErrorKind::forbidden);
  EXPECT_EQ(checked_absence(ocm::managed_clusters, {}, forbidden).message, "no");
}

TEST(Absence, OnlyAListOfGroupsProvesThatAKindIsNotServed) {
  const auto groups = parsed(R"({"kind": "APIGroupList", "groups": [
      {"name": "apps", "versions": [{"groupVersion": "apps/v1"}, {"groupVersion": "apps/v1beta1"}]}]})");
  EXPECT_TRUE(proves_absence(groups, "/apis/hive.openshift.io/v1"));
  EXPECT_TRUE(proves_absence(groups, "/apis/apps/v2"));
  EXPECT_FALSE(proves_absence(groups, "/apis/apps/v1")) << "it is served, or was a moment ago";
  EXPECT_FALSE(proves_absence(groups, "/api/v1"));
  for (const char* text : {R"({"kind": "Status"})", R"({"kind": "APIGroupList"})", R"({"groups": []})",
                           R"({"kind": "APIGroupList", "groups": [{"name": "x"}]})"})
    EXPECT_FALSE(proves_absence(parsed(text), "/apis/hive.openshift.io/v1")) << text;
  EXPECT_FALSE(proves_absence(nullptr, "/apis/hive.openshift.io/v1"));
}

class AbsenceTest : public HubTest {
 protected:
  /// c1 on the source, detached.
  Awaitable<> detach() {
    co_await put_cluster(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    EXPECT_TRUE(begun && detached && detached->failed.empty());
  }
  /// Its copy on the target.
  Awaitable<> deploy() {
    co_await put_namespace(*hub2_, "c1");
    co_await put(*hub2_, ocm::managed_clusters, managed_cluster("c1"));
    co_await patch(*hub2_, ocm::managed_clusters, {{}, "c1"},
                   R"({"metadata": {"labels": {"hubferry.io/migration": "uid-1"}}})");
  }
  static void answer_404(TestHub& hub) {
    for (const auto* verb : {"get", "list", "update", "patch", "delete"})
      hub.server.faults().on({verb, "managedclusters"}).always().fail(404);
  }
};

TEST_F(AbsenceTest, AClusterIsNotTakenForAbsentFromATargetThatAnswers404ToEverything) {
  run([&]() -> Awaitable<> {
    co_await deploy();
    answer_404(*hub2_);
    auto arrived = co_await hub2_->target->arrived(migration_, {"c1"}, clock_.wall_now());
    CO_ASSERT_TRUE(arrived);
    EXPECT_THAT(reasons_of(*arrived), ElementsAre("c1: Error")) << "unknown, so that the source does not take it back";
    auto denied = co_await hub2_->target->deny(migration_, {"c1"}, std::nullopt);
    CO_ASSERT_TRUE(denied);
    EXPECT_THAT(reasons_of(*denied), ElementsAre("c1: Error"));
    auto copied = co_await hub2_->target->copied(migration_);
    EXPECT_FALSE(copied) << "a lost ledger is rebuilt from it";
  });
}

TEST_F(AbsenceTest, AClusterIsNotTakenForDeletedFromASourceThatAnswers404ToEverything) {
  run([&]() -> Awaitable<> {
    co_await detach();
    hub1_->server.faults().on({"get", "managedclusters"}).always().fail(404);
    auto cleaned = co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    CO_ASSERT_TRUE(cleaned);
    EXPECT_THAT(reasons_of(*cleaned), ElementsAre("c1: Error"));
    auto accepted = co_await hub1_->source->accept(migration_, {"c1"});
    CO_ASSERT_TRUE(accepted);
    EXPECT_THAT(reasons_of(*accepted), ElementsAre("c1: Error"));
    hub1_->server.faults().clear();
    EXPECT_TRUE(exists(*hub1_, ocm::managed_clusters, {{}, "c1"}));
  });
}

// A proxy without its server answers discovery like that. Machines whose kind counts as not served would not be paused,
// and be deprovisioned with their namespace.
TEST_F(AbsenceTest, AKindIsNotTakenForUnservedWhileDiscoveryAnswers404ToEverything) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await put_machinery(*hub1_, "c1");
    hub1_->api->refuse_path = [](const std::string&) {
      return kube::Error{ErrorKind::not_found, 404, "", "404 page not found", std::nullopt};
    };
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    EXPECT_FALSE(begun && begun->failed.empty());
    hub1_->api->refuse_path = nullptr;
    auto again = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    EXPECT_TRUE(again && again->failed.empty());
    const auto host = object(*hub1_, ocm::bare_metal_hosts, {"c1", "host"});
    EXPECT_EQ(host.annotation(ocm::names::metal3_pause_annotation), "true");
  });
}

// The ClusterDeployment would be deleted with the namespace as it is, and Hive would deprovision the cluster.
TEST_F(AbsenceTest, MachinesAreNotTakenForAbsentWhenTheirListIsA404) {
  run([&]() -> Awaitable<> {
    co_await detach();
    co_await put_machinery(*hub1_, "c1");
    for (const char* kind : {"clusterdeployments", "baremetalhosts"}) {
      hub1_->server.faults().on({"list", kind}).always().fail(404);
      auto cleaned = co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
      EXPECT_FALSE(cleaned && cleaned->failed.empty()) << kind;
      EXPECT_TRUE(exists(*hub1_, ocm::managed_clusters, {{}, "c1"})) << kind;
      EXPECT_TRUE(exists(*hub1_, ocm::cluster_deployments, {"c1", "c1"})) << kind;
      hub1_->server.faults().clear();
    }
  });
}

// It could not be made harmless before its namespace is deleted.
TEST_F(AbsenceTest, AMachineIsNotTakenForGoneWhenItsWriteIsA404) {
  run([&]() -> Awaitable<> {
    co_await detach();
    co_await put_machinery(*hub1_, "c1");
    for (const char* kind : {"baremetalhosts", "clusterdeployments"}) {
      hub1_->server.faults().on({"update", kind}).always().fail(404);
      auto cleaned = co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
      EXPECT_FALSE(cleaned && cleaned->failed.empty()) << kind;
      EXPECT_TRUE(exists(*hub1_, ocm::managed_clusters, {{}, "c1"})) << kind;
      EXPECT_TRUE(exists(*hub1_, ocm::cluster_deployments, {"c1", "c1"})) << kind;
      hub1_->server.faults().clear();
    }
  });
}

// A list has the name of an object that is nested too deep for us, and nothing else of it. Taken for absent, it would
// not be copied, nor made harmless, and be deleted with its namespace.
TEST_F(AbsenceTest, AnObjectThatCannotBeReadIsNotTakenForAbsent) {
  run([&]() -> Awaitable<> {
    co_await detach();
    co_await put_machinery(*hub1_, "c1");
    for (const char* name : {"host", "c1-admin-password"}) {
      hub1_->api->unreadable = name;
      BundleSink sink = [](Bundle) -> Awaitable<> { co_return; };
      auto sent = co_await hub1_->source->collect(migration_, {"c1"}, sink);
      CO_ASSERT_TRUE(sent);
      CO_ASSERT_EQ(sent->failed.size(), 1U);
      EXPECT_THAT(sent->failed[0].message, HasSubstr("c1/" + std::string{name} + " cannot be read"));
    }
    hub1_->api->unreadable = "host";
    auto cleaned = co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    EXPECT_FALSE(cleaned && cleaned->failed.empty());
    EXPECT_TRUE(exists(*hub1_, ocm::managed_clusters, {{}, "c1"}));
  });
}

}  // namespace
}  // namespace hubferry::hubagent
