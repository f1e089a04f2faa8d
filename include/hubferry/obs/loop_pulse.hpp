#pragma once

#include <atomic>

#include "hubferry/async/clock.hpp"
#include "hubferry/obs/health.hpp"

namespace hubferry::obs {

/// Tells whether a loop still turns: a liveness check that depends on nothing but the loop.
///
/// run() leaves a time mark on the watched loop at every beat; check() finds out, from whichever thread serves the
/// probes, whether the last mark is too old.
/// Lifetime: must outlive run() and the Health that has its check. Cancellation: ends run().
class LoopPulse {
 public:
  struct Timing {
    async::Duration beat = std::chrono::seconds(1);
    /// Well above any pause that a busy but healthy loop makes: a failure costs a restart.
    async::Duration stuck_after = std::chrono::seconds(30);
  };

  LoopPulse(async::Clock& clock, Timing timing);
  explicit LoopPulse(async::Clock& clock) : LoopPulse(clock, Timing{}) {}

  async::Awaitable<> run();
  [[nodiscard]] Health::Check check() const;

 private:
  void mark() { last_beat_.store(clock_.now()); }

  async::Clock& clock_;
  Timing timing_;
  std::atomic<async::TimePoint> last_beat_;
};

}  // namespace hubferry::obs
