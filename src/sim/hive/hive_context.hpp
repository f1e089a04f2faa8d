#pragma once

#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/work_queue.hpp"
#include "hubferry/sim/hive_controllers.hpp"

namespace hubferry::sim {

/// What Hive's controllers on one hub share.
struct HiveContext {
  using Cache = kube::Cache<kube::Object>;

  HiveContext(kube::Api& server, HiveOptions given, kube::Env environment);

  kube::Awaitable<> follow();
  kube::Awaitable<> wait_synced();
  void record(const std::string& action, const kube::Key& key);

  kube::Api& api;
  HiveOptions options;
  kube::Env env;
  Cache deployments;
  Cache zones;
  Cache pools;
  Cache sync_sets;
  Cache provisions;
  std::vector<std::string> actions;
};

/// What a controller of Hive reads from the annotations of a ClusterDeployment or DNSZone.
enum class HiveRelocation { none, outgoing, incoming, complete, malformed };
HiveRelocation hive_relocation(const HiveContext& hive, const kube::Object& object);
/// controllerutils.IsClusterPausedOrRelocating: the presence of the key is enough.
bool is_paused_or_relocating(const HiveContext& hive, const kube::Object& deployment);
bool is_reconcile_paused(const kube::Object& deployment);

/// One controller: keys and what is done for each. Idempotent, level-triggered.
struct HiveController {
  using Reconcile = std::function<kube::Awaitable<kube::Result<bool>>(HiveContext&, kube::Key)>;

  HiveController(HiveContext& of, const std::string& name, Reconcile how);
  kube::Awaitable<> run();
  /// Adds the key that `map` names for each change of `cache`; an empty name adds none.
  void follow(HiveContext::Cache& cache, std::function<kube::Key(const kube::Object&)> map);

  HiveContext& hive;
  kube::WorkQueue queue;
  Reconcile reconcile;
  std::vector<kube::CacheSubscription> subscriptions;
};

kube::Awaitable<kube::Result<bool>> reconcile_deployment(HiveContext& hive, kube::Key key);
kube::Awaitable<kube::Result<bool>> reconcile_sync(HiveContext& hive, kube::Key key);
kube::Awaitable<kube::Result<bool>> reconcile_pool(HiveContext& hive, kube::Key key);
kube::Awaitable<kube::Result<bool>> reconcile_zone(HiveContext& hive, kube::Key key);
kube::Awaitable<kube::Result<bool>> reconcile_endpoint(HiveContext& hive, kube::Key key);
kube::Awaitable<kube::Result<bool>> reconcile_relocate(HiveContext& hive, kube::Key key);

}  // namespace hubferry::sim
