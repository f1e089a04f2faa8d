#pragma once

#include "hubferry/async/clock.hpp"
#include "hubferry/async/semaphore.hpp"

namespace hubferry::async {

/// Limits a rate: `burst` at once, then `per_second`, first come first served. A rate of 0 or less limits nothing.
/// Cancellation: a cancelled waiter has taken nothing; those behind it move up.
class TokenBucket {
 public:
  TokenBucket(Clock& clock, double per_second, double burst);

  /// Takes one token, waiting for it if needed. Returns how long it waited.
  Awaitable<Duration> take();
  /// Takes a token only if one is available now and there are no waiters.
  bool try_take();

 private:
  Clock& clock_;
  Duration interval_;   // between two tokens; zero: no limit
  Duration allowance_;  // how far the schedule may lag behind now: the burst
  TimePoint next_;      // when the next token falls due (a virtual schedule: GCRA)
  std::size_t waiting_ = 0;
  Semaphore turns_{1};  // held by the first waiter
};

}  // namespace hubferry::async
