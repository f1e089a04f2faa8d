#include "migration/cut_over_limit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace hubferry::migration {
namespace {

using async::Duration;
using async::TimePoint;
using namespace std::chrono_literals;

/// A target that takes so many clusters at once, each within a time of its own; the others wait there.
class Target {
 public:
  Target(std::size_t at_once, Duration takes) : free_(at_once, TimePoint{}), takes_(takes) {}

  /// As many clusters as the limit allows are always between the hubs.
  void run(CutOverLimit& limit, Duration span) {
    for (const auto end = now_ + span; now_ < end; now_ += 10ms) {
      while (!arrivals_.empty() && arrivals_.front().first <= now_) {
        const auto [at, took] = arrivals_.front();
        arrivals_.pop_front();
        longest_ = std::max(longest_, took);
        ++arrived_;
        limit.arrived(now_, took, true);
      }
      limit.waiting(now_);
      while (arrivals_.size() < limit.limit()) detach();
    }
  }
  /// Forgets what it has seen.
  void begin_anew() { longest_ = {}, arrived_ = 0; }
  void serve_at_once(std::size_t clusters) { free_.assign(clusters, now_); }
  [[nodiscard]] Duration longest() const { return longest_; }
  [[nodiscard]] int arrived() const { return arrived_; }

 private:
  void detach() {
    auto& server = *std::ranges::min_element(free_);
    server = std::max(server, now_) + takes_;
    arrivals_.emplace_back(server, server - now_);
    std::ranges::sort(arrivals_);
  }

  std::vector<TimePoint> free_;
  Duration takes_;
  TimePoint now_{};
  std::deque<std::pair<TimePoint, Duration>> arrivals_;
  Duration longest_{};
  int arrived_ = 0;
};

TEST(CutOverLimit, ATargetGetsAsManyAsItTakesWithoutThemWaitingForLong) {
  CutOverLimit limit;
  Target target{20, 400ms};
  target.run(limit, 30s);
  target.begin_anew();
  target.run(limit, 60s);
  EXPECT_GT(target.arrived(), 2400) << "of 3,000 that it can take in a minute";
  EXPECT_LT(target.longest(), 1500ms);
}

TEST(CutOverLimit, ATargetThatBecomesSlowerGetsFewer) {
  CutOverLimit limit;
  Target target{100, 500ms};
  target.run(limit, 20s);
  const auto before = limit.limit();
  EXPECT_GT(before, 90u);
  target.serve_at_once(5);
  target.run(limit, 5min);
  EXPECT_LT(limit.limit(), 20u);
  EXPECT_GE(limit.limit(), CutOverLimit::least);
}

TEST(CutOverLimit, AgentsThatNeedAMinuteByThemselvesDoNotKeepOthersWaiting) {
  CutOverLimit limit;
  Target target{1000, 60s};
  target.run(limit, 2min);
  EXPECT_GT(target.arrived(), 100);
  EXPECT_GT(limit.limit(), 200u);
}

TEST(CutOverLimit, FewClustersDoNotRaiseTheLimitForMany) {
  CutOverLimit limit;
  TimePoint now{};
  for (int index = 0; index < 200; ++index) limit.arrived(now += 1s, 400ms, false);
  EXPECT_EQ(limit.limit(), CutOverLimit::first);
}

TEST(CutOverLimit, OneSlowAgentAmongQuickOnesSaysNothing) {
  CutOverLimit limit;
  TimePoint now{};
  for (int index = 0; index < 200; ++index) limit.arrived(now += 100ms, index % 5 == 0 ? Duration{30s} : 400ms, true);
  EXPECT_GT(limit.limit(), 100u);
}

}  // namespace
}  // namespace hubferry::migration
