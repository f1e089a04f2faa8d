#include "migration/deadlines.hpp"

#include <algorithm>

namespace hubferry::migration {

namespace {

// Enough for an operation on a hub that answers; short enough that a hub that does not is soon left.
constexpr Duration longest_guarantee = std::chrono::seconds{10};

// With less, a short timeout would repeat an operation that no server can answer so fast, or not even start it.
constexpr Duration shortest_attempt = std::chrono::seconds{1};

}  // namespace

TimePoint phase_deadline(WallTime started, Duration timeout, const async::Clock& clock) {
  // Times before 1970 come from a status that somebody edited; the span to the earliest would not fit a Duration.
  const auto elapsed = std::max(Duration::zero(), Duration{clock.wall_now() - std::max(started, WallTime{})});
  return async::later(clock.now(), timeout - elapsed);
}

TimeBudget::TimeBudget(async::Clock& clock, WallTime started, Duration timeout, bool guaranteed)
    : clock_(&clock),
      timeout_(timeout),
      attempt_timeout_(std::max(timeout / 3, shortest_attempt)),
      deadline_(phase_deadline(started, timeout, clock)),
      guaranteed_(guaranteed) {}

TimePoint TimeBudget::guaranteed_until() const {
  if (!guaranteed_) return TimePoint{};
  return async::later(clock_->now(), std::min(attempt_timeout(), longest_guarantee));
}

TimeBudget TimeBudget::until(TimePoint earlier) const {
  TimeBudget shorter{*this};
  shorter.deadline_ = std::min(deadline_, earlier);
  return shorter;
}

TimeBudget TimeBudget::one_attempt() const {
  return until(async::later(clock_->now(), attempt_timeout()));
}

TimeBudget TimeBudget::unlimited() const {
  TimeBudget longer{*this};
  longer.deadline_ = async::never;
  longer.attempt_timeout_ = std::max(attempt_timeout_, longest_guarantee);
  return longer;
}

}  // namespace hubferry::migration
