#pragma once

#include <cstddef>
#include <vector>

#include "hubferry/async/clock.hpp"

namespace hubferry::hubs {

/// How many requests one hub gets at once, decided by how it answers them: one more while it keeps up, fewer as soon as
/// it refuses requests (429, 503) or answers much later than it can. As TCP does it: additive increase, multiplicative
/// decrease. A hub that is slow by distance is not slowed down further: its own best time is what counts.
///
/// Answers are judged in rounds of some tens of requests, or a second: one slow answer among quick ones says nothing.
/// No I/O and no clock: the caller says what time it is.
class FlowLimit {
 public:
  static constexpr std::size_t least = 4;

  explicit FlowLimit(std::size_t most) : most_(most), limit_(static_cast<double>(most)) {}

  /// Requests that may be in flight.
  [[nodiscard]] std::size_t limit() const { return static_cast<std::size_t>(limit_); }

  /// A request was answered. `all_in_use`: as many as allowed were in flight.
  void answered(async::TimePoint now, async::Duration took, bool all_in_use);
  /// The hub refused a request: it is overloaded.
  void refused(async::TimePoint now);

 private:
  void judge(async::TimePoint now);
  void reduce(async::TimePoint now, double factor);

  std::size_t most_;
  double limit_;
  std::vector<async::Duration> times_;  // of this round
  async::TimePoint round_began_{};
  bool all_in_use_ = false;  // at some time in this round
  async::Duration best_{0};  // the usual time of the best round; 0: none yet
  async::TimePoint reduced_{};
};

}  // namespace hubferry::hubs
