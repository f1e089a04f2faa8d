#pragma once

#include "hubferry/async/clock.hpp"
#include "hubferry/async/random.hpp"

namespace hubferry::async {

/// How long to wait between attempts.
struct BackoffPolicy {
  Duration first = 800ms;
  Duration most = 30s;
  double factor = 2.0;
  /// Each delay is drawn from [delay, delay * (1 + jitter)], so that many clients do not retry in step.
  double jitter = 1.0;
  /// An attempt that has succeeded for this long resets the delay to `first`. The pause before it does not count.
  Duration reset_after = 2min;
};

/// The delays of one retry loop.
class Backoff {
 public:
  Backoff(BackoffPolicy policy, Clock& clock, Random& random) : policy_(policy), clock_(clock), random_(random) {}

  /// The delay before the next attempt; longer each time, up to the policy's most.
  Duration next();
  /// Suspends for next().
  Awaitable<> pause();
  void reset() { failures_ = 0; }
  [[nodiscard]] unsigned failures() const { return failures_; }

 private:
  BackoffPolicy policy_;
  Clock& clock_;
  Random& random_;
  unsigned failures_ = 0;
  TimePoint last_attempt_{};  // begins when the pause is over
};

}  // namespace hubferry::async
