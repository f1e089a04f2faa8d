#include "request_test.hpp"

/// Agents that register on the target by themselves, with the migration's credential, where no copy is.
namespace hubferry::hubagent {
namespace {

class SelfRegistrationTest : public RequestTest {
 protected:
  Awaitable<> permit() {
    auto permitted = co_await hub2_->target->permit_registration(migration_, identity_);
    EXPECT_TRUE(permitted);
    co_await clock_.sleep_for(1min);
  }
  /// As an agent does it: not accepted, without any label.
  Awaitable<> register_cluster(json::object labels = {}) {
    json::object object{{"metadata", json::object{{"name", "c1"}, {"labels", std::move(labels)}}},
                        {"spec", json::object{{"hubAcceptsClient", false}}}};
    co_await put(*hub2_, ocm::managed_clusters, std::move(object));
  }
  /// The reasons for which c1 has not arrived.
  Awaitable<std::vector<std::string>> look() {
    auto looked = co_await hub2_->target->arrived(migration_, {"c1"}, clock_.wall_now());
    EXPECT_TRUE(looked) << looked.error();
    co_return looked ? reasons_of(*looked) : std::vector<std::string>{};
  }
  std::string label() { return std::string{cluster(*hub2_, "c1").label(migration_label)}; }
  bool is_accepted() { return cluster(*hub2_, "c1")->at("spec").at("hubAcceptsClient") == true; }
};

TEST_F(SelfRegistrationTest, AClusterThatRegisteredWithTheMigrationsCredentialIsAdopted) {
  run([&]() -> Awaitable<> {
    co_await permit();
    co_await register_cluster();
    co_await ask({});
    auto first = co_await look();
    EXPECT_THAT(first, ElementsAre("c1: ResourceDiffers")) << "what was copied with it may be missing";
    EXPECT_EQ(label(), "uid-1");
    EXPECT_TRUE(is_accepted());
    auto second = co_await look();
    EXPECT_THAT(second, ElementsAre("c1: ClusterNotAvailable")) << "judged as any other";
  });
}

TEST_F(SelfRegistrationTest, TheLastLookBeforeADeletionAdoptsNothing) {
  run([&]() -> Awaitable<> {
    co_await permit();
    co_await register_cluster();
    co_await ask({});
    auto confirmed = co_await hub2_->target->confirm(migration_, "c1", clock_.wall_now());
    EXPECT_FALSE(confirmed);
    EXPECT_EQ(label(), "");
  });
}

// Each could be somebody else's cluster.
TEST_F(SelfRegistrationTest, NoOtherRequestProvesAnything) {
  std::vector<std::pair<std::string, AskedFor>> cases;
  const auto add = [&](const char* what, auto change) {
    AskedFor asked;
    change(asked);
    cases.emplace_back(what, asked);
  };
  add("another user", [](auto& asked) { asked.user = "system:serviceaccount:default:stranger"; });
  add("another cluster's label", [](auto& asked) { asked.label = "c2"; });
  add("another cluster's name", [](auto& asked) { asked.common_name = "system:open-cluster-management:c2:agent1"; });
  add("another signer", [](auto& asked) { asked.signer = "kubernetes.io/kubelet-serving"; });
  run([&]() -> Awaitable<> {
    // Of a migration of the same name, whose account had the same name.
    co_await ask({});
    co_await clock_.sleep_for(1min);
    co_await permit();
    co_await register_cluster();
    for (const auto& [what, asked] : cases) {
      co_await ask(asked);
      auto found = co_await look();
      EXPECT_THAT(found, ElementsAre("c1: ClusterNotFound")) << what;
      EXPECT_EQ(label(), "") << what;
    }
  });
}

TEST_F(SelfRegistrationTest, AClusterFromBeforeThePermissionOrOfAnotherMigrationIsNotTouched) {
  run([&]() -> Awaitable<> {
    co_await register_cluster();
    co_await clock_.sleep_for(1min);
    co_await permit();
    co_await ask({});
    auto older = co_await look();
    EXPECT_THAT(older, ElementsAre("c1: ClusterNotFound"));
    EXPECT_EQ(label(), "");
    co_await hub2_->server.api().remove(ocm::managed_clusters, {{}, "c1"});
    co_await register_cluster({{migration_label, "uid-2"}});
    auto others = co_await look();
    EXPECT_THAT(others, ElementsAre("c1: ClusterNotFound"));
    EXPECT_EQ(label(), "uid-2");
  });
}

TEST_F(SelfRegistrationTest, WithoutThePermissionToListRequestsItIsNotTouched) {
  run([&]() -> Awaitable<> {
    co_await permit();
    co_await register_cluster();
    co_await ask({});
    hub2_->server.faults().on({"list", "certificatesigningrequests"}).always().fail(403);
    auto found = co_await look();
    EXPECT_THAT(found, ElementsAre("c1: ClusterNotFound"));
    EXPECT_EQ(label(), "");
  });
}

}  // namespace
}  // namespace hubferry::hubagent
