#include "sim/ocm/ocm_test.hpp"

namespace hubferry::sim {
namespace {

namespace resources = kube::resources;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string role = "open-cluster-management:managedcluster:c1";

class Acceptance : public ManualHubTest {
 protected:
  std::size_t rules() const {
    const auto found = server_.object(resources::cluster_roles, {"", role});
    return found ? found->find({"rules"})->as_array().size() : 0;
  }
  bool may(kube::Api& agent, const std::string& verb, const kube::Resource& resource, const Key& key,
           const std::string& subresource = {}) {
    return must(agent.may(verb, resource, key, subresource));
  }
  void create_work(const std::string& ns, const std::string& name) {
    must(api_.create(ocm::manifest_works, {{"metadata", json::object{{"name", name}, {"namespace", ns}}}}));
    settle();
  }
  void remove_works(const std::string& ns) {
    for (const auto& work : server_.objects(ocm::manifest_works, ns))
      must(api_.remove(ocm::manifest_works, work.key()));
    settle();
  }
};

TEST_F(Acceptance, AClusterThatIsNotAcceptedGetsNothing) {
  create_cluster("c1");
  loop_.run_for(1h);
  EXPECT_EQ(condition("c1", ocm::names::accepted), "");
  EXPECT_EQ(condition("c1", ocm::names::available), "");
  EXPECT_FALSE(exists(resources::namespaces, {"", "c1"}));
  EXPECT_EQ(server_.count(resources::leases), 0U);
}

TEST_F(Acceptance, AnAcceptedClusterGetsNamespacePermissionsLeaseAndCondition) {
  create_accepted("c1");
  EXPECT_EQ(condition("c1", ocm::names::accepted), "True/HubClusterAdminAccepted");
  const auto space = server_.object(resources::namespaces, {"", "c1"});
  ASSERT_TRUE(space);
  EXPECT_EQ(space->label("open-cluster-management.io/cluster-name"), "c1");
  EXPECT_TRUE(kube::has_finalizer(cluster("c1"), "cluster.open-cluster-management.io/api-resource-cleanup"));
  EXPECT_EQ(rules(), 4U);
  EXPECT_TRUE(exists(resources::cluster_role_bindings, {"", role}));
  EXPECT_TRUE(exists(resources::role_bindings, {"c1", role + ":registration"}));
  EXPECT_TRUE(exists(resources::role_bindings, {"c1", role + ":work"}));
  const auto lease = server_.object(resources::leases, {"c1", "managed-cluster-lease"});
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->label("open-cluster-management.io/cluster-name"), "c1");
  EXPECT_EQ(lease->string_at({"spec", "holderIdentity"}), "managed-cluster-lease");
  EXPECT_EQ(events("c1", "ManagedClusterAccepted"), 1U);
}

// The permissions that the operator's health check needs, one by one.
TEST_F(Acceptance, TheAgentMayDoWhatItsWorkNeedsAndNothingInOtherClusters) {
  create_accepted("c1");
  create_accepted("c10");
  const auto agent = agent_of("c1");
  for (const char* verb : {"get", "list", "watch"})
    EXPECT_TRUE(may(*agent, verb, resources::certificate_signing_requests, {})) << verb;
  for (const char* verb : {"get", "list", "update", "watch"}) {
    EXPECT_TRUE(may(*agent, verb, ocm::managed_clusters, {"", "c1"})) << verb;
    EXPECT_FALSE(may(*agent, verb, ocm::managed_clusters, {"", "c10"})) << verb;
  }
  for (const char* verb : {"patch", "update"})
    EXPECT_TRUE(may(*agent, verb, ocm::managed_clusters, {"", "c1"}, "status"));
  const kube::Resource registered{"register.open-cluster-management.io", "v1", "managedclusters", "ManagedCluster",
                                  false};
  EXPECT_TRUE(may(*agent, "renew", registered, {}, "clientcertificates"));
  for (const char* verb : {"get", "update"}) {
    EXPECT_TRUE(may(*agent, verb, resources::leases, {"c1", "managed-cluster-lease"})) << verb;
    EXPECT_FALSE(may(*agent, verb, resources::leases, {"c10", "managed-cluster-lease"})) << verb;
  }
  for (const char* verb : {"create", "patch", "update"}) EXPECT_TRUE(may(*agent, verb, resources::events, {"c1", ""}));
  for (const char* verb : {"get", "list", "watch", "update"})
    EXPECT_TRUE(may(*agent, verb, ocm::manifest_works, {"c1", ""})) << verb;
  for (const char* verb : {"patch", "update"})
    EXPECT_TRUE(may(*agent, verb, ocm::manifest_works, {"c1", ""}, "status"));
  EXPECT_FALSE(may(*agent, "get", resources::secrets, {"c1", "any"}));
}

// RBAC by resource name applies to lists and watches with a field selector.
TEST_F(Acceptance, TheAgentCanWatchItsOwnClusterAndNoOther) {
  create_accepted("c1");
  create_accepted("c2");
  const auto agent = agent_of("c1");
  kube::ListOptions own;
  own.field_selector = "metadata.name=c1";
  EXPECT_TRUE(loop_.run(agent->list(ocm::managed_clusters, own, kube::object_decoder())));
  EXPECT_FALSE(loop_.run(agent->list(ocm::managed_clusters, {}, kube::object_decoder())));
  kube::WatchOptions watch;
  watch.field_selector = "metadata.name=c1";
  EXPECT_TRUE(loop_.run(agent->watch(ocm::managed_clusters, watch, kube::object_decoder())));
  watch.field_selector = "metadata.name=c2";
  EXPECT_FALSE(loop_.run(agent->watch(ocm::managed_clusters, watch, kube::object_decoder())));
}

TEST_F(Acceptance, ADeniedClusterKeepsThePermissionToReadItself) {
  create_accepted("c1");
  accept("c1", false);
  remove_works("c1");  // the import controller's
  EXPECT_EQ(condition("c1", ocm::names::accepted), "False/HubClusterAdminDenied");
  EXPECT_EQ(rules(), 1U);
  EXPECT_TRUE(exists(resources::cluster_role_bindings, {"", role}));
  EXPECT_FALSE(exists(resources::role_bindings, {"c1", role + ":registration"}));
  EXPECT_FALSE(exists(resources::role_bindings, {"c1", role + ":work"}));
  EXPECT_TRUE(exists(resources::namespaces, {"", "c1"}));
  EXPECT_EQ(events("c1", "ManagedClusterDenied"), 1U);
  const auto agent = agent_of("c1");
  for (const char* verb : {"get", "list", "watch"}) EXPECT_TRUE(may(*agent, verb, ocm::managed_clusters, {"", "c1"}));
  EXPECT_FALSE(may(*agent, "update", ocm::managed_clusters, {"", "c1"}));
  EXPECT_FALSE(may(*agent, "update", resources::leases, {"c1", "managed-cluster-lease"}));
}

TEST_F(Acceptance, ADenialWaitsUntilTheLastWorkIsGone) {
  create_accepted("c1");
  create_work("c1", "app");
  accept("c1", false);
  loop_.run_for(1min);
  EXPECT_EQ(condition("c1", ocm::names::accepted), "True/HubClusterAdminAccepted");
  EXPECT_EQ(rules(), 1U);
  EXPECT_TRUE(exists(resources::role_bindings, {"c1", role + ":work"})) << "works are still processed";
  remove_works("c1");
  EXPECT_EQ(condition("c1", ocm::names::accepted), "False/HubClusterAdminDenied");
  EXPECT_FALSE(exists(resources::role_bindings, {"c1", role + ":work"}));
}

TEST_F(Acceptance, ADeniedClusterCanBeAcceptedAgain) {
  create_accepted("c1");
  create_work("c1", "app");
  accept("c1", false);  // the work keeps the RoleBinding, which is being deleted
  accept("c1", true);
  loop_.run_for(10s);
  EXPECT_EQ(condition("c1", ocm::names::accepted), "True/HubClusterAdminAccepted");
  EXPECT_EQ(rules(), 4U);
  const auto binding = server_.object(resources::role_bindings, {"c1", role + ":work"});
  ASSERT_TRUE(binding);
  EXPECT_FALSE(binding->is_being_deleted());
  EXPECT_TRUE(exists(resources::role_bindings, {"c1", role + ":registration"}));
}

TEST_F(Acceptance, ADeletedNamespaceIsCreatedAgain) {
  create_accepted("c1");
  const auto before = server_.object(resources::namespaces, {"", "c1"})->uid();
  must(api_.remove(resources::namespaces, {"", "c1"}));
  loop_.run_for(1min);
  const auto again = server_.object(resources::namespaces, {"", "c1"});
  ASSERT_TRUE(again);
  EXPECT_NE(again->uid(), before);
  EXPECT_TRUE(exists(resources::leases, {"c1", "managed-cluster-lease"}));
  EXPECT_TRUE(exists(resources::role_bindings, {"c1", role + ":work"}));
}

TEST_F(Acceptance, ServerErrorsAreRetried) {
  server_.faults().on({"create", "namespaces"}).times(3).fail(500);
  server_.faults().on({"create", "clusterroles"}).times(1).reset_after();
  server_.faults().on({"update", "managedclusters"}).times(2).fail(409);
  create_accepted("c1");
  loop_.run_for(1min);
  EXPECT_EQ(server_.faults().unused(), "");
  EXPECT_EQ(condition("c1", ocm::names::accepted), "True/HubClusterAdminAccepted");
  EXPECT_TRUE(exists(resources::leases, {"c1", "managed-cluster-lease"}));
}

TEST_F(Acceptance, DeletingAClusterDeletesItsNamespaceRolesAndLease) {
  create_accepted("c1");
  create_work("c1", "app");
  must(api_.remove(ocm::managed_clusters, {"", "c1"}));
  loop_.run_for(10s);
  EXPECT_FALSE(exists(ocm::managed_clusters, {"", "c1"}));
  EXPECT_FALSE(exists(resources::namespaces, {"", "c1"}));
  EXPECT_FALSE(exists(resources::cluster_roles, {"", role}));
  EXPECT_FALSE(exists(resources::cluster_role_bindings, {"", role}));
  EXPECT_THAT(server_.objects(resources::leases, "c1"), IsEmpty());
  EXPECT_THAT(server_.objects(ocm::manifest_works, "c1"), IsEmpty());
}

// Recorded with MCE 2.17 and 5.x: delete-with-hive.
TEST_F(Acceptance, TheNamespaceOfADeletedClusterStaysWhileItHasAClusterDeployment) {
  create_accepted("c1");
  must(api_.create(ocm::cluster_deployments, {{"metadata", json::object{{"name", "c1"}, {"namespace", "c1"}}}}));
  must(api_.remove(ocm::managed_clusters, {"", "c1"}));
  loop_.run_for(10min);
  EXPECT_FALSE(exists(ocm::managed_clusters, {"", "c1"}));
  EXPECT_TRUE(exists(ocm::cluster_deployments, {"c1", "c1"}));
  EXPECT_FALSE(server_.object(resources::namespaces, {"", "c1"})->is_being_deleted());
  must(api_.remove(ocm::cluster_deployments, {"c1", "c1"}));
  loop_.run_for(10s);
  EXPECT_FALSE(exists(resources::namespaces, {"", "c1"}));
}

// The controllers of a hub run concurrently: the deletion looked for the RoleBinding before the acceptance created it.
TEST_F(Acceptance, ADeletedClusterDoesNotStayForARoleBindingThatWasCreatedLate) {
  server_.faults().on({"create", "rolebindings"}).after(1).times(1).delay(Latency::fixed(2s));
  create_accepted("c1");
  ASSERT_FALSE(exists(resources::role_bindings, {"c1", role + ":work"}));
  server_.faults().on({"get", "namespaces"}).times(1).delay(Latency::fixed(3s));
  must(api_.remove(ocm::managed_clusters, {"", "c1"}));
  loop_.run_for(1min);
  EXPECT_EQ(server_.faults().unused(), "");
  EXPECT_FALSE(exists(ocm::managed_clusters, {"", "c1"}));
  EXPECT_FALSE(exists(resources::namespaces, {"", "c1"}));
}

TEST_F(Acceptance, ADeletedClusterLeavesANamespaceThatIsNotItsOwn) {
  must(api_.create(resources::namespaces, {{"metadata", json::object{{"name", "c1"}}}}));
  create_cluster("c1", {}, {{"finalizers", json::array{"cluster.open-cluster-management.io/api-resource-cleanup"}}});
  must(api_.remove(ocm::managed_clusters, {"", "c1"}));
  settle();
  EXPECT_FALSE(exists(ocm::managed_clusters, {"", "c1"}));
  EXPECT_TRUE(exists(resources::namespaces, {"", "c1"}));
}

TEST_F(Acceptance, AcceptingNeedsAPermissionOfItsOwnAndDenyingDoesNot) {
  create_accepted("c1");
  create_cluster("c2");
  // May write clusters, but not accept them.
  json::object rule{{"apiGroups", json::array{"cluster.open-cluster-management.io"}},
                    {"resources", json::array{"managedclusters"}},
                    {"verbs", json::array{"*"}}};
  must(api_.create(resources::cluster_roles,
                   {{"metadata", json::object{{"name", "writer"}}}, {"rules", json::array{rule}}}));
  must(api_.create(resources::cluster_role_bindings,
                   {{"metadata", json::object{{"name", "writer"}}},
                    {"roleRef", json::object{{"kind", "ClusterRole"}, {"name", "writer"}}},
                    {"subjects", json::array{json::object{{"kind", "User"}, {"name", "bob"}}}}}));
  const auto bob = server_.api_as({"bob", {}, {}});
  const auto set = [&](const char* name, bool accepted) {
    return loop_.run(
        bob->merge_patch(ocm::managed_clusters, {"", name}, {{"spec", json::object{{"hubAcceptsClient", accepted}}}}));
  };
  const auto refused = set("c2", true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::forbidden);
  EXPECT_TRUE(set("c1", true)) << "it is already accepted";
  EXPECT_TRUE(set("c1", false));
  EXPECT_FALSE(set("c1", true));
  EXPECT_FALSE(loop_.run(bob->create(ocm::managed_clusters, {{"metadata", json::object{{"name", "c3"}}},
                                                             {"spec", json::object{{"hubAcceptsClient", true}}}})));
}

TEST_F(Acceptance, NoClusterIsAcceptedWhileItsNamespaceIsBeingDeleted) {
  must(api_.create(resources::namespaces, {{"metadata", json::object{{"name", "c1"}}}}));
  must(api_.create(resources::config_maps, {{"metadata", json::object{{"name", "held"},
                                                                      {"namespace", "c1"},
                                                                      {"finalizers", json::array{"example.com/x"}}}}}));
  must(api_.remove(resources::namespaces, {"", "c1"}));
  create_cluster("c1");
  EXPECT_FALSE(loop_.run(
      api_.merge_patch(ocm::managed_clusters, {"", "c1"}, {{"spec", json::object{{"hubAcceptsClient", true}}}})));
}

class AutomaticAcceptance : public HubTest {};

TEST_F(AutomaticAcceptance, ANewClusterIsAcceptedOnceAndADenialSticks) {
  create_cluster("c1");
  EXPECT_EQ(condition("c1", ocm::names::accepted), "True/HubClusterAdminAccepted");
  EXPECT_NE(cluster("c1").annotation("open-cluster-management.io/automatically-accepted-on"), "");
  accept("c1", false);
  loop_.run_for(1h);
  EXPECT_FALSE(cluster("c1").find({"spec", "hubAcceptsClient"})->as_bool());
}

// Recorded with MCE 2.17 and 5.x: denied-and-autoapprove. It looks at its own annotation only.
TEST_F(AutomaticAcceptance, ADeniedClusterThatItHasNotAcceptedBeforeIsAccepted) {
  create_accepted("c1");
  accept("c1", false);
  EXPECT_TRUE(cluster("c1").find({"spec", "hubAcceptsClient"})->as_bool());
  accept("c1", false);
  loop_.run_for(1h);
  EXPECT_FALSE(cluster("c1").find({"spec", "hubAcceptsClient"})->as_bool()) << "the second denial is kept";
}

TEST_F(Acceptance, EnablingAutomaticAcceptanceAcceptsPendingClusters) {
  create_cluster("c1");
  json::object patch{
      {"spec",
       json::object{{"registrationConfiguration",
                     json::object{{"featureGates", json::array{json::object{{"feature", "ManagedClusterAutoApproval"},
                                                                            {"mode", "Enable"}}}}}}}}};
  must(api_.merge_patch(ocm::cluster_managers, {"", "cluster-manager"}, std::move(patch)));
  settle();
  EXPECT_EQ(condition("c1", ocm::names::accepted), "True/HubClusterAdminAccepted");
}

}  // namespace
}  // namespace hubferry::sim
