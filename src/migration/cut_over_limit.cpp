#include "migration/cut_over_limit.hpp"

#include <algorithm>

namespace hubferry::migration {

namespace {

using async::Duration;
using async::TimePoint;

constexpr std::size_t shortest_round = 8;
constexpr std::size_t longest_round = 25;
/// A median that much above the best one comes from a queue, at the hub or in this process.
constexpr double slower_than_best = 1.5;
constexpr auto tolerated = std::chrono::milliseconds{300};
/// With the least there is hardly a queue: so much of the difference to the best time is taken for the hub's own.
constexpr double learned = 0.1;
constexpr double reduction = 0.6;
constexpr double growth_per_second = 4;
constexpr double growth_per_round = 0.05;  // of the limit, and at least one
constexpr int turns_of_best = 4;
/// Much longer than a queue may become before the limit follows: a slot that is given away too early makes the queue
/// longer.
constexpr auto shortest_turn = std::chrono::minutes{1};
constexpr auto turn_before_first_round = std::chrono::minutes{1};

}  // namespace

Duration CutOverLimit::longest_turn() const {
  if (!is_known()) return turn_before_first_round;
  return std::max<Duration>(shortest_turn, best_ * turns_of_best);
}

void CutOverLimit::arrived(TimePoint now, Duration took, bool all_in_use) {
  // Detached while the limit was higher.
  if (reduced_ != TimePoint{} && now - took < reduced_) return;
  all_in_use_ |= all_in_use;
  if (growing_ && all_in_use && is_known() && !is_slow(took)) grow(1);
  times_.push_back(took);
  if (times_.size() >= std::clamp(limit() / 2, shortest_round, longest_round)) judge(now);
}

void CutOverLimit::waiting(TimePoint now) {
  if (is_known() || !times_.empty() || (grown_ != TimePoint{} && now - grown_ < std::chrono::seconds{1})) return;
  grown_ = now;
  grow(growth_per_second);
}

bool CutOverLimit::is_slow(Duration took) const {
  return took > std::chrono::duration_cast<Duration>(best_ * slower_than_best) + tolerated;
}

void CutOverLimit::grow(double by) {
  limit_ = std::min(static_cast<double>(most), limit_ + by);
}

void CutOverLimit::judge(TimePoint now) {
  const auto middle = times_.begin() + static_cast<std::ptrdiff_t>(times_.size() / 2);
  std::ranges::nth_element(times_, middle);
  const auto usual = std::max(*middle, Duration{1});
  if (!is_known() || usual < best_) best_ = usual;
  if (is_slow(usual)) {
    if (limit() == least) best_ += std::chrono::duration_cast<Duration>((usual - best_) * learned);
    growing_ = false;
    reduced_ = now;
    limit_ = std::max(static_cast<double>(least), limit_ * reduction);
  } else if (!growing_ && all_in_use_) {
    grow(std::max(1.0, limit_ * growth_per_round));
  }
  times_.clear();
  all_in_use_ = false;
}

}  // namespace hubferry::migration
