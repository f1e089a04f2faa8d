#include "kube/control/event_correlator.hpp"

#include <gtest/gtest.h>

namespace hubferry::kube {
namespace {

using namespace std::chrono_literals;
using Verdict = EventCorrelator::Verdict;

class EventCorrelatorTest : public testing::Test {
 protected:
  EventCorrelatorTest() { options_.most_known = 10; }

  static Occurrence about(int object) {
    Occurrence occurrence;
    occurrence.regarding.name = "object-" + std::to_string(object);
    occurrence.reason = "Moved";
    occurrence.note = "note";
    return occurrence;
  }
  EventCorrelator::Outcome take(int object) {
    now_ += 1ms;
    return correlator_.take(about(object), now_, async::WallTime{});
  }
  /// As the recorder does once the server has it.
  void take_and_write(int object) {
    const auto outcome = take(object);
    ASSERT_EQ(outcome.verdict, Verdict::write) << object;
    auto* series = correlator_.find(outcome.id);
    series->written = series->count;
  }

  EventRecorderOptions options_;
  EventCorrelator correlator_{options_};
  TimePoint now_{};
};

// A controller of ten thousand objects must not remember each of them until the next sweep.
TEST_F(EventCorrelatorTest, WhateverHappensItRemembersABoundedNumberOfThings) {
  for (int object = 0; object < 1000; ++object) {
    take_and_write(object);
    EXPECT_LE(correlator_.entries(), 3 * options_.most_known);
  }
}

TEST_F(EventCorrelatorTest, TheLeastRecentlyUsedIsForgottenFirst) {
  for (int object = 0; object < 10; ++object) take_and_write(object);
  take_and_write(0);
  take_and_write(10);
  EXPECT_EQ(take(0).verdict, Verdict::write);
  const auto again = take(1);
  EXPECT_EQ(again.verdict, Verdict::write);
  EXPECT_EQ(correlator_.find(again.id)->count, 1) << "a new series: the first one was forgotten";
  EXPECT_EQ(correlator_.find(take(0).id)->count, 4) << "used again and again, so it is kept";
}

// `kubectl describe` shows events without a lastTimestamp in the order of their names.
TEST_F(EventCorrelatorTest, NamesAreInTheOrderOfTheEvents) {
  std::vector<std::string> names;
  for (int event = 0; event < 5; ++event) {
    auto occurrence = about(1);
    occurrence.note = "note " + std::to_string(event);
    // The second and the third at the same moment, the last one after the clock was set back.
    const auto wall = async::WallTime{std::chrono::nanoseconds{event == 2 ? 1001 : event == 4 ? 500 : 1000 + event}};
    const auto outcome = correlator_.take(occurrence, now_, wall);
    names.push_back(correlator_.find(outcome.id)->name);
  }
  EXPECT_EQ(names.front(), "object-1.00000000000003e8")
      << "the time in hexadecimal nanoseconds, as client-go names them";
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << "no two alike";
}

TEST_F(EventCorrelatorTest, ASeriesWithSomethingLeftToWriteIsNotForgotten) {
  for (int object = 0; object < 10; ++object) EXPECT_EQ(take(object).verdict, Verdict::write);
  EXPECT_EQ(take(10).verdict, Verdict::full);
  for (int object = 0; object < 10; ++object) EXPECT_NE(correlator_.find(take(object).id), nullptr);
  EXPECT_LE(correlator_.entries(), 3 * options_.most_known);
}

}  // namespace
}  // namespace hubferry::kube
