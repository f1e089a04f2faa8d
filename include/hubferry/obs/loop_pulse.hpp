#pragma once

#include <atomic>

#include "hubferry/async/clock.hpp"
#include "hubferry/obs/health.hpp"

namespace hubferry::obs {

/// Checks whether a loop still makes progress: a liveness check that depends on nothing but the loop.
///
/// run() records the time of every beat on the watched loop; check() compares the last beat with the clock, on
/// whichever thread serves the probes.
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
  void beat() { last_beat_.store(clock_.now()); }

  async::Clock& clock_;
  Timing timing_;
  std::atomic<async::TimePoint> last_beat_;
};

}  // namespace hubferry::obs
