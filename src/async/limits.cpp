#include <algorithm>
#include <cmath>

#include "hubferry/async/backoff.hpp"
#include "hubferry/async/semaphore.hpp"
#include "hubferry/async/token_bucket.hpp"

// What limits concurrency and rates: Semaphore, TokenBucket, Backoff.
namespace hubferry::async {

namespace {

/// Clamped to thirty years, for rates close to zero and unlimited bursts.
Duration bounded_nanoseconds(double count) {
  return Duration{static_cast<Duration::rep>(std::min(1e18, count))};
}

}  // namespace

TokenBucket::TokenBucket(Clock& clock, double per_second, double burst)
    : clock_(clock),
      interval_(per_second > 0 ? bounded_nanoseconds(1e9 / per_second) : Duration{0}),
      allowance_(bounded_nanoseconds(static_cast<double>(interval_.count()) * std::max(burst - 1, 0.0))),
      next_(clock.now()) {}

Awaitable<Duration> TokenBucket::take() {
  if (try_take()) co_return Duration{0};
  const TimePoint start = clock_.now();
  struct Waiting {
    std::size_t& count;
    explicit Waiting(std::size_t& waiting) : count(waiting) { ++count; }
    ~Waiting() { --count; }
  };
  const Waiting waiting{waiting_};
  // Only the first waiter waits for the token itself, so a waiter that gives up earlier has taken nothing.
  const auto turn = co_await turns_.acquire();
  co_await clock_.sleep_until(next_ - allowance_);
  next_ = later(next_, interval_);
  co_return clock_.now() - start;
}

bool TokenBucket::try_take() {
  if (interval_ == Duration{0}) return true;
  if (waiting_ > 0) return false;
  const TimePoint now = clock_.now();
  next_ = std::max(next_, now);
  if (next_ - allowance_ > now) return false;
  next_ = later(next_, interval_);
  return true;
}

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

Awaitable<Semaphore::Permit> Semaphore::acquire() {
  if (free_ == promised_ || !waiters_.empty()) {
    co_await waiters_.wait();
    --promised_;
  }
  --free_;
  co_return Permit{this};
}

void Semaphore::give_back() {
  ++free_;
  if (waiters_.wake_one()) ++promised_;
}

}  // namespace hubferry::async
