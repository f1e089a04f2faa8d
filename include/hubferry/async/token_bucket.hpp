#pragma once

#include "hubferry/async/clock.hpp"

namespace hubferry::async {

/// Limits a rate: `burst` at once, then `per_second`, first come first served. A rate of 0 or less limits nothing.
/// Cancellation: a cancelled waiter returns its token where nobody queues behind it.
class TokenBucket {
 public:
  TokenBucket(Clock& clock, double per_second, double burst);

  /// Takes one token, waiting for it if needed. Returns how long it waited.
  Awaitable<Duration> take();
  /// Takes a token only if there is one now.
  bool try_take();

 private:
  /// When the next token can be had, taking it.
  TimePoint reserve();

  Clock& clock_;
  Duration interval_;   // between two tokens; zero: no limit
  Duration allowance_;  // how far the schedule may lag behind now: the burst
  TimePoint next_;      // when the next token falls due (a virtual schedule: GCRA)
};

}  // namespace hubferry::async
