#pragma once

#include "hubferry/async/wait_list.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/event_recorder.hpp"
#include "hubferry/sim/hub_controllers.hpp"

namespace hubferry::sim {

namespace json = kube::json;
using kube::Awaitable;
using kube::Key;
using kube::Object;
/// The result of a reconcile.
using Done = kube::Result<void>;
using ObjectCache = kube::Cache<Object>;

/// Keeps a deleted ManagedCluster until everything that the hub created for it is deleted.
inline constexpr const char* cleanup_finalizer = "cluster.open-cluster-management.io/api-resource-cleanup";

inline constexpr const char* unreachable_taint = "cluster.open-cluster-management.io/unreachable";
inline constexpr const char* unavailable_taint = "cluster.open-cluster-management.io/unavailable";
inline constexpr const char* skip_clock_check_annotation =
    "registration.open-cluster-management.io/skip-clock-sync-check";

/// Names of the import controller's objects.
namespace import_names {

inline std::string bootstrap_account(const std::string& cluster) {
  return cluster + "-bootstrap-sa";
}
inline std::string bootstrap_user(const std::string& cluster) {
  return "system:serviceaccount:" + cluster + ":" + bootstrap_account(cluster);
}
/// The ClusterRoleBinding of that account.
inline std::string bootstrap_binding(const std::string& cluster) {
  return "system:open-cluster-management:managedcluster:bootstrap:" + cluster;
}

}  // namespace import_names

/// What the controllers of one hub share: the API, the caches and the event recorder.
/// Objects are cached undecoded: on a simulated server that costs nothing, since the store's own objects are shared.
class HubContext {
 public:
  HubContext(kube::Api& server, HubOptions settings, kube::Env environment);

  /// Runs the caches and the event recorder until cancelled.
  Awaitable<> follow();
  Awaitable<> wait_synced();

  /// Records an event on a cluster, in its namespace as upstream does. Not for one that is being deleted.
  void record_event(const Object& cluster, kube::EventType type, std::string_view reason, std::string_view message);
  /// Writes a condition of a ManagedCluster unless it is set already.
  Awaitable<Done> set_condition(Object cluster, kube::Condition condition);
  [[nodiscard]] bool has_works(const std::string& cluster) const;
  /// True if the hub has an import controller.
  [[nodiscard]] bool imports() const { return !options.bootstrap_kubeconfig.empty(); }

  kube::Api& api;
  HubOptions options;
  kube::Env env;
  ObjectCache clusters;
  ObjectCache namespaces;  // those of clusters
  ObjectCache leases;      // those of clusters
  ObjectCache works;
  ObjectCache requests;  // CertificateSigningRequests that name a cluster
  ObjectCache managers;
  ObjectCache klusterlet_configs;
  ObjectCache engine_secrets;
  ObjectCache placements;
  ObjectCache decisions;
  kube::EventRecorder events;
  async::WaitList progress;  // woken when a controller becomes idle

 private:
  std::vector<ObjectCache*> caches();
};

/// The key of a cluster-scoped object with the cluster's name.
inline Key cluster_key(std::string_view name) {
  return {{}, std::string{name}};
}

bool is_accepted(const Object& cluster);
/// 60 seconds if the cluster does not set it.
std::chrono::seconds lease_duration(const Object& cluster);
/// True if the feature gate ManagedClusterAutoApproval is on.
bool approves_automatically(const HubContext& hub);

}  // namespace hubferry::sim
