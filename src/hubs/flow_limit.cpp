#include "hubs/flow_limit.hpp"

#include <algorithm>

namespace hubferry::hubs {

namespace {

constexpr std::size_t answers_of_a_round = 50;
constexpr auto longest_round = std::chrono::seconds{1};
/// Answers that take this much longer than the best come from a queue in the server.
constexpr int slower_than_best = 3;
/// Below this nothing is concluded: so much comes and goes with the server's garbage collection.
constexpr auto tolerated = std::chrono::milliseconds{50};
/// The best time is forgotten at this rate per round: a hub may become slower for good.
constexpr double forgotten = 0.01;
/// Requests that were sent before a reduction are still answered, or refused, after it.
constexpr auto pause_after_reduction = std::chrono::milliseconds{500};

}  // namespace

void FlowLimit::answered(async::TimePoint now, async::Duration took, bool all_in_use) {
  if (times_.empty()) round_began_ = now;
  times_.push_back(took);
  all_in_use_ |= all_in_use;
  if (times_.size() >= answers_of_a_round || now - round_began_ >= longest_round) judge(now);
}

void FlowLimit::refused(async::TimePoint now) {
  reduce(now, 0.5);
}

void FlowLimit::reduce(async::TimePoint now, double factor) {
  times_.clear();
  all_in_use_ = false;
  if (reduced_ != async::TimePoint{} && now - reduced_ < pause_after_reduction) return;
  reduced_ = now;
  limit_ = std::max(static_cast<double>(least), limit_ * factor);
}

void FlowLimit::judge(async::TimePoint now) {
  const auto middle = times_.begin() + static_cast<std::ptrdiff_t>(times_.size() / 2);
  std::ranges::nth_element(times_, middle);
  const auto usual = *middle;
  if (best_ == async::Duration{0} || usual < best_)
    best_ = usual;
  else
    best_ += std::chrono::duration_cast<async::Duration>((usual - best_) * forgotten);
  if (usual > best_ * slower_than_best + tolerated) return reduce(now, 0.8);
  // More than are needed would only hide how many the hub can take.
  if (all_in_use_) limit_ = std::min(static_cast<double>(most_), limit_ + 1);
  times_.clear();
  all_in_use_ = false;
}

}  // namespace hubferry::hubs
