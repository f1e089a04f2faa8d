#pragma once

#include "hubferry/kube/work_queue.hpp"
#include "sim/ocm/hub_context.hpp"

namespace hubferry::sim {

/// One controller of a hub: watches add keys to its work queue, and each key is reconciled.
/// Lifetime: `hub` outlives it.
class HubController {
 public:
  HubController(HubContext& hub, const std::string& name);
  HubController(const HubController&) = delete;
  HubController& operator=(const HubController&) = delete;
  virtual ~HubController() = default;

  /// Runs until cancelled. Failed reconciles are requeued with backoff.
  Awaitable<> run();
  [[nodiscard]] bool is_idle() const { return queue_.size() == 0 && queue_.processing() == 0; }

 protected:
  /// Idempotent and level-triggered.
  virtual Awaitable<Done> reconcile(Key key) = 0;

  /// Calls `handler` for each change in `cache`, for the lifetime of this controller.
  void follow(ObjectCache& cache, ObjectCache::Handler handler);

  HubContext& hub_;
  kube::WorkQueue queue_;

 private:
  Awaitable<> work();

  std::string name_;
  std::vector<kube::CacheSubscription> subscriptions_;
};

std::unique_ptr<HubController> make_acceptance(HubContext& hub);
std::unique_ptr<HubController> make_deletion(HubContext& hub);
std::unique_ptr<HubController> make_certificate_approval(HubContext& hub);
std::unique_ptr<HubController> make_availability(HubContext& hub);
std::unique_ptr<HubController> make_clock_check(HubContext& hub);
std::unique_ptr<HubController> make_taints(HubContext& hub);
std::unique_ptr<HubController> make_import(HubContext& hub);
std::unique_ptr<HubController> make_placement(HubContext& hub);

}  // namespace hubferry::sim
