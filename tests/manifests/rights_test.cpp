// Runs migrations with the rights of the manifests and no others, on simulated servers that check them.
#include <gmock/gmock.h>

#include <set>

#include "hubferry/hubs/hub_directory.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/virtual_world.hpp"
#include "manifest_files.hpp"

namespace hubferry::test {
namespace {

using namespace std::chrono_literals;
using async::Awaitable;
using testing::IsEmpty;

/// "get managedclusters.cluster.open-cluster-management.io", as a rule grants it and as a request asks for it.
std::string right(const std::string& verb, const std::string& resource) {
  return (verb == "apply" ? "patch" : verb) + " " + resource;
}

/// Every right that the roles of a directory grant.
std::set<std::string> granted_by(const std::vector<Manifest>& manifests, const std::string& role) {
  std::set<std::string> rights;
  for (const auto& manifest : manifests) {
    if (!manifest.kind().ends_with("Role") || manifest.name() != role) continue;
    for (const auto& rule : manifest.content.at("rules").as_array())
      for (const auto& group : rule.at("apiGroups").as_array())
        for (const auto& resource : rule.at("resources").as_array())
          for (const auto& verb : rule.at("verbs").as_array()) {
            const std::string name{resource.as_string()};
            const auto slash = name.find('/');
            const std::string suffix = group.as_string().empty() ? "" : "." + std::string{group.as_string()};
            rights.insert(
                right(std::string{verb.as_string()},
                      name.substr(0, slash) + suffix + (slash == std::string::npos ? "" : name.substr(slash))));
          }
  }
  return rights;
}

const sim::User manager{"system:serviceaccount:hubferry-system:hubferry", {"system:serviceaccounts"}, ""};
const sim::User on_hub{"system:serviceaccount:hubferry-system:hubferry-hub", {"system:serviceaccounts"}, ""};

/// How an administrator of a hub grants the permissions in the clusters' namespaces.
enum class Grant { by_namespace, all_clusters };

/// A world in which the manager is who the manifests say it is.
class RightsTest : public testing::Test {
 protected:
  explicit RightsTest(Grant grant = Grant::by_namespace, sim::WorldOptions given = options())
      : world_(std::move(given)) {
    install("global", flattened(manifests_directory() / "base"));
    bind("global", "default", "hubferry-ledger", "hubferry");
    for (const auto* hub : {"hub1", "hub2"}) {
      must(world_.api(hub).create(kube::resources::namespaces, named("multicluster-engine")));
      install(hub, flattened(manifests_directory() / "hub-rbac"));
      install(hub, flattened(manifests_directory() / "hub-rbac" / "approval"));
      if (grant == Grant::all_clusters) install(hub, flattened(manifests_directory() / "hub-rbac" / "all-clusters"));
    }
    if (grant == Grant::by_namespace)
      for (const auto& cluster : clusters(1, 12)) {
        const std::string name{cluster.as_string()};
        must(world_.api("hub2").create(kube::resources::namespaces, named(name)));
        bind("hub1", name, "hubferry-source-cluster", "hubferry-hub");
        bind("hub2", name, "hubferry-target-cluster", "hubferry-hub");
      }
    world_.run(world_.world().wait_settled());
    for (const auto* server : {"global", "hub1", "hub2"}) world_.server(server).forget_requests();
    global_ = world_.global().api_as(manager);
  }

  static sim::WorldOptions options() {
    sim::WorldOptions options;
    options.clusters = 12;
    // hubferry's own agents: they leave a target that does not register them, and no person is needed for that.
    options.upstream_agents = false;
    return options;
  }

  static json::object named(const std::string& name, const std::string& ns = {}) {
    json::object metadata{{"name", name}};
    if (!ns.empty()) metadata["namespace"] = ns;
    return {{"metadata", std::move(metadata)}};
  }
  template <typename Operation>
  void must(Operation operation) {
    auto made = world_.run(std::move(operation));
    EXPECT_TRUE(made || made.error().kind == kube::ErrorKind::already_exists) << made.error();
  }
  /// kubectl create rolebinding
  void bind(const std::string& server, const std::string& ns, const std::string& role, const std::string& account) {
    auto binding = named(role, ns);
    binding["roleRef"] =
        json::object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", role}};
    binding["subjects"] =
        json::array{json::object{{"kind", "ServiceAccount"}, {"name", account}, {"namespace", "hubferry-system"}}};
    must(world_.api(server).create(kube::resources::role_bindings, binding));
  }

  /// Namespaces, accounts, roles and bindings; the rest is no matter of rights.
  void install(const std::string& server, const std::vector<Manifest>& manifests) {
    const std::vector<kube::Resource> kinds{kube::resources::namespaces,    kube::resources::service_accounts,
                                            kube::resources::roles,         kube::resources::role_bindings,
                                            kube::resources::cluster_roles, kube::resources::cluster_role_bindings};
    for (const auto& kind : kinds)
      for (const auto& manifest : manifests) {
        if (manifest.kind() != kind.kind) continue;
        auto made = world_.run(world_.api(server).create(kind, manifest.content));
        // A simulated global hub has the manager's namespace from the start.
        const bool is_there = !made && made.error().kind == kube::ErrorKind::already_exists;
        EXPECT_TRUE(made || (is_there && kind == kube::resources::namespaces)) << manifest.label() << made.error();
      }
  }

  void migrate(const std::string& name, json::object spec) {
    spec["from"] = "hub1";
    spec["to"] = "hub2";
    json::object object{{"metadata", json::object{{"name", name}, {"namespace", "default"}}}, {"spec", spec}};
    auto made = world_.run(world_.api("global").create(migration::managed_cluster_migrations, object));
    EXPECT_TRUE(made) << made.error();
  }
  std::string phase(const std::string& name) {
    const auto object = world_.global().object(migration::managed_cluster_migrations, {"default", name});
    return object ? std::string{object->string_at({"status", "phase"})} : "gone";
  }

  /// The manager, until `name` is in `wanted`.
  void run_manager_until(const std::string& name, const std::string& wanted) {
    hubs::Connect connect = [this](const std::string& hub, const kube::ClientConfig&) -> std::shared_ptr<kube::Api> {
      return world_.server(hub).api_as(on_hub);
    };
    hubs::HubDirectory hubs{*global_, connect, {}, world_.env()};
    migration::Controller controller{*global_, hubs, {}, world_.env()};
    async::TaskScope scope{world_.loop().executor()};
    scope.spawn(hubs.run());
    scope.spawn(controller.run());
    const auto end = world_.clock().now() + 1h;
    while (phase(name) != wanted && world_.clock().now() < end) world_.run_for(1s);
    EXPECT_EQ(phase(name), wanted);
    world_.run_for(10s);
    scope.stop();
    world_.run(scope.join());
  }

  /// What the user asked of a server so far.
  std::set<std::string> used(const std::string& server, const sim::User& user) {
    std::set<std::string> rights;
    for (const auto& request : world_.server(server).requests())
      if (request.user == user.name)
        rights.insert(
            right(request.verb, request.resource + (request.subresource.empty() ? "" : "/" + request.subresource)));
    return rights;
  }
  std::vector<std::string> refused() {
    std::vector<std::string> all;
    for (const auto& [server, user] :
         std::map<std::string, sim::User>{{"global", manager}, {"hub1", on_hub}, {"hub2", on_hub}})
      for (const auto& request : world_.server(server).requests())
        if (request.user == user.name && request.outcome.starts_with("403"))
          all.push_back(
              server + ": " +
              right(request.verb, request.resource + (request.subresource.empty() ? "" : "/" + request.subresource)));
    return all;
  }

  static json::array clusters(int first, int last) {
    json::array names;
    for (int i = first; i <= last; ++i)
      names.emplace_back("cluster-000" + std::string(i < 10 ? "0" : "") + std::to_string(i));
    return names;
  }

  void migrate_and_roll_back() {
    migrate("there", {{"includedManagedClusters", clusters(1, 8)}});
    run_manager_until("there", "Completed");
    EXPECT_THAT(refused(), IsEmpty());

    world_.server("hub2").faults().on({.verb = "create", .resource = "certificatesigningrequests"}).always().fail(422);
    migrate("and-back",
            {{"includedManagedClusters", clusters(9, 12)}, {"supportedConfigs", json::object{{"stageTimeout", "5m"}}}});
    run_manager_until("and-back", "Failed");
    EXPECT_THAT(refused(), IsEmpty());
  }

  sim::VirtualWorld world_;
  std::unique_ptr<kube::Api> global_;
};

class RightsOnAllClusters : public RightsTest {
 protected:
  RightsOnAllClusters() : RightsTest(Grant::all_clusters) {}
};

class RightsWithoutManagedServiceAccounts : public RightsTest {
 protected:
  RightsWithoutManagedServiceAccounts() : RightsTest(Grant::by_namespace, plain()) {}
  static sim::WorldOptions plain() {
    auto plain = options();
    plain.managed_service_accounts = false;
    return plain;
  }
};

TEST_F(RightsOnAllClusters, AreSufficientForAMigrationAndARollback) {
  migrate_and_roll_back();
}

TEST_F(RightsWithoutManagedServiceAccounts, AreSufficientForAMigrationAndARollback) {
  migrate_and_roll_back();
}

/// `kubectl auth can-i --list` of an account in a namespace: "get,list  secrets", sorted.
std::set<std::string> rules_in(const kube::Object& review) {
  const auto joined = [](const json::value* list) {
    std::set<std::string> sorted;
    if (list != nullptr)
      for (const auto& entry : list->as_array()) sorted.emplace(entry.as_string());
    std::string text;
    for (const auto& entry : sorted) text += (text.empty() ? "" : ",") + entry;
    return text;
  };
  std::set<std::string> lines;
  for (const auto& entry : review.find({"status", "resourceRules"})->as_array()) {
    const auto& rule = entry.as_object();
    const auto names = joined(rule.if_contains("resourceNames"));
    for (const auto& group : rule.at("apiGroups").as_array())
      for (const auto& resource : rule.at("resources").as_array())
        lines.insert("  " + std::string{resource.as_string()} +
                     (group.as_string().empty() ? "" : "." + std::string{group.as_string()}) +
                     (names.empty() ? "" : " [" + names + "]") + ": " + joined(rule.if_contains("verbs")));
  }
  return lines;
}

// A change of the manifests that widens a right shows here, account by account: tests/manifests/can-i.txt.
TEST_F(RightsTest, TheAccountsMayDoWhatTheListSaysAndNoMore) {
  const kube::Resource reviews{"authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview",
                               false};
  struct Account {
    std::string server;
    sim::User user;
    std::vector<std::string> namespaces;
  };
  std::string text;
  for (const auto& [server, user, namespaces] :
       {Account{"global", manager, {"hubferry-system", "default", "hub1", "kube-system"}},
        Account{"hub1", on_hub, {"hubferry-system", "multicluster-engine", "cluster-00001", "kube-system"}},
        Account{"hub2", on_hub, {"hubferry-bootstrap", "cluster-00001", "kube-system"}}})
    for (const auto& ns : namespaces) {
      json::object review{{"spec", json::object{{"namespace", ns}}}};
      auto answer = world_.run(world_.server(server).api_as(user)->create(reviews, review));
      ASSERT_TRUE(answer) << answer.error();
      text += user.name + " on " + server + " in namespace " + ns + "\n";
      for (const auto& line : rules_in(*answer)) text += line + "\n";
    }
  EXPECT_EQ(text, text_of(source_root() / "tests" / "manifests" / "can-i.txt"))
      << "if the change is wanted, this is the new list:\n"
      << text;
}

TEST_F(RightsTest, AreSufficientForAMigrationAndARollback) {
  migrate_and_roll_back();

  // Which of them nobody needed here. Not a failure: they are for what this test does not play, such as other makes of
  // hubs, conflicts, and objects that were gone or there already.
  auto unused_source = granted_by(all_manifests(), "hubferry-source");
  for (const auto& used_right : used("hub1", on_hub)) unused_source.erase(used_right);
  auto unused_target = granted_by(all_manifests(), "hubferry-target");
  for (const auto& used_right : used("hub2", on_hub)) unused_target.erase(used_right);
  auto unused_manager = granted_by(all_manifests(), "hubferry-manager");
  for (const auto& used_right : used("global", manager)) unused_manager.erase(used_right);
  for (const auto& [role, rights] : std::map<std::string, std::set<std::string>>{{"hubferry-manager", unused_manager},
                                                                                 {"hubferry-source", unused_source},
                                                                                 {"hubferry-target", unused_target}})
    for (const auto& name : rights) std::cout << "not used: " << role << ": " << name << "\n";
}

// The other direction: without one right the migration must not succeed, so the test above would notice its absence.
TEST_F(RightsTest, WhateverIsMissingIsNamedAtOnceBeforeAnythingIsTouchedAndThereIsNoRollback) {
  auto role = find_manifest("ClusterRole", "hubferry-source").content;
  auto& rules = role.at("rules").as_array();
  for (auto& rule : rules)
    if (rule.at("resources").at(0) == "klusterletconfigs") rule.at("verbs") = json::array{"get"};
  auto changed = world_.run(world_.api("hub1").update(kube::resources::cluster_roles, role));
  ASSERT_TRUE(changed) << changed.error();
  must(world_.api("hub2").remove(kube::resources::cluster_role_bindings, {"", "hubferry-target-approval"}));
  must(world_.api("hub2").remove(kube::resources::role_bindings, {"cluster-00002", "hubferry-target-cluster"}));
  for (const auto* server : {"hub1", "hub2"}) world_.server(server).forget_requests();
  migrate("there", {{"includedManagedClusters", clusters(1, 3)}});
  run_manager_until("there", "Failed");

  const auto object = world_.global().object(migration::managed_cluster_migrations, {"default", "there"});
  const auto text = json::serialize(object->json());
  EXPECT_THAT(text, testing::HasSubstr("PermissionMissing"));
  EXPECT_THAT(text, testing::HasSubstr("hub hub1 may not list klusterletconfigs.config.open-cluster-management.io"));
  EXPECT_THAT(text, testing::HasSubstr("apply manifests/hub-rbac/approval"));
  EXPECT_THAT(text, testing::HasSubstr("in namespace cluster-00002: grant role hubferry-target-cluster"));
  EXPECT_THAT(refused(), IsEmpty()) << "it was tried";
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("Rollback"))) << "there is nothing to roll back";
  for (const auto* server : {"hub1", "hub2"})
    for (const auto& request : world_.server(server).requests())
      if (request.user == on_hub.name)
        EXPECT_TRUE(request.verb == "get" || request.verb == "list" || request.verb == "watch" ||
                    request.resource.ends_with(".authorization.k8s.io"))
            << server << ": " << request.verb << " " << request.resource;
}

// Its agent would register on the target for ever, out of reach of the source.
TEST_F(RightsTest, WithoutTheRightToApproveNoClusterIsDetached) {
  must(world_.api("hub2").remove(kube::resources::cluster_role_bindings, {"", "hubferry-target-approval"}));
  migrate("there",
          {{"includedManagedClusters", clusters(1, 3)}, {"supportedConfigs", json::object{{"stageTimeout", "2m"}}}});
  run_manager_until("there", "Failed");
  for (const auto& request : world_.server("hub2").requests())
    EXPECT_FALSE(request.verb == "create" && request.resource == "certificatesigningrequests") << request.user;
  const auto object = world_.global().object(migration::managed_cluster_migrations, {"default", "there"});
  EXPECT_THAT(json::serialize(object->json()), testing::HasSubstr("apply manifests/hub-rbac/approval"));
}

}  // namespace
}  // namespace hubferry::test
