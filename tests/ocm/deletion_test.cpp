// How clusters leave a hub with an import controller.
#include "ocm/behaviour.hpp"

namespace hubferry::behaviour {

// Recorded: delete-managedcluster-on-old-hub.
TEST_P(ImportBehaviour, ADeniedClusterIsDeletedWithItsWorksAndItsNamespace) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_prepared_cluster(hub1());
    // As an agent that is gone has left it.
    auto held = co_await add_finalizer(hub1(), ocm::manifest_works, Key{name, name + "-klusterlet"},
                                       names::work_cleanup_finalizer);
    CO_ASSERT_TRUE(held.has_value());
    co_await set_accepted(hub1(), name, false);
    auto removed = co_await hub1().remove(ocm::managed_clusters, Key{{}, name});
    CO_ASSERT_TRUE(removed.has_value());
    auto gone = [&]() -> Awaitable<bool> {
      auto there = co_await exists(hub1(), ocm::managed_clusters, Key{{}, name});
      co_return !there;
    };
    co_await becomes("the ManagedCluster is gone", facts::cluster_deleted, gone);
    auto emptied = [&]() -> Awaitable<bool> {
      auto there = co_await exists(hub1(), resources::namespaces, Key{{}, name});
      co_return !there;
    };
    co_await becomes("its namespace is gone", facts::namespace_deleted, emptied);
  });
}

// Recorded: delete-with-hive.
TEST_P(ImportBehaviour, ANamespaceIsKeptAsLongAsItHoldsAClusterDeployment) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_prepared_cluster(hub1());
    json::object deployment{{"metadata", json::object{{"name", name}, {"namespace", name}}},
                            {"spec", json::object{{"clusterName", name},
                                                  {"baseDomain", "example.com"},
                                                  {"installed", true},
                                                  {"preserveOnDelete", true},
                                                  {"pullSecretRef", json::object{{"name", "pull"}}},
                                                  {"platform", json::object{{"none", json::object{}}}}}}};
    co_await make(hub1(), ocm::cluster_deployments, std::move(deployment));
    auto removed = co_await hub1().remove(ocm::managed_clusters, Key{{}, name});
    CO_ASSERT_TRUE(removed.has_value());
    auto gone = [&]() -> Awaitable<bool> {
      auto there = co_await exists(hub1(), ocm::managed_clusters, Key{{}, name});
      co_return !there;
    };
    const bool deleted = co_await becomes("the ManagedCluster is gone", facts::cluster_deleted, gone);
    CO_ASSERT_TRUE(deleted);
    auto kept = [&]() -> Awaitable<bool> {
      auto space = co_await find(hub1(), resources::namespaces, Key{{}, name});
      co_return space.has_value() && !space->is_being_deleted();
    };
    co_await stays("its namespace", 2 * facts::watched, kept);
    auto freed = co_await hub1().remove(ocm::cluster_deployments, Key{name, name});
    CO_ASSERT_TRUE(freed.has_value());
    auto emptied = [&]() -> Awaitable<bool> {
      auto there = co_await exists(hub1(), resources::namespaces, Key{{}, name});
      co_return !there;
    };
    co_await becomes("its namespace is gone", facts::held_namespace_deleted, emptied);
  });
}

}  // namespace hubferry::behaviour
