#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "hubferry/async/types.hpp"

/// What an agent concludes from what it sees, as functions of the past: no I/O, no clock.
namespace hubferry::klusterlet {

using async::Duration;
using async::TimePoint;
using async::WallTime;

/// Has the hub been lost? It measures the age of the last heartbeat that reached the hub, by the renewTime in its
/// Lease.
class TimeoutRule {
 public:
  /// A hub that comes back still holds an old Lease: the heartbeat gets this long to renew it.
  static constexpr Duration grace = std::chrono::seconds{10};

  TimeoutRule(Duration timeout, WallTime started) : timeout_(timeout), started_(started) {}

  /// An edit counts at once.
  void set_timeout(Duration timeout) { timeout_ = timeout; }
  /// The Lease was read, or renewed. Without a renewTime it says nothing: the same as missed().
  void saw(std::optional<WallTime> renew_time, WallTime now) {
    if (renew_time)
      last_ = *renew_time;
    else
      missed(now);
  }
  /// The Lease could not be read: what is remembered stays; if that is nothing, the time starts now.
  void missed(WallTime now) {
    if (!last_) last_ = now;
  }

  /// Strictly later than the last heartbeat plus the timeout, and after the grace.
  [[nodiscard]] bool expired(WallTime now) const { return last_ && now >= started_ + grace && now > *last_ + timeout_; }
  /// Until when it cannot be expired.
  [[nodiscard]] WallTime due() const { return std::max(started_ + grace, last_.value_or(started_) + timeout_); }

 private:
  Duration timeout_;
  WallTime started_;
  std::optional<WallTime> last_;
};

/// Is our own cluster available? One failed probe does not make it unavailable: 20 seconds of them do.
class AvailabilityRule {
 public:
  static constexpr Duration patience = std::chrono::seconds{20};
  /// While it fails it is asked this often.
  static constexpr Duration retry = std::chrono::seconds{5};

  void saw(bool healthy, TimePoint now) {
    if (healthy) {
      failing_since_.reset();
      available_ = true;
      return;
    }
    if (!failing_since_) failing_since_ = now;
    if (now - *failing_since_ >= patience) available_ = false;
  }

  /// nullopt: not known, keep whatever was said before.
  [[nodiscard]] std::optional<bool> available() const { return available_; }
  [[nodiscard]] bool failing() const { return failing_since_.has_value(); }

 private:
  std::optional<bool> available_;
  std::optional<TimePoint> failing_since_;
};

}  // namespace hubferry::klusterlet
