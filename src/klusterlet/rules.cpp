#include "hubferry/klusterlet/rules.hpp"

#include <algorithm>

namespace hubferry::klusterlet {

void TimeoutRule::saw(std::optional<WallTime> renew_time, WallTime now) {
  if (renew_time)
    last_ = *renew_time;
  else
    missed(now);
}

void TimeoutRule::missed(WallTime now) {
  if (!last_) last_ = now;
}

bool TimeoutRule::expired(WallTime now) const {
  return last_ && now >= started_ + grace && now > *last_ + timeout_;
}

WallTime TimeoutRule::due() const {
  return std::max(started_ + grace, last_.value_or(started_) + timeout_);
}

void AvailabilityRule::saw(bool healthy, TimePoint now) {
  if (healthy) {
    failing_since_.reset();
    available_ = true;
    return;
  }
  if (!failing_since_) failing_since_ = now;
  if (now - *failing_since_ >= patience) available_ = false;
}

}  // namespace hubferry::klusterlet
