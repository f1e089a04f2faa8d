#pragma once

#include <map>
#include <string>

#include "hubferry/hubagent/fair_slots.hpp"
#include "hubferry/obs/metrics.hpp"
#include "migration/cut_over_limit.hpp"

namespace hubferry::migration {

/// The clusters of all migrations that are between two hubs. A cluster is detached only when the target has a slot for
/// it: thousands that are detached at once would all wait there, without a hub. Each target has its own limit, and
/// migrations take turns. Lifetime: outlives its slots. Executor: one loop.
class CutOvers {
  struct Target;

 public:
  explicit CutOvers(obs::Metrics& metrics);

  /// One cluster is between two hubs, until destroyed.
  class [[nodiscard]] Slot {
   public:
    Slot(Target& target, hubagent::FairSlots::Permit permit) : target_(&target), permit_(std::move(permit)) {}

    /// The cluster has joined the target, so long after it was detached.
    void arrived(async::TimePoint now, async::Duration took);
    /// Another cluster gets the slot if this one has taken too long: its agent may be down.
    void release_if_late(async::TimePoint now, async::Duration takes);

   private:
    Target* target_;
    hubagent::FairSlots::Permit permit_;
    bool late_ = false;     // the slot is another cluster's
    bool counted_ = false;  // in the limit
  };

  async::Awaitable<Slot> enter(std::string target, std::string migration);
  /// Clusters wait for the target, or are on their way: called about once a second meanwhile.
  void waiting(const std::string& target, async::TimePoint now);

 private:
  struct Target {
    explicit Target(obs::Gauge& gauge);
    void update();

    CutOverLimit limit;
    hubagent::FairSlots slots;
    obs::Gauge& gauge;
  };

  Target& target(const std::string& name);

  obs::Family<obs::Gauge>& gauges_;
  std::map<std::string, Target> targets_;
};

}  // namespace hubferry::migration
