#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/ocm/cluster_names.hpp"
#include "sim/ocm/hub_controller.hpp"
#include "sim/ocm/lease_time.hpp"

namespace hubferry::sim {

namespace {

/// Compares the time that a heartbeat carries with the hub's own.
class ClockCheck final : public HubController {
 public:
  explicit ClockCheck(HubContext& hub) : HubController(hub, "clock-check") {
    // Only a heartbeat that arrives now says something about clocks: a lease that was found at the start may be old.
    follow(hub.leases, [this](const Key& key, const auto& old, const auto& now) {
      if (now != nullptr && hub_.leases.synced() && (old == nullptr || renew_time(*old) != renew_time(*now)))
        queue_.add(cluster_key(key.ns));
    });
  }

 private:
  Awaitable<Done> reconcile(Key key) override {
    const auto cluster = hub_.clusters.get(key);
    const auto lease = hub_.leases.get(lease_key(key.name));
    const auto renewed = lease != nullptr ? renew_time(*lease) : std::nullopt;
    if (cluster == nullptr || cluster->is_being_deleted() || !renewed) co_return Done{};
    const std::chrono::nanoseconds limit = lease_periods * lease_duration(*cluster);
    const auto off = std::chrono::abs(hub_.env.clock.wall_now() - *renewed);
    const bool in_step = off < limit || cluster->annotation(skip_clock_check_annotation) == "true";
    kube::Condition condition{ocm::names::clock_synced, kube::ConditionStatus::yes, "ManagedClusterClockSynced",
                              "The clock of the managed cluster is synced with the hub.", 0};
    if (!in_step) {
      condition.status = kube::ConditionStatus::no;
      condition.reason = "ManagedClusterClockOutOfSync";
      condition.message = "The clocks of the hub and of the agent differ by more than the lease allows.";
    }
    const auto* present = kube::find_condition(*cluster, ocm::names::clock_synced);
    if (present != nullptr && kube::string_at(*present, {"reason"}) == condition.reason) co_return Done{};
    auto written = co_await hub_.set_condition(*cluster, condition);
    co_return written;
  }
};

}  // namespace

std::unique_ptr<HubController> make_clock_check(HubContext& hub) {
  return std::make_unique<ClockCheck>(hub);
}

}  // namespace hubferry::sim
