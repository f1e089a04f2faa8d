#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "hubferry/async/types.hpp"

/// Decisions of an agent as pure functions of what it has observed: no I/O, no clock.
namespace hubferry::klusterlet {

using async::Duration;
using async::TimePoint;
using async::WallTime;

/// Decides whether the connection to the hub is lost: no heartbeat has reached it for longer than the timeout.
///
/// On the monotonic clock, and by our own requests only: neither a step of the wall clock nor an old Lease on a hub
/// that comes back looks like a lost connection.
class TimeoutRule {
 public:
  TimeoutRule(Duration timeout, TimePoint started) : timeout_(timeout), last_(started) {}

  /// Takes effect immediately.
  void set_timeout(Duration timeout) { timeout_ = timeout; }
  /// A heartbeat that was sent at this time reached the hub.
  void reached(TimePoint sent) { last_ = std::max(last_, sent); }

  /// True strictly after the last heartbeat, or the start, plus the timeout.
  [[nodiscard]] bool expired(TimePoint now) const { return now > due(); }
  /// The time until which it cannot have expired.
  [[nodiscard]] TimePoint due() const { return async::later(last_, timeout_); }

 private:
  Duration timeout_;
  TimePoint last_;
};

/// The interval of heartbeats: what the hub asks for, but at least three within the timeout after which it is left.
inline Duration heartbeat_period(Duration lease_duration, Duration connection_timeout) {
  return std::min(lease_duration, connection_timeout / 3);
}

/// Decides whether our own cluster is available: not one failed probe, but 20 seconds of them make it unavailable.
class AvailabilityRule {
 public:
  static constexpr Duration failure_threshold = std::chrono::seconds{20};
  /// Interval of probes while they fail.
  static constexpr Duration retry = std::chrono::seconds{5};

  void saw(bool healthy, TimePoint now) {
    if (healthy) {
      failing_since_.reset();
      available_ = true;
      return;
    }
    if (!failing_since_) failing_since_ = now;
    if (now - *failing_since_ >= failure_threshold) available_ = false;
  }

  /// nullopt: not known yet, keep the last reported value.
  [[nodiscard]] std::optional<bool> available() const { return available_; }
  [[nodiscard]] bool failing() const { return failing_since_.has_value(); }

 private:
  std::optional<bool> available_;
  std::optional<TimePoint> failing_since_;
};

}  // namespace hubferry::klusterlet
