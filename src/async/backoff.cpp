#include "hubferry/async/backoff.hpp"

#include <algorithm>
#include <cmath>

namespace hubferry::async {

namespace {

constexpr double longest_delay = 1e18;  // nanoseconds: thirty years, far from where a Duration ends

}  // namespace

Duration Backoff::next() {
  const TimePoint now = clock_.now();
  if (failures_ > 0 && now >= later(last_attempt_, policy_.reset_after)) failures_ = 0;

  const double most = std::min(static_cast<double>(policy_.most.count()), longest_delay);
  const double growth = std::min(std::pow(policy_.factor, failures_), longest_delay);  // infinity times 0 is no number
  const double grown = std::min(static_cast<double>(policy_.first.count()) * growth, most);
  const double spread = std::min(grown * policy_.jitter, longest_delay);
  ++failures_;
  const Duration least{static_cast<Duration::rep>(grown)};
  const Duration delay = random_.between(least, least + Duration{static_cast<Duration::rep>(spread)});
  last_attempt_ = later(now, delay);
  return delay;
}

Awaitable<> Backoff::pause() {
  return clock_.sleep_for(next());
}

}  // namespace hubferry::async
