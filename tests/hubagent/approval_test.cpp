#include "request_test.hpp"

namespace hubferry::hubagent {
namespace {

class ApprovalTest : public RequestTest {
 protected:
  Awaitable<> deploy_copy(std::string name, bool ours = true, bool accepted = true) {
    auto object = managed_cluster(name, "Unknown");
    if (ours) object["metadata"].as_object()["labels"] = json::object{{migration_label, migration_.uid}};
    object["spec"].as_object()["hubAcceptsClient"] = accepted;
    co_await put(*hub2_, ocm::managed_clusters, object);
  }
  /// "Approved ApprovedByHubferry", or "" while undecided.
  std::string decision(const std::string& name) {
    const auto request = object(*hub2_, requests, {{}, name});
    const auto* conditions = request.find({"status", "conditions"});
    if (conditions == nullptr || conditions->as_array().empty()) return {};
    const auto& first = conditions->as_array()[0].as_object();
    return std::string{first.at("type").as_string()} + " " + std::string{first.at("reason").as_string()};
  }
  /// Runs `body` while the target waits for c1.
  template <typename Body>
  void while_waiting(Body body) {
    while_waiting_for({"c1"}, std::move(body));
  }
  template <typename Body>
  void while_waiting_for(ClusterNames clusters, Body body) {
    run([&]() -> Awaitable<> {
      auto begun = co_await hub2_->target->permit_registration(migration_, identity_);
      CO_ASSERT_TRUE(begun);
      auto wait = [&]() -> Awaitable<> {
        TargetHub::OnArrival ignore{[](const std::string&) {}};
        auto waited = co_await hub2_->target->await_arrivals(migration_, clusters, clock_.wall_now(), ignore);
        EXPECT_TRUE(waited) << waited.error();
      };
      auto both = [&](async::TaskScope& scope) -> Awaitable<> {
        scope.spawn(wait());
        co_await clock_.sleep_for(1s);
        co_await body();
        scope.stop();
      };
      co_await async::with_scope(both);
    });
  }
};

TEST_F(ApprovalTest, AnArrivingClustersRequestIsApproved) {
  while_waiting([&]() -> Awaitable<> {
    co_await deploy_copy("c1");
    auto name = co_await ask({});
    co_await clock_.sleep_for(1s);
    EXPECT_EQ(decision(name), "Approved ApprovedByHubferry");
  });
}

TEST_F(ApprovalTest, ARequestFromBeforeTheWaitIsApprovedToo) {
  std::string name;
  run([&]() -> Awaitable<> {
    co_await deploy_copy("c1");
    name = co_await ask({});
  });
  while_waiting([&]() -> Awaitable<> {
    EXPECT_EQ(decision(name), "Approved ApprovedByHubferry");
    co_return;
  });
}

// Agents are detached meanwhile: until they have their certificates, they have no hub.
TEST_F(ApprovalTest, NoRequestWaitsForTheWatchThatManyClustersShare) {
  const auto late = sim::Latency::fixed(10s);
  hub2_->server.faults().on({"list", "leases"}).always().delay(late);
  hub2_->server.faults().on({"watch", "leases"}).always().delay(late);
  ClusterNames all{"c1"};
  for (int index = 2; index <= 12; ++index) all.push_back("c" + std::to_string(index));
  while_waiting_for(all, [&]() -> Awaitable<> {
    co_await deploy_copy("c1");
    auto name = co_await ask({});
    co_await clock_.sleep_for(1s);
    EXPECT_EQ(decision(name), "Approved ApprovedByHubferry");
  });
}

// Each would be a certificate that the migration has no right to give away.
TEST_F(ApprovalTest, NoOtherRequestIsApproved) {
  std::vector<std::pair<std::string, AskedFor>> cases;
  const auto add = [&](const char* what, auto change) {
    AskedFor asked;
    change(asked);
    cases.emplace_back(what, asked);
  };
  add("another user", [](auto& asked) { asked.user = "system:serviceaccount:default:stranger"; });
  add("another cluster's label", [](auto& asked) { asked.label = "c2"; });
  add("another cluster, in all fields", [](auto& asked) {
    asked.label = "c2";
    asked.common_name = "system:open-cluster-management:c2:agent1";
    asked.groups[0] = "system:open-cluster-management:c2";
  });
  add("another cluster's name", [](auto& asked) { asked.common_name = "system:open-cluster-management:c2:agent1"; });
  add("another cluster's group", [](auto& asked) { asked.groups[0] = "system:open-cluster-management:c2"; });
  add("a group more", [](auto& asked) { asked.groups.emplace_back("system:masters"); });
  add("another signer", [](auto& asked) { asked.signer = "kubernetes.io/kubelet-serving"; });
  add("a server's certificate", [](auto& asked) { asked.usages.emplace_back("server auth"); });
  add("no client's certificate", [](auto& asked) { asked.usages = {"digital signature"}; });
  while_waiting([&]() -> Awaitable<> {
    co_await deploy_copy("c1");
    co_await deploy_copy("c2");
    for (const auto& [what, asked] : cases) {
      auto name = co_await ask(asked);
      co_await clock_.sleep_for(1s);
      EXPECT_EQ(decision(name), "") << what;
    }
  });
}

// Its certificate gives no access; but its agent, which waits for an answer for ever, goes on and sees the denial.
TEST_F(ApprovalTest, ADeniedCopysRequestIsApproved) {
  while_waiting([&]() -> Awaitable<> {
    co_await deploy_copy("c1", true, false);
    auto denied = co_await ask({});
    co_await clock_.sleep_for(1s);
    EXPECT_EQ(decision(denied), "Approved ApprovedByHubferry");
  });
}

TEST_F(ApprovalTest, AClusterThatIsNotOurCopyGetsNoCertificate) {
  while_waiting([&]() -> Awaitable<> {
    auto object = managed_cluster("c1", "Unknown");
    object["metadata"].as_object()["labels"] = json::object{{migration_label, other_.uid}};
    co_await put(*hub2_, ocm::managed_clusters, object);
    auto foreign = co_await ask({});
    co_await clock_.sleep_for(1s);
    EXPECT_EQ(decision(foreign), "");
  });
}

// Somebody deleted the copy, and the agent registered without it.
TEST_F(ApprovalTest, AClusterThatRegisteredByItselfIsAdoptedAndGetsItsCertificate) {
  while_waiting([&]() -> Awaitable<> {
    co_await deploy_copy("c1", false, false);
    auto asked = co_await ask({});
    co_await clock_.sleep_for(1s);
    EXPECT_EQ(decision(asked), "Approved ApprovedByHubferry");
    EXPECT_EQ(cluster(*hub2_, "c1").label(migration_label), migration_.uid);
  });
}

// Whoever withdraws the identity's permission ends the approvals with it.
TEST_F(ApprovalTest, WithoutTheMigrationsOwnBindingNothingIsApproved) {
  run([&]() -> Awaitable<> {
    co_await deploy_copy("c1");
    auto wait = [&]() -> Awaitable<> {
      TargetHub::OnArrival ignore{[](const std::string&) {}};
      auto waited = co_await hub2_->target->await_arrivals(migration_, {"c1"}, clock_.wall_now(), ignore);
      EXPECT_TRUE(waited);
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(wait());
      auto name = co_await ask({});
      co_await clock_.sleep_for(10s);
      EXPECT_EQ(decision(name), "");
      scope.stop();
    };
    co_await async::with_scope(both);
  });
}

class ReadyTest : public ApprovalTest {
 protected:
  Awaitable<> prepare() {
    auto begun = co_await hub2_->target->permit_registration(migration_, identity_);
    EXPECT_TRUE(begun);
    json::object work{{"metadata", json::object{{"name", "c1-klusterlet"}, {"namespace", "c1"}}},
                      {"spec", json::object{{"workload", json::object{{"manifests", json::array{}}}}}}};
    co_await put_namespace(*hub2_, "c1");
    co_await put(*hub2_, ocm::manifest_works, work);
  }
};

TEST_F(ReadyTest, AHubThatHasAcceptedTheCopyTakesTheCluster) {
  run([&]() -> Awaitable<> {
    co_await prepare();
    co_await deploy_copy("c1");
    auto ready = co_await hub2_->target->await_ready(migration_, {"c1"});
    CO_ASSERT_TRUE(ready);
    EXPECT_THAT(ready->done, ElementsAre("c1"));
  });
}

// As with a registration controller that is stopped: nobody would complete the registration.
TEST_F(ReadyTest, AHubWhoseControllersDoNothingDoesNotTakeTheCluster) {
  run([&]() -> Awaitable<> {
    co_await prepare();
    auto copy = managed_cluster("c1");
    copy["metadata"].as_object()["labels"] = json::object{{migration_label, migration_.uid}};
    copy.erase("status");
    co_await put(*hub2_, ocm::managed_clusters, copy);
    auto ready = co_await hub2_->target->await_ready(migration_, {"c1"});
    CO_ASSERT_TRUE(ready);
    EXPECT_THAT(reasons_of(*ready), ElementsAre("c1: ClusterNotAvailable"));
    EXPECT_THAT(ready->failed[0].message, HasSubstr("registration controller"));
  });
}

TEST_F(ReadyTest, AHubWithoutAnImportOfTheCopyDoesNotTakeTheCluster) {
  run([&]() -> Awaitable<> {
    auto begun = co_await hub2_->target->permit_registration(migration_, identity_);
    CO_ASSERT_TRUE(begun);
    co_await deploy_copy("c1");
    auto ready = co_await hub2_->target->await_ready(migration_, {"c1"});
    CO_ASSERT_TRUE(ready);
    CO_ASSERT_EQ(ready->failed.size(), 1U);
    EXPECT_THAT(ready->failed[0].message, HasSubstr("import controller"));
  });
}

// With ten of them its agent would send none, and would not look at another hub either.
TEST_F(ReadyTest, AHubWithManyRequestsOfTheClusterDoesNotTakeIt) {
  run([&]() -> Awaitable<> {
    co_await prepare();
    co_await deploy_copy("c1");
    for (int i = 0; i < 7; ++i) co_await ask({});
    const auto of_addon = co_await ask({});
    co_await patch(*hub2_, requests, {{}, of_addon},
                   R"({"metadata": {"labels": {"open-cluster-management.io/addon-name": "search"}}})");
    auto ready = co_await hub2_->target->await_ready(migration_, {"c1"});
    CO_ASSERT_TRUE(ready);
    EXPECT_THAT(ready->done, ElementsAre("c1"));
    co_await ask({});
    ready = co_await hub2_->target->await_ready(migration_, {"c1"});
    CO_ASSERT_TRUE(ready);
    EXPECT_THAT(reasons_of(*ready), ElementsAre("c1: ClusterNotAvailable"));
    EXPECT_THAT(ready->failed[0].message, HasSubstr("has 8 certificate requests of it"));
  });
}

TEST_F(ReadyTest, AnAccountThatMayNotRegisterIsNoticedBeforeAnyClusterIsDetached) {
  run([&]() -> Awaitable<> {
    co_await prepare();
    co_await deploy_copy("c1");
    co_await patch(*hub2_, kube::resources::cluster_roles, {{}, ocm::names::acm_bootstrap_role}, R"({"rules": []})");
    auto ready = co_await hub2_->target->await_ready(migration_, {"c1"});
    CO_ASSERT_TRUE(!ready);
    EXPECT_THAT(ready.error().message(), HasSubstr("may not register clusters on hub hub2"));
  });
}

}  // namespace
}  // namespace hubferry::hubagent
