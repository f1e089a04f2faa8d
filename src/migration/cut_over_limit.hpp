#pragma once

#include <vector>

#include "hubferry/async/clock.hpp"

namespace hubferry::migration {

/// How many clusters may be between two hubs at once on their way to one target: as many as it takes without each of
/// them being without a hub for longer. It begins with few, since what a cut-over takes there is not known yet, and
/// grows as long as they arrive as quickly as they can; it shrinks when they take longer.
///
/// Until a cluster has arrived it grows with time: agents that need a minute by themselves do not keep others waiting.
/// Arrivals are judged in rounds, by their median: an agent that is slow by itself says nothing. No I/O and no clock:
/// the caller says what time it is.
class CutOverLimit {
 public:
  static constexpr std::size_t first = 8;
  static constexpr std::size_t least = 2;
  static constexpr std::size_t most = 1000;

  /// Clusters that may be between hubs.
  [[nodiscard]] std::size_t limit() const { return static_cast<std::size_t>(limit_); }
  /// How long a cut-over takes there is known.
  [[nodiscard]] bool is_known() const { return best_ != async::Duration{0}; }
  /// A cluster that has not arrived by then gives its slot to another one.
  [[nodiscard]] async::Duration longest_turn() const;

  /// A cluster has arrived, so long after it was detached. `all_in_use`: as many as allowed were between hubs. More
  /// than are needed would only hide how many the target takes.
  void arrived(async::TimePoint now, async::Duration took, bool all_in_use);
  /// Clusters wait for a slot, or are between hubs. Called about once a second.
  void waiting(async::TimePoint now);

 private:
  [[nodiscard]] bool is_slow(async::Duration took) const;
  void grow(double by);
  void judge(async::TimePoint now);

  double limit_ = first;
  std::vector<async::Duration> times_;  // of this round
  async::Duration best_{0};             // the usual time of the best round; 0: none yet
  bool all_in_use_ = false;             // at some time in this round
  bool growing_ = true;                 // no round was slow yet: by one with each arrival, then by rounds
  async::TimePoint reduced_{};
  async::TimePoint grown_{};
};

}  // namespace hubferry::migration
