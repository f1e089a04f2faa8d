#pragma once

#include "hubferry/async/clock.hpp"

namespace hubferry::migration {

using async::Duration;
using async::TimePoint;
using async::WallTime;

/// When a phase that started at `started` has to end, on the clock that measures deadlines. A start in the future
/// (somebody set a clock back) counts as now.
TimePoint phase_deadline(WallTime started, Duration timeout, const async::Clock& clock);

/// The time that a step has: until the deadline of its phase, or a part of it. A value.
class TimeBudget {
 public:
  /// `guaranteed`: every operation is attempted, if only once and briefly, even if the time is up. That holds for
  /// Rollbacking and Cleaning, which nothing may keep from their work.
  TimeBudget(async::Clock& clock, WallTime started, Duration timeout, bool guaranteed);

  [[nodiscard]] TimePoint deadline() const { return deadline_; }
  [[nodiscard]] bool is_over() const { return clock_->now() >= deadline_; }
  /// The timeout of the whole phase.
  [[nodiscard]] Duration timeout() const { return timeout_; }
  /// How long one attempt of an operation may take before the operation is repeated: a third of the phase's timeout, at
  /// least a second.
  [[nodiscard]] Duration attempt_timeout() const { return attempt_timeout_; }
  /// Until when an operation that begins now is attempted even if the time is up; the earliest time where it is not.
  [[nodiscard]] TimePoint guaranteed_until() const;

  [[nodiscard]] TimeBudget until(TimePoint earlier) const;
  /// Long enough for one attempt.
  [[nodiscard]] TimeBudget one_attempt() const;
  /// Without a deadline: for what must be recorded before anything else happens.
  [[nodiscard]] TimeBudget unlimited() const;

 private:
  async::Clock* clock_;
  Duration timeout_;
  Duration attempt_timeout_;
  TimePoint deadline_;
  bool guaranteed_;
};

}  // namespace hubferry::migration
