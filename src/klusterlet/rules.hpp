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

/// Decides whether the connection to the hub is lost, by the age of the last heartbeat that reached it: the renewTime
/// of the cluster's Lease.
class TimeoutRule {
 public:
  /// A hub that comes back still has an old Lease: the heartbeat gets this long to renew it.
  static constexpr Duration grace = std::chrono::seconds{10};

  TimeoutRule(Duration timeout, WallTime started) : timeout_(timeout), started_(started) {}

  /// Takes effect immediately.
  void set_timeout(Duration timeout) { timeout_ = timeout; }
  /// The Lease was read or renewed. Without a renewTime this is the same as missed().
  void saw(std::optional<WallTime> renew_time, WallTime now) {
    if (renew_time)
      last_ = *renew_time;
    else
      missed(now);
  }
  /// The Lease could not be read: the last known renewTime stays; if there is none, the timeout starts now.
  void missed(WallTime now) {
    if (!last_) last_ = now;
  }

  /// True strictly after the last heartbeat plus the timeout, and after the grace period.
  [[nodiscard]] bool expired(WallTime now) const { return last_ && now >= started_ + grace && now > *last_ + timeout_; }
  /// The time until which it cannot have expired.
  [[nodiscard]] WallTime due() const { return std::max(started_ + grace, last_.value_or(started_) + timeout_); }

 private:
  Duration timeout_;
  WallTime started_;
  std::optional<WallTime> last_;
};

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
