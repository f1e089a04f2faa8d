#pragma once

#include <memory>
#include <string>

#include "hubferry/async/semaphore.hpp"
#include "hubferry/hubagent/carried_resources.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::hubagent {

struct HubOptions {
  /// Clusters treated at once, over all migrations.
  std::size_t clusters_in_flight = 50;
  /// How long a call is repeated while the server says "not now". Below a third of a stage, after which a migration
  /// asks again anyway; then the cluster fails, so that one sick webhook does not hold all the others up.
  async::Duration busy_timeout = std::chrono::seconds{90};
  /// The same while nobody answers; then the order fails, since the hub is gone.
  async::Duration unreachable_timeout = std::chrono::seconds{30};
  /// Null: default_carried_resources().
  std::shared_ptr<const CarriedResources> carried;
};

/// The right to treat one cluster, given back when destroyed; counted in hubferry_hub_clusters_in_flight.
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

  /// For those who only wait from here on.
  void release() {
    permit_.release();
    if (auto* gauge = std::exchange(gauge_, nullptr)) gauge->add(-1);
  }

 private:
  async::Semaphore::Permit permit_;
  obs::Gauge* gauge_ = nullptr;
};

/// One hub, as its agents share it: the way to its API server, a cache of its clusters, and the bound on what is in
/// flight there.
/// Lifetime: outlives run() and every order of its agents, who hold it. Executor: the control loop.
class Hub {
 public:
  Hub(std::string name, std::shared_ptr<kube::Api> api, HubOptions options, kube::Env env);
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  /// Follows the hub's clusters until cancelled. Orders that wait for clusters rely on it.
  async::Awaitable<> run() { return clusters_.run(); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] kube::Api& api() const { return *api_; }
  [[nodiscard]] kube::Cache<ocm::ManagedCluster>& clusters() { return clusters_; }
  [[nodiscard]] const CarriedResources& carried() const { return *options_.carried; }
  [[nodiscard]] const HubOptions& options() const { return options_; }
  [[nodiscard]] const kube::Env& env() const { return env_; }

  /// Waits for its turn. First come, first served: an order that asks for one slot at a time shares fairly.
  async::Awaitable<Slot> slot();
  /// Bounds the watches on single objects that are open at once.
  [[nodiscard]] async::Semaphore& small_watches() { return small_watches_; }

 private:
  std::string name_;
  std::shared_ptr<kube::Api> api_;
  HubOptions options_;
  kube::Env env_;
  kube::Cache<ocm::ManagedCluster> clusters_;
  async::Semaphore in_flight_;
  obs::Gauge& in_flight_gauge_;
  async::Semaphore small_watches_;
};

}  // namespace hubferry::hubagent
