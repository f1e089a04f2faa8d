#include "hubferry/async/token_bucket.hpp"

#include <algorithm>

namespace hubferry::async {

TokenBucket::TokenBucket(Clock& clock, double per_second, double burst)
    : clock_(clock),
      interval_(per_second > 0 ? Duration{static_cast<Duration::rep>(1e9 / per_second)} : Duration{0}),
      allowance_(
          Duration{static_cast<Duration::rep>(static_cast<double>(interval_.count()) * std::max(burst - 1, 0.0))}),
      next_(clock.now()) {}

TimePoint TokenBucket::reserve() {
  const TimePoint now = clock_.now();
  next_ = std::max(next_, now);
  const TimePoint due = next_ - allowance_;
  next_ += interval_;
  return std::max(due, now);
}

Awaitable<Duration> TokenBucket::take() {
  if (interval_ == Duration{0}) co_return Duration{0};
  const TimePoint start = clock_.now();
  const TimePoint due = reserve();
  if (due <= start) co_return Duration{0};

  const TimePoint mine = next_;
  std::exception_ptr error;
  try {
    co_await clock_.sleep_until(due);
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    if (next_ == mine) next_ -= interval_;
    std::rethrow_exception(error);
  }
  co_return clock_.now() - start;
}

bool TokenBucket::try_take() {
  if (interval_ == Duration{0}) return true;
  if (std::max(next_, clock_.now()) - allowance_ > clock_.now()) return false;
  reserve();
  return true;
}

}  // namespace hubferry::async
