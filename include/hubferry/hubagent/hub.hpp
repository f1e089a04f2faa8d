#pragma once

#include <functional>
#include <memory>
#include <string>

#include "hubferry/async/semaphore.hpp"
#include "hubferry/hubagent/carried_resources.hpp"
#include "hubferry/hubagent/fair_slots.hpp"
#include "hubferry/hubagent/waits.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::hubagent {

/// An API server ends every request by its --request-timeout, 60 s: what it has not done then it does not do.
inline constexpr auto longest_request = std::chrono::seconds{60};

struct HubOptions {
  /// Clusters processed at once, over all migrations.
  std::size_t clusters_in_flight = 50;
  /// How long a request is retried while the server is busy or the write conflicts. Below a third of a phase's timeout,
  /// after which a migration repeats the operation anyway. Then the cluster fails, so that one broken webhook does not
  /// block all other clusters.
  async::Duration busy_timeout = std::chrono::seconds{90};
  /// The same while the hub does not answer; then the operation fails.
  async::Duration unreachable_timeout = std::chrono::seconds{30};
  /// How long an operation waits for what it deleted to be gone. Then the cluster fails, with the finalizers that hold
  /// it, so that one stuck deletion does not hide the results of the others.
  async::Duration deletion_timeout = std::chrono::seconds{60};
  /// How long an operation that deletes clusters, or what was made for them, may take over all its clusters. What is
  /// not finished then fails, and the results of the others are kept. Below the time of one attempt of a migration's
  /// operation (Step::attempt_timeout(), 200 s at least): a caller that gave up would not see them.
  async::Duration operation_timeout = std::chrono::seconds{180};
  /// Validation reviews what our account may do. False where it is not the account that will run the migration.
  bool review_permissions = true;
  /// Users' works that are not copied are reported too, which takes a list of all works of each cluster.
  bool report_staying = true;
  /// Null: default_carried_resources().
  std::shared_ptr<const CarriedResources> carried;
  /// Connects to a managed cluster with its own admin kubeconfig: SourceHub::restart_agents(). Null: never.
  std::function<std::shared_ptr<kube::Api>(const kube::ClientConfig& config)> connect_cluster;
};

/// The permission to process one cluster, released when destroyed; counted in hubferry_hub_clusters_in_flight.
class [[nodiscard]] Slot {
 public:
  Slot() = default;
  Slot(async::Semaphore::Permit permit, obs::Gauge& gauge) : permit_(std::move(permit)), gauge_(&gauge) {
    gauge_->add(1);
  }
  Slot(Slot&& other) noexcept : permit_(std::move(other.permit_)), gauge_(std::exchange(other.gauge_, nullptr)) {}
  Slot& operator=(Slot&& other) noexcept {
    release();
    permit_ = std::move(other.permit_);
    gauge_ = std::exchange(other.gauge_, nullptr);
    return *this;
  }
  ~Slot() { release(); }

  /// Early, by a task that only waits from here on.
  void release() {
    permit_.release();
    if (auto* gauge = std::exchange(gauge_, nullptr)) gauge->add(-1);
  }

 private:
  async::Semaphore::Permit permit_;
  obs::Gauge* gauge_ = nullptr;
};

class SettlingApi;
class HubWideRights;
class SharedLooks;
struct HubWatches;
class KnownClusters;
class ListedConfigs;
class SeenLeases;

/// The writes to a hub that may still take effect: see Hub::settle().
class OpenWrites;
std::shared_ptr<OpenWrites> make_open_writes();

/// One hub, as its operations share it: its API server, a cache of its clusters, and the limits on what is in flight.
/// Lifetime: outlives run() and every operation. Executor: the control loop.
class Hub {
 public:
  /// `open` has the writes of an earlier connection to the same hub; null: there was none.
  Hub(std::string name, std::shared_ptr<kube::Api> api, HubOptions options, kube::Env env,
      std::shared_ptr<OpenWrites> open = nullptr);
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;
  ~Hub();

  /// Watches the hub's clusters until cancelled. Operations that wait for clusters rely on it.
  async::Awaitable<> run();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] kube::Api& api() const;
  /// What may be done on the whole hub, rather than in the namespaces of its clusters.
  [[nodiscard]] HubWideRights& rights() const { return *rights_; }
  /// Lists of the whole hub that several clusters share.
  [[nodiscard]] SharedLooks& looks() const { return *looks_; }
  /// Watches of the whole hub that several clusters share.
  [[nodiscard]] HubWatches& watches() const { return *watches_; }
  [[nodiscard]] kube::Cache<ocm::ManagedCluster>& clusters() { return clusters_; }
  [[nodiscard]] const kube::Cache<ocm::ManagedCluster>& clusters() const { return clusters_; }
  /// Clusters of a source that need not be read again.
  [[nodiscard]] KnownClusters& known_clusters() const { return *known_clusters_; }
  /// Of a source, for first copies.
  [[nodiscard]] ListedConfigs& listed_configs() const { return *listed_configs_; }
  [[nodiscard]] SeenLeases& seen_leases() const { return *seen_leases_; }
  [[nodiscard]] const CarriedResources& carried() const { return *options_.carried; }
  [[nodiscard]] const HubOptions& options() const { return options_; }
  [[nodiscard]] const kube::Env& env() const { return env_; }

  /// Waits for a free slot. First come, first served: operations that take one slot at a time share fairly.
  async::Awaitable<Slot> slot();
  /// Waits until no write of this process to the cluster's objects can take effect any more: one whose answer was not
  /// awaited, or was lost. An operation that deletes the cluster's objects for good waits for that first. Others may
  /// use the slot meanwhile; returns one.
  async::Awaitable<Slot> settle(MigrationRef migration, std::string cluster, Slot slot);
  /// The same for the objects of the migration with this uid, and for `ns`, the namespace that it has acquired.
  async::Awaitable<> settle_own_objects(std::string migration, std::string ns);
  [[nodiscard]] FairSlots& small_watches() { return small_watches_; }
  [[nodiscard]] const std::shared_ptr<Waits>& waits() const { return waits_; }

 private:
  std::string name_;
  HubOptions options_;
  kube::Env env_;
  std::unique_ptr<SettlingApi> api_;
  std::unique_ptr<HubWideRights> rights_;
  std::unique_ptr<SharedLooks> looks_;
  kube::Cache<ocm::ManagedCluster> clusters_;
  std::unique_ptr<HubWatches> watches_;
  std::unique_ptr<KnownClusters> known_clusters_;
  std::unique_ptr<ListedConfigs> listed_configs_;
  std::unique_ptr<SeenLeases> seen_leases_;
  async::Semaphore in_flight_;
  obs::Gauge& in_flight_gauge_;
  FairSlots small_watches_;
  std::shared_ptr<Waits> waits_ = std::make_shared<Waits>();
};

}  // namespace hubferry::hubagent
