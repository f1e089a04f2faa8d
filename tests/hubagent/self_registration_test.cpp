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
  Awaitable<bool> adopts() {
    bool adopted = false;
    TargetHub::OnFound on_adopted = [&](const std::string& name) { adopted = name == "c1"; };
    auto looked = co_await hub2_->target->adopt(migration_, {"c1"}, on_adopted);
    EXPECT_TRUE(looked && looked->failed.empty());
    co_return adopted;
  }
  Awaitable<bool> finds_registered() {
    bool registered = false;
    TargetHub::OnFound on_found = [&](const std::string& name) { registered = name == "c1"; };
    auto looked = co_await hub2_->target->find_registered(migration_, {"c1"}, on_found);
    EXPECT_TRUE(looked && looked->failed.empty());
    co_return registered;
  }
  /// The migration's own, as it is deployed.
  Awaitable<> put_copy(std::string joined = {}) {
    json::object object{
        {"metadata", json::object{{"name", "c1"}, {"labels", json::object{{migration_label, migration_.uid}}}}},
        {"spec", json::object{{"hubAcceptsClient", true}}}};
    if (!joined.empty())
      object["status"] =
          json::object{{"conditions", json::array{condition(ocm::names::joined, joined, "2029-12-01T00:00:00Z")}}};
    co_await put(*hub2_, ocm::managed_clusters, std::move(object));
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
    EXPECT_THAT(first, ElementsAre("c1: ClusterNotFound"));
    EXPECT_EQ(label(), "") << "looking changes nothing";
    const bool adopted = co_await adopts();
    EXPECT_TRUE(adopted);
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
      const bool adopted = co_await adopts();
      EXPECT_FALSE(adopted) << what;
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
    const bool older = co_await adopts();
    EXPECT_FALSE(older);
    EXPECT_EQ(label(), "");
    co_await hub2_->server.api().remove(ocm::managed_clusters, {{}, "c1"});
    co_await register_cluster({{migration_label, "uid-2"}});
    const bool others = co_await adopts();
    EXPECT_FALSE(others);
    EXPECT_EQ(label(), "uid-2");
  });
}

// Somebody created it for a purpose of his own, and the agent only found it.
TEST_F(SelfRegistrationTest, AClusterThatBelongsToSomethingElseIsNotTouched) {
  run([&]() -> Awaitable<> {
    co_await permit();
    co_await register_cluster();
    co_await ask({});
    co_await put_namespace(*hub2_, "owner");
    const std::string uid{object(*hub2_, kube::resources::namespaces, {{}, "owner"}).uid()};
    const Key key{{}, "c1"};
    co_await patch(*hub2_, ocm::managed_clusters, key,
                   R"({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "owner",
                       "uid": ")" +
                       uid + R"("}]}})");
    const bool owned = co_await adopts();
    EXPECT_FALSE(owned);
    co_await patch(*hub2_, ocm::managed_clusters, key,
                   R"({"metadata": {"ownerReferences": null,
                       "annotations": {"global-hub.open-cluster-management.io/migrating": "uid-2"}}})");
    const bool claimed = co_await adopts();
    EXPECT_FALSE(claimed);
    EXPECT_EQ(label(), "");
    co_await patch(*hub2_, ocm::managed_clusters, key, R"({"metadata": {"annotations": null}})");
    const bool adopted = co_await adopts();
    EXPECT_TRUE(adopted) << "of neither";
  });
}

TEST_F(SelfRegistrationTest, WithoutThePermissionToListRequestsItIsNotTouched) {
  run([&]() -> Awaitable<> {
    co_await permit();
    co_await register_cluster();
    co_await ask({});
    hub2_->server.faults().on({"list", "certificatesigningrequests"}).always().fail(403);
    const bool adopted = co_await adopts();
    EXPECT_FALSE(adopted);
    EXPECT_EQ(label(), "");
  });
}

// Its agent need not be waited for on the source: it never left.
TEST_F(SelfRegistrationTest, ACopyThatNoAgentUsesIsNotRegistered) {
  run([&]() -> Awaitable<> {
    co_await permit();
    co_await put_copy();
    const bool unused = co_await finds_registered();
    EXPECT_FALSE(unused);
    co_await ask({});
    const bool begun = co_await finds_registered();
    EXPECT_TRUE(begun) << "an agent that asks for a certificate may be here soon";
  });
}

TEST_F(SelfRegistrationTest, ACopyThatAnAgentHasJoinedIsRegisteredAlsoWhenItsRequestIsGone) {
  run([&]() -> Awaitable<> {
    co_await permit();
    co_await put_copy("False");
    const bool registered = co_await finds_registered();
    EXPECT_TRUE(registered);
  });
}

TEST_F(SelfRegistrationTest, WithoutThePermissionToListRequestsAnyCopyMayBeInUse) {
  run([&]() -> Awaitable<> {
    co_await permit();
    hub2_->server.faults().on({"list", "certificatesigningrequests"}).always().fail(403);
    const bool without_copy = co_await finds_registered();
    EXPECT_FALSE(without_copy);
    co_await put_copy();
    const bool with_copy = co_await finds_registered();
    EXPECT_TRUE(with_copy);
  });
}

TEST_F(SelfRegistrationTest, ARollbackOfDeployingKeepsTheCopyOfAnAgentThatHasRegistered) {
  run([&]() -> Awaitable<> {
    co_await permit();
    co_await put_copy();
    co_await ask({});
    auto kept = co_await hub2_->target->roll_back(migration_, Stage::deploying, {"c1"});
    EXPECT_THAT(reasons_of(*kept), ElementsAre("c1: Unknown"));
    EXPECT_TRUE(exists(*hub2_, ocm::managed_clusters, {{}, "c1"}));
    auto deleted = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
    EXPECT_THAT(reasons_of(*deleted), IsEmpty());
    EXPECT_FALSE(exists(*hub2_, ocm::managed_clusters, {{}, "c1"}));
  });
}

}  // namespace
}  // namespace hubferry::hubagent
