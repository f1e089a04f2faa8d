#include "hubferry/async/backoff.hpp"

#include <algorithm>
#include <cmath>

namespace hubferry::async {

Duration Backoff::next() {
  const TimePoint now = clock_.now();
  if (failures_ > 0 && now - last_failure_ >= policy_.reset_after) failures_ = 0;
  last_failure_ = now;

  const double grown = static_cast<double>(policy_.first.count()) * std::pow(policy_.factor, failures_);
  const double capped = std::min(grown, static_cast<double>(policy_.most.count()));
  ++failures_;
  const Duration delay{static_cast<Duration::rep>(capped)};
  return random_.between(delay, delay + Duration{static_cast<Duration::rep>(capped * policy_.jitter)});
}

Awaitable<> Backoff::pause() {
  return clock_.sleep_for(next());
}

}  // namespace hubferry::async
