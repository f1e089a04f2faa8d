#include <boost/json/serialize.hpp>

#include "hub_test.hpp"
#include "hubferry/hubagent/hub_permissions.hpp"
#include "hubferry/kube/access_rules.hpp"
#include "hubferry/kube/yaml.hpp"

namespace hubferry::hubagent {
namespace {

using testing::AllOf;

const sim::User account{"system:serviceaccount:hubferry-system:hubferry-hub", {"system:serviceaccounts"}, ""};

/// A server with an authorizer that cannot list its rules, such as a webhook.
class SilentAboutRules final : public kube::Api {
 public:
  explicit SilentAboutRules(std::shared_ptr<kube::Api> inner) : inner_(std::move(inner)) {}

  Awaitable<kube::Result<Object>> call(kube::Request request) override {
    if (request.resource == kube::resources::self_subject_rules_reviews)
      co_return Object{parsed(R"({"status":{"resourceRules":[],"incomplete":true}})")};
    co_return co_await inner_->call(std::move(request));
  }
  Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                               const kube::Decoder& decoder) override {
    return inner_->list(std::move(resource), std::move(options), decoder);
  }
  Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource, kube::WatchOptions options,
                                                                    const kube::Decoder& decoder) override {
    return inner_->watch(std::move(resource), std::move(options), decoder);
  }
  Awaitable<kube::Result<json::value>> get_path(std::string path) override { return inner_->get_path(std::move(path)); }
  [[nodiscard]] std::string_view name() const override { return inner_->name(); }

 private:
  std::shared_ptr<kube::Api> inner_;
};

class PermissionsTest : public HubTest {
 protected:
  /// The roles of manifests/hub-rbac on hub1 and the bindings that they come with, without the rules for `lacking`.
  Awaitable<> grant(std::string lacking = {}) {
    const std::map<std::string_view, const kube::Resource*> kinds{
        {"Namespace", &kube::resources::namespaces},
        {"Role", &kube::resources::roles},
        {"ClusterRole", &kube::resources::cluster_roles},
        {"RoleBinding", &kube::resources::role_bindings},
        {"ClusterRoleBinding", &kube::resources::cluster_role_bindings}};
    for (const auto& document : kube::parse_yaml_documents(hub_rbac_manifests(), "manifests")) {
      auto object = document.as_object();
      if (auto* rules = object.if_contains("rules"); rules != nullptr && !lacking.empty())
        for (auto& rule : rules->as_array()) {
          json::array kept;
          for (const auto& resource : rule.at("resources").as_array())
            if (resource.as_string() != lacking) kept.push_back(resource);
          rule.at("resources") = std::move(kept);
        }
      auto created = co_await hub1_->server.api().create(*kinds.at(kube::string_at(object, {"kind"})), object);
      EXPECT_TRUE(created || created.error().kind == ErrorKind::already_exists) << created.error();
    }
  }

  /// Hub1 as our account sees it.
  std::shared_ptr<Hub> restricted(HubOptions options = {}) {
    return std::make_shared<Hub>("hub1", hub1_->server.api_as(account), std::move(options), env_);
  }
  /// What validate() finds, beside the hub's cache.
  Awaitable<Outcome> validated(std::shared_ptr<Hub> hub, bool as_source, ClusterNames clusters) {
    Result<Outcome> outcome{Outcome{}};
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(hub->run());
      const auto source = make_source_hub(hub);
      const auto target = make_target_hub(hub);
      if (as_source)
        outcome = co_await source->validate(migration_, clusters);
      else
        outcome = co_await target->validate(migration_, clusters);
      scope.stop();
    };
    co_await async::with_scope(body);
    EXPECT_TRUE(outcome) << outcome.error();
    co_return outcome ? *outcome : Outcome{};
  }
  static std::string text(const Outcome& outcome) {
    std::string all;
    for (const auto& error : outcome.of_hub)
      all += std::string{to_string(error.reason())} + " " + error.message() + "\n";
    for (const auto& failure : outcome.failed)
      all += failure.cluster + " " + std::string{to_string(failure.reason)} + " " + failure.message + "\n";
    return all;
  }
};

TEST_F(PermissionsTest, ThoseOfTheManifestsAreAllThatIsNeeded) {
  run([&]() -> Awaitable<> {
    co_await grant();
    co_await put_cluster(*hub1_, "c1");
    const auto on_source = co_await validated(restricted(), true, {"c1"});
    EXPECT_EQ(text(on_source), "");
    EXPECT_THAT(on_source.done, ElementsAre("c1"));
    const auto on_target = co_await validated(restricted(), false, {"c2"});
    EXPECT_EQ(text(on_target), "");
    EXPECT_THAT(on_target.done, ElementsAre("c2"));
  });
}

TEST_F(PermissionsTest, AMissingOneIsNamedBesideWhatElseIsWrong) {
  run([&]() -> Awaitable<> {
    co_await grant("klusterletconfigs");
    co_await put(*hub1_, ocm::managed_clusters, managed_cluster("away", "Unknown"));
    const auto found = co_await validated(restricted(), true, {"away"});
    EXPECT_THAT(text(found),
                AllOf(HasSubstr("PermissionMissing our account on hub hub1 may not get "
                                "klusterletconfigs.config.open-cluster-management.io"),
                      HasSubstr("apply manifests/hub-rbac on the hub"), HasSubstr("away ClusterNotAvailable")));
  });
}

TEST_F(PermissionsTest, WhatIsMissingInOneNamespaceConcernsThatClusterOnly) {
  run([&]() -> Awaitable<> {
    co_await grant();
    for (const auto* name : {"hubferry-source-cluster", "hubferry-target-cluster"}) {
      auto removed = co_await hub1_->server.api().remove(kube::resources::cluster_role_bindings, {"", name});
      EXPECT_TRUE(removed) << removed.error();
    }
    for (const auto* name : {"c1", "c2"}) co_await put_cluster(*hub1_, name);
    auto binding = parsed(R"({"metadata":{"name":"hubferry","namespace":"c1"},
        "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"hubferry-source-cluster"},
        "subjects":[{"kind":"ServiceAccount","name":"hubferry-hub","namespace":"hubferry-system"}]})");
    co_await put(*hub1_, kube::resources::role_bindings, binding);
    const auto found = co_await validated(restricted(), true, {"c1", "c2"});
    EXPECT_THAT(found.done, ElementsAre("c1"));
    EXPECT_THAT(text(found), AllOf(HasSubstr("c2 PermissionMissing our account on hub hub1 may not get secrets"),
                                   HasSubstr("in namespace c2: grant role hubferry-source-cluster")));
  });
}

// An administrator who does not let us create namespaces prepares them.
TEST_F(PermissionsTest, ANamespaceThatIsThereNeedsNoPermissionToCreateIt) {
  run([&]() -> Awaitable<> {
    co_await grant();
    co_await hub1_->server.api().remove(kube::resources::cluster_role_bindings, {"", "hubferry-target-namespaces"});
    co_await put_namespace(*hub1_, "prepared");
    const auto found = co_await validated(restricted(), false, {"new", "prepared"});
    EXPECT_THAT(found.done, ElementsAre("prepared"));
    EXPECT_THAT(text(found), HasSubstr("new PermissionMissing our account on hub hub1 may not create namespaces"));
  });
}

TEST_F(PermissionsTest, ThoseForKindsThatTheHubDoesNotServeAreNotNeeded) {
  run([&]() -> Awaitable<> {
    co_await grant("observabilityaddons");
    co_await put_cluster(*hub1_, "c1");
    const auto before = co_await validated(restricted(), true, {"c1"});
    EXPECT_THAT(text(before), HasSubstr("observabilityaddons"));
    auto gone =
        co_await hub1_->server.api().remove(kube::resources::custom_resource_definitions,
                                            {"", "observabilityaddons.observability.open-cluster-management.io"});
    EXPECT_TRUE(gone) << gone.error();
    const auto after = co_await validated(restricted(), true, {"c1"});
    EXPECT_EQ(text(after), "");
  });
}

TEST_F(PermissionsTest, KindsThatAUserAddedNeedThemToo) {
  run([&]() -> Awaitable<> {
    co_await grant();
    co_await put_cluster(*hub1_, "c1");
    HubOptions options;
    options.carried = std::make_shared<const CarriedResources>(parse_carried_resources(
        "carriedResources: [{version: v1, resource: serviceaccounts, kind: ServiceAccount, all: true}]", "test"));
    const auto found = co_await validated(restricted(options), true, {"c1"});
    EXPECT_THAT(text(found), HasSubstr("c1 PermissionMissing our account on hub hub1 may not list "
                                       "serviceaccounts in namespace c1"));
  });
}

TEST_F(PermissionsTest, AreReviewedOneByOneWhereTheHubCannotListThem) {
  run([&]() -> Awaitable<> {
    co_await grant("manifestworks");
    co_await put_cluster(*hub1_, "c1");
    auto api = std::make_shared<SilentAboutRules>(hub1_->server.api_as(account));
    const auto hub = std::make_shared<Hub>("hub1", api, HubOptions{}, env_);
    const auto found = co_await validated(hub, true, {"c1"});
    EXPECT_EQ(text(found),
              "PermissionMissing our account on hub hub1 may not get manifestworks.work.open-cluster-management.io, "
              "list manifestworks.work.open-cluster-management.io, watch "
              "manifestworks.work.open-cluster-management.io: apply manifests/hub-rbac on the hub\n");
    EXPECT_THAT(found.done, ElementsAre("c1"));
  });
}

TEST_F(PermissionsTest, AHubWhoseClustersMayNotBeReadSaysSoAtOnce) {
  run([&]() -> Awaitable<> {
    co_await grant("managedclusters");
    const auto begun = clock_.now();
    const auto found = co_await validated(restricted(), true, {"c1"});
    EXPECT_THAT(text(found), HasSubstr("may not get managedclusters.cluster.open-cluster-management.io"));
    EXPECT_LT(clock_.now() - begun, 1s);
  });
}

TEST_F(PermissionsTest, AreNotReviewedForAnAccountThatWillNotRunTheMigration) {
  run([&]() -> Awaitable<> {
    co_await grant("klusterletconfigs");
    co_await put_cluster(*hub1_, "c1");
    HubOptions options;
    options.review_permissions = false;
    const auto found = co_await validated(restricted(options), true, {"c1"});
    EXPECT_EQ(text(found), "");
  });
}

TEST(AccessRules, AllowWhatOneOfThemCovers) {
  const kube::AccessRules rules{Object{parsed(R"({"status":{"incomplete":false,"resourceRules":[
    {"verbs":["get"],"apiGroups":[""],"resources":["secrets"]},
    {"verbs":["*"],"apiGroups":["work.open-cluster-management.io"],"resources":["*"]},
    {"verbs":["list"],"apiGroups":["coordination.k8s.io"],"resources":["leases"],"resourceNames":["one"]},
    {"verbs":["update"],"apiGroups":["*"],"resources":["*/status"]}]}})")}};
  EXPECT_TRUE(rules.complete());
  EXPECT_TRUE(rules.allow("get", kube::resources::secrets));
  EXPECT_FALSE(rules.allow("list", kube::resources::secrets));
  EXPECT_FALSE(rules.allow("get", kube::resources::config_maps));
  EXPECT_TRUE(rules.allow("watch", ocm::manifest_works, "status"));
  EXPECT_TRUE(rules.allow("list", kube::resources::leases, {}, "one"));
  EXPECT_FALSE(rules.allow("list", kube::resources::leases, {}, "other"));
  EXPECT_FALSE(rules.allow("list", kube::resources::leases)) << "not for all objects";
  EXPECT_TRUE(rules.allow("update", ocm::bare_metal_hosts, "status"));
  EXPECT_FALSE(rules.allow("update", ocm::bare_metal_hosts));
  EXPECT_FALSE(kube::AccessRules{Object{}}.complete());
}

}  // namespace
}  // namespace hubferry::hubagent
