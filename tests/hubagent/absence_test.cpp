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
    EXPECT_EQ(judged(ocm::klusterlet_addon_configs, error), ErrorKind::not_found) << "a kind that a hub may lack";
  }
}

TEST(Absence, OtherErrorsStayAsTheyAre) {
  const kube::Error forbidden{ErrorKind::forbidden, 403, "Forbidden", "no", std::nullopt};
  EXPECT_EQ(judged(ocm::managed_clusters, forbidden), ErrorKind::forbidden);
  EXPECT_EQ(checked_absence(ocm::managed_clusters, {}, forbidden).message, "no");
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
    auto denied = co_await hub2_->target->deny(migration_, {"c1"});
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

}  // namespace
}  // namespace hubferry::hubagent
