#include "migration/cut_overs.hpp"

namespace hubferry::migration {

CutOvers::CutOvers(obs::Metrics& metrics)
    : gauges_(metrics.gauge_family("hubferry_hub_cut_over_limit",
                                   "Clusters that may be without a hub at once on their way to a target.", {"hub"})) {}

CutOvers::Target::Target(obs::Gauge& gauge) : slots(limit.limit()), gauge(gauge) {
  update();
}

void CutOvers::Target::update() {
  slots.resize(limit.limit());
  gauge.set(static_cast<double>(limit.limit()));
}

CutOvers::Target& CutOvers::target(const std::string& name) {
  const auto found = targets_.find(name);
  return found != targets_.end() ? found->second : targets_.try_emplace(name, gauges_.with({name})).first->second;
}

async::Awaitable<CutOvers::Slot> CutOvers::enter(std::string name, std::string migration) {
  auto& to = target(name);
  auto permit = co_await to.slots.acquire(std::move(migration));
  co_return Slot{to, std::move(permit)};
}

void CutOvers::waiting(const std::string& name, async::TimePoint now) {
  auto& to = target(name);
  to.limit.waiting(now);
  to.update();
}

void CutOvers::Slot::arrived(async::TimePoint now, async::Duration took) {
  if (!counted_) target_->limit.arrived(now, took, target_->slots.all_taken());
  target_->update();
  permit_.release();
}

void CutOvers::Slot::release_if_late(async::TimePoint now, async::Duration takes) {
  if (late_ || takes < target_->limit.longest_turn()) return;
  late_ = true;
  // As an arrival that took so long: a target where nothing arrives any more gets few. Before anything has arrived
  // there, it says nothing.
  counted_ = target_->limit.is_known();
  if (counted_) target_->limit.arrived(now, takes, true);
  target_->update();
  permit_.release();
}

}  // namespace hubferry::migration
