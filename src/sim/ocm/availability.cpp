#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/ocm/ensure.hpp"
#include "sim/ocm/hub_controller.hpp"

namespace hubferry::sim {

namespace {

/// A cluster is Unknown after this many lease durations without a heartbeat; its clock is out of sync when it differs
/// by as much.
constexpr int lease_periods = 5;

/// When the lease was last renewed; nothing if it has no valid renewTime.
std::optional<async::WallTime> renew_time(const Object& lease) {
  const auto text = lease.string_at({"spec", "renewTime"});
  if (text.empty()) return std::nullopt;
  try {
    return async::parse_time(text);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

std::string_view available_status(const Object& cluster) {
  const auto* condition = kube::find_condition(cluster, ocm::names::available);
  return condition != nullptr ? kube::string_at(*condition, {"status"}) : std::string_view{};
}

bool was_reviewed(const Object& cluster) {
  return kube::find_condition(cluster, ocm::names::accepted) != nullptr;
}

/// True if the difference concerns this controller.
bool availability_differs(const Object& old, const Object& now) {
  return was_reviewed(old) != was_reviewed(now) || lease_duration(old) != lease_duration(now) ||
         old.is_being_deleted() != now.is_being_deleted() || available_status(old) != available_status(now) ||
         old.uid() != now.uid();
}

/// Creates the lease that an agent renews, and sets Available to Unknown when the lease expires. Only the agent sets it
/// to True.
class Availability final : public HubController {
 public:
  explicit Availability(HubContext& hub) : HubController(hub, "availability") {
    follow(hub.clusters, [this](const Key& key, const auto& old, const auto& now) {
      if (old != nullptr && now != nullptr && available_status(*old) != available_status(*now)) record_change(*now);
      if (now != nullptr && (old == nullptr || availability_differs(*old, *now))) queue_.add(key);
    });
    follow(hub.namespaces, [this](const Key& key, const auto& old, const auto& now) {
      if (old == nullptr && now != nullptr) queue_.add(key);
    });
    follow(hub.leases, [this](const Key& key, const auto&, const auto&) { queue_.add(cluster_key(key.ns)); });
  }

 private:
  Awaitable<Done> reconcile(Key key) override {
    const auto cluster = hub_.clusters.get(key);
    if (cluster == nullptr || !was_reviewed(*cluster)) co_return Done{};
    const auto lease = hub_.leases.get(ocm::lease_key(key.name));
    if (lease == nullptr) {
      if (cluster->is_being_deleted()) {
        auto lost = co_await set_unknown(*cluster);
        co_return lost;
      }
      auto made = co_await create_lease(key.name);
      co_return made;
    }
    const std::chrono::nanoseconds grace = lease_periods * lease_duration(*cluster);
    const auto now = hub_.env.clock.wall_now();
    const auto renewed = renew_time(*lease);
    const auto expiry = renewed ? *renewed + grace : now;
    if (now < expiry) {
      queue_.add_after(key, expiry - now);
      co_return Done{};
    }
    queue_.add_after(key, grace);
    auto lost = co_await set_unknown(*cluster);
    co_return lost;
  }

  Awaitable<Done> create_lease(std::string cluster) {
    json::object lease{{"metadata", json::object{{"name", ocm::names::cluster_lease},
                                                 {"namespace", cluster},
                                                 {"labels", json::object{{ocm::names::cluster_name_label, cluster}}}}},
                       {"spec", json::object{{"holderIdentity", ocm::names::cluster_lease},
                                             {"renewTime", async::format_micro_time(hub_.env.clock.wall_now())}}}};
    const auto space = hub_.namespaces.get(cluster_key(cluster));
    if (space == nullptr || space->is_being_deleted()) co_return Done{};  // reconciled again when it is created
    auto made = co_await ensure_exists(hub_.api, kube::resources::leases, std::move(lease));
    co_return made;
  }

  Awaitable<Done> set_unknown(Object cluster) {
    if (available_status(cluster) == "Unknown") co_return Done{};
    kube::Condition condition{ocm::names::available, kube::ConditionStatus::unknown, "ManagedClusterLeaseUpdateStopped",
                              "Registration agent stopped updating its lease.", 0};
    auto written = co_await hub_.set_condition(cluster, condition);
    co_return written;
  }

  /// One event for each change, by the agent or by the hub.
  void record_change(const Object& cluster) {
    const auto status = available_status(cluster);
    if (status == "True")
      hub_.record_event(cluster, kube::EventType::normal, "Available", "The managed cluster is available");
    else if (status == "False")
      hub_.record_event(cluster, kube::EventType::warning, "Unavailable", "The managed cluster is not available");
    else if (status == "Unknown")
      hub_.record_event(cluster, kube::EventType::warning, "AvailableUnknown",
                        "The managed cluster's registration agent has stopped updating its lease");
  }
};

/// Compares the renewTime of a heartbeat with the hub's clock.
class ClockCheck final : public HubController {
 public:
  explicit ClockCheck(HubContext& hub) : HubController(hub, "clock-check") {
    // Only a heartbeat that arrives now can be compared: a lease from the initial list may be old.
    follow(hub.leases, [this](const Key& key, const auto& old, const auto& now) {
      if (now != nullptr && hub_.leases.synced() && (old == nullptr || renew_time(*old) != renew_time(*now)))
        queue_.add(cluster_key(key.ns));
    });
  }

 private:
  Awaitable<Done> reconcile(Key key) override {
    const auto cluster = hub_.clusters.get(key);
    const auto lease = hub_.leases.get(ocm::lease_key(key.name));
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

std::unique_ptr<HubController> make_availability(HubContext& hub) {
  return std::make_unique<Availability>(hub);
}

std::unique_ptr<HubController> make_clock_check(HubContext& hub) {
  return std::make_unique<ClockCheck>(hub);
}

}  // namespace hubferry::sim
