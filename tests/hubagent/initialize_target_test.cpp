#include "hub_test.hpp"

namespace hubferry::hubagent {
namespace {

using kube::resources::cluster_role_bindings;
using kube::resources::cluster_roles;

constexpr const char* review = "global-hub-migration-move-sar";
constexpr const char* registration = "global-hub-migration-move-registration";

class InitializeTargetTest : public HubTest {
 protected:
  /// As a migration does, the second part when the copies are there.
  Awaitable<Result<>> prepare() {
    auto begun = co_await hub2_->target->initialize(migration_, identity_);
    if (!begun) co_return begun;
    co_return co_await hub2_->target->permit_registration(migration_, identity_);
  }
};

// An agent that loses the source then would register where no copy of its cluster is yet.
TEST_F(InitializeTargetTest, NobodyMayRegisterBeforeTheMigrationPermitsIt) {
  run([&]() -> Awaitable<> {
    auto begun = co_await hub2_->target->initialize(migration_, identity_);
    CO_ASSERT_TRUE(begun);
    EXPECT_FALSE(exists(*hub2_, cluster_role_bindings, {{}, registration}));
    auto permitted = co_await hub2_->target->permit_registration(migration_, identity_);
    CO_ASSERT_TRUE(permitted);
    EXPECT_TRUE(exists(*hub2_, cluster_role_bindings, {{}, registration}));
  });
}

TEST_F(InitializeTargetTest, GrantsWhatRegistrationNeedsAndRevokesItAgain) {
  const auto before = content_of(hub2_->server);
  run([&]() -> Awaitable<> {
    auto begun = co_await prepare();
    CO_ASSERT_TRUE(begun);
    const auto binding = object(*hub2_, cluster_role_bindings, {{}, registration});
    EXPECT_EQ(binding.string_at({"roleRef", "name"}), ocm::names::acm_bootstrap_role);
    EXPECT_EQ(binding->at("subjects").at(0).at("name"), "move");
    EXPECT_EQ(object(*hub2_, cluster_role_bindings, {{}, review}).string_at({"roleRef", "name"}), review);
    EXPECT_EQ(object(*hub2_, cluster_roles, {{}, review}).label(migration_label), "uid-1");
    const auto version = hub2_->server.resource_version();
    auto again = co_await prepare();
    CO_ASSERT_TRUE(again);
    EXPECT_EQ(hub2_->server.resource_version(), version) << "a second time writes nothing";
    auto removed = co_await hub2_->target->delete_migration_objects(migration_, identity_);
    CO_ASSERT_TRUE(removed);
    auto twice = co_await hub2_->target->delete_migration_objects(migration_, identity_);
    EXPECT_TRUE(twice);
  });
  EXPECT_THAT(differences(before, content_of(hub2_->server)), IsEmpty());
}

// With the gate ManagedClusterAutoApproval a hub accepts every cluster, also those that an administrator has denied.
TEST_F(InitializeTargetTest, TheHubsOwnConfigurationIsNotTouched) {
  const Key manager{{}, "cluster-manager"};
  const auto before = object(*hub2_, ocm::cluster_managers, manager);
  run([&]() -> Awaitable<> {
    auto begun = co_await prepare();
    CO_ASSERT_TRUE(begun);
    EXPECT_EQ(object(*hub2_, ocm::cluster_managers, manager).resource_version(), before.resource_version());
    auto removed = co_await hub2_->target->delete_migration_objects(migration_, identity_);
    CO_ASSERT_TRUE(removed);
    EXPECT_EQ(object(*hub2_, ocm::cluster_managers, manager).resource_version(), before.resource_version());
  });
}

TEST_F(InitializeTargetTest, PlainOpenClusterManagementHasAnotherRole) {
  run([&]() -> Awaitable<> {
    auto& api = hub2_->server.api();
    co_await api.remove(cluster_roles, {{}, ocm::names::acm_bootstrap_role});
    auto begun = co_await prepare();
    CO_ASSERT_TRUE(begun);
    EXPECT_EQ(object(*hub2_, cluster_role_bindings, {{}, registration}).string_at({"roleRef", "name"}),
              ocm::names::ocm_bootstrap_role);
    co_await api.remove(cluster_roles, {{}, ocm::names::ocm_bootstrap_role});
    auto neither = co_await prepare();
    CO_ASSERT_TRUE(!neither);
    EXPECT_THAT(neither.error().message(), HasSubstr("Open Cluster Management"));
  });
}

TEST_F(InitializeTargetTest, OwnObjectsThatDifferAreCorrectedAndOthersAreNotChanged) {
  run([&]() -> Awaitable<> {
    auto begun = co_await prepare();
    CO_ASSERT_TRUE(begun);
    co_await patch(*hub2_, cluster_roles, {{}, review}, R"({"rules": []})");
    auto& api = hub2_->server.api();
    co_await api.remove(cluster_role_bindings, {{}, registration});
    auto wrong = parsed(R"({"metadata": {"name": "global-hub-migration-move-registration",
                            "labels": {"hubferry.io/migration": "uid-1"}}, "subjects": [],
                            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}})");
    co_await put(*hub2_, cluster_role_bindings, wrong);
    auto again = co_await prepare();
    CO_ASSERT_TRUE(again);
    EXPECT_EQ(object(*hub2_, cluster_roles, {{}, review})->at("rules").as_array().size(), 1U);
    EXPECT_EQ(object(*hub2_, cluster_role_bindings, {{}, registration}).string_at({"roleRef", "name"}),
              ocm::names::acm_bootstrap_role);

    co_await patch(*hub2_, cluster_roles, {{}, review}, R"({"metadata": {"labels": {"hubferry.io/migration": null}}})");
    auto foreign = co_await prepare();
    CO_ASSERT_TRUE(!foreign);
    EXPECT_THAT(foreign.error().message(), HasSubstr("somebody else"));
    auto removed = co_await hub2_->target->delete_migration_objects(migration_, identity_);
    CO_ASSERT_TRUE(removed);
    EXPECT_TRUE(exists(*hub2_, cluster_roles, {{}, review})) << "not ours any more";
  });
}

TEST_F(InitializeTargetTest, ATokenIsIssuedForTheAccountWhichIsDeletedLater) {
  const auto before = content_of(hub2_->server);
  run([&]() -> Awaitable<> {
    auto token = co_await hub2_->target->issue_token(migration_, identity_);
    CO_ASSERT_TRUE(token);
    EXPECT_FALSE(token->empty());
    auto again = co_await hub2_->target->issue_token(migration_, identity_);
    EXPECT_TRUE(again);
    EXPECT_TRUE(exists(*hub2_, kube::resources::service_accounts, {identity_.ns, "move"}));
    auto removed = co_await hub2_->target->delete_migration_objects(migration_, identity_);
    CO_ASSERT_TRUE(removed);
  });
  EXPECT_THAT(differences(before, content_of(hub2_->server)), IsEmpty());
}

TEST_F(InitializeTargetTest, AnotherOwnersAccountIsNeitherUsedNorDeleted) {
  run([&]() -> Awaitable<> {
    json::object account;
    account["metadata"] = json::object{{"name", "move"}, {"namespace", identity_.ns}};
    co_await put(*hub2_, kube::resources::service_accounts, account);
    auto token = co_await hub2_->target->issue_token(migration_, identity_);
    CO_ASSERT_TRUE(!token);
    EXPECT_THAT(token.error().message(), HasSubstr("belongs to somebody else"));
    auto removed = co_await hub2_->target->delete_migration_objects(migration_, identity_);
    EXPECT_TRUE(removed);
    EXPECT_TRUE(exists(*hub2_, kube::resources::service_accounts, {identity_.ns, "move"}));
  });
}

}  // namespace
}  // namespace hubferry::hubagent
