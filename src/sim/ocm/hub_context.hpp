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
/// How a step ended: well, or why not.
using Done = kube::Result<void>;
using ObjectCache = kube::Cache<Object>;

/// Holds a deleted ManagedCluster until everything that the hub made for it is gone.
inline constexpr const char* cleanup_finalizer = "cluster.open-cluster-management.io/api-resource-cleanup";

inline constexpr const char* unreachable_taint = "cluster.open-cluster-management.io/unreachable";
inline constexpr const char* unavailable_taint = "cluster.open-cluster-management.io/unavailable";
inline constexpr const char* skip_clock_check_annotation =
    "registration.open-cluster-management.io/skip-clock-sync-check";

/// What the controllers of one hub share: the server, copies of what they look at, and the voice for events.
/// Objects are kept whole: on a simulated server the copies cost nothing, since the store's own objects are shared.
class HubContext {
 public:
  HubContext(kube::Api& server, HubOptions settings, kube::Env environment);

  /// Keeps the caches and writes events, until cancelled.
  Awaitable<> follow();
  Awaitable<> wait_synced();

  /// Tells about a cluster, in its namespace as upstream does. Nothing about one that is being deleted.
  void tell(const Object& cluster, kube::EventType type, std::string_view reason, std::string_view note);
  /// Writes a condition of a ManagedCluster, unless it is as wanted.
  Awaitable<Done> set_condition(Object cluster, kube::Condition condition);
  [[nodiscard]] bool has_works(const std::string& cluster) const;

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
  async::WaitList progress;  // woken when a controller has run out of work
};

/// Who a bare cluster name is, as a key of cluster-scoped objects.
inline Key cluster_key(std::string_view name) {
  return {{}, std::string{name}};
}

bool is_accepted(const Object& cluster);
/// 60 where the cluster does not say.
std::chrono::seconds lease_duration(const Object& cluster);
/// Is the feature gate ManagedClusterAutoApproval on?
bool approves_automatically(const HubContext& hub);

}  // namespace hubferry::sim
