#include "hubferry/async/clock.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "hubferry/async/random.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "support/real_loop.hpp"

namespace hubferry::async {
namespace {

TEST(VirtualClock, SleepersWakeInTheOrderOfTimeThenOfCalling) {
  VirtualLoop loop;
  std::string order;
  auto sleeper = [&](Duration delay, char name) -> Awaitable<> {
    co_await loop.clock().sleep_for(delay);
    order += name;
  };
  auto test = [&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    scope.spawn(sleeper(2s, 'c'));
    scope.spawn(sleeper(1s, 'a'));
    scope.spawn(sleeper(1s, 'b'));
    scope.spawn(sleeper(3s, 'd'));
    co_await scope.join();
  };
  loop.run(test());
  EXPECT_EQ(order, "abcd");
}

TEST(VirtualClock, RunForLetsExactlyThatMuchTimePass) {
  VirtualLoop loop;
  int beats = 0;
  auto heart = [&]() -> Awaitable<> {
    while (true) {
      co_await loop.clock().sleep_for(1min);
      ++beats;
    }
  };
  asio::co_spawn(loop.executor(), heart(), [](std::exception_ptr) {});
  loop.run_for(1h);
  EXPECT_EQ(beats, 60);
  EXPECT_EQ(loop.clock().now() - TimePoint{}, 1h);
  EXPECT_EQ(format_time(loop.clock().wall_now()), "2030-01-01T01:00:00Z");
}

TEST(VirtualClock, WallTimeCanBeShiftedWithoutDisturbingDelays) {
  VirtualLoop loop;
  loop.clock().skew_wall(-1h);
  loop.run(loop.clock().sleep_for(1s));
  EXPECT_EQ(format_time(loop.clock().wall_now()), "2029-12-31T23:00:01Z");
  EXPECT_EQ(loop.clock().now() - TimePoint{}, 1s);
}

/// A little world of tasks that draw their delays by chance; what it did, as text.
std::string timeline(std::uint64_t seed) {
  VirtualLoop loop;
  Random random{seed};
  std::string text;
  auto worker = [&](int me) -> Awaitable<> {
    for (int i = 0; i < 20; ++i) {
      co_await loop.clock().sleep_for(random.between(1ms, 10s));
      text += std::to_string(me) + "@" + std::to_string(loop.clock().now().time_since_epoch().count()) + " ";
    }
  };
  auto test = [&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    for (int i = 0; i < 10; ++i) scope.spawn(worker(i));
    co_await scope.join();
  };
  loop.run(test());
  return text + std::to_string(loop.steps());
}

TEST(VirtualLoop, OneSeedGivesOneTimeline) {
  EXPECT_EQ(timeline(7), timeline(7));
  EXPECT_NE(timeline(7), timeline(8));
}

// Frames that are still suspended go with the loop; owners within them are not to blame for not having joined.
TEST(VirtualLoop, DestroyingALoopWithSuspendedTasksIsQuiet) {
  bool destroyed = false;
  struct Note {
    bool& flag;
    ~Note() { flag = true; }
  };
  {
    VirtualLoop loop;
    auto owner = [&]() -> Awaitable<> {
      Note note{destroyed};
      TaskScope scope{co_await asio::this_coro::executor};
      scope.spawn(loop.clock().sleep_for(1h));
      co_await scope.join();
    };
    asio::co_spawn(loop.executor(), owner(), [](std::exception_ptr) {});
    loop.run_for(1s);
  }
  EXPECT_TRUE(destroyed);
}

TEST(RealClock, SleepsAndCanBeCancelled) {
  test::RealLoop loop;
  RealClock clock;
  auto test = [&]() -> Awaitable<> {
    co_await clock.sleep_for(1ms);
    TaskScope scope{co_await asio::this_coro::executor};
    scope.spawn(clock.sleep_until(never));
    scope.spawn(clock.sleep_for(1h));
    co_await clock.sleep_for(1ms);
    scope.stop();
    co_await scope.join();
  };
  loop.run(test());
}

/// What try_sleep_until() returned, of an hour's sleep that is cancelled after a moment; nothing if it threw.
Awaitable<std::optional<bool>> try_to_sleep(Clock& clock) {
  std::optional<bool> slept;
  TaskScope scope{co_await asio::this_coro::executor};
  auto sleeper = [&]() -> Awaitable<> { slept = co_await clock.try_sleep_until(later(clock.now(), 1h)); };
  scope.spawn(sleeper());
  co_await clock.sleep_for(1ms);
  scope.stop();
  co_await scope.join();
  co_return slept;
}

TEST(Clock, ATrySleepThatIsCancelledReturnsFalseAndThrowsNothing) {
  VirtualLoop loop;
  EXPECT_EQ(loop.run(try_to_sleep(loop.clock())), false);
  EXPECT_TRUE(loop.run(loop.clock().try_sleep_until(later(loop.clock().now(), 1s))));
  EXPECT_TRUE(loop.run(loop.clock().try_sleep_until(loop.clock().now())));
  test::RealLoop real_loop;
  RealClock clock;
  EXPECT_EQ(real_loop.run(try_to_sleep(clock)), false);
}

TEST(TimeText, RoundTripsWhatKubernetesWrites) {
  for (const std::string text : {"2026-11-16T00:39:45Z", "1970-01-01T00:00:00Z", "2030-02-28T23:59:59Z"})
    EXPECT_EQ(format_time(parse_time(text)), text);
  EXPECT_EQ(format_micro_time(parse_time("2026-11-16T00:39:45.123456Z")), "2026-11-16T00:39:45.123456Z");
  EXPECT_EQ(format_time(parse_time("2026-11-16T02:39:45+02:00")), "2026-11-16T00:39:45Z");
  EXPECT_EQ(parse_time("2026-11-16T00:39:45.5Z") - parse_time("2026-11-16T00:39:45Z"), 500ms);
}

TEST(TimeText, TimesBeyondTheRangeOfTheClockSaturate) {
  EXPECT_EQ(parse_time("0001-01-01T00:00:00Z"), WallTime::min());
  EXPECT_EQ(parse_time("9999-12-31T23:59:59Z"), WallTime::max());
}

TEST(TimeText, RefusesWhatIsNoTimeAndNamesIt) {
  for (const std::string text : {"", "yesterday", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00",
                                 "2026-01-01T24:00:00Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00Zz"}) {
    try {
      parse_time(text);
      ADD_FAILURE() << "accepted " << text;
    } catch (const std::invalid_argument& e) {
      EXPECT_NE(std::string{e.what()}.find("'" + text + "'"), std::string::npos) << e.what();
    }
  }
}

TEST(DurationText, ReadsWhatGoUsersType) {
  EXPECT_EQ(parse_duration("10s"), 10s);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("5us"), 5us);
  EXPECT_EQ(parse_duration("-5s"), -5s);
  EXPECT_EQ(parse_duration("0"), 0s);
  for (const std::string text : {"", "10", "s", "5x", "1h-3m", "--1s", "1e400s", "99999999999h", "10 s", "nans",
                                 "-nanms", "1hnans", "nan(1)s", "infs"})
    EXPECT_THROW(parse_duration(text), std::invalid_argument) << text;
}

TEST(DurationText, WritesWhatItReads) {
  for (const std::string text : {"10s", "1h30m", "250ms", "5us", "1m0.5s", "0s", "-5s", "2h", "7ns"})
    EXPECT_EQ(format_duration(parse_duration(text)), text);
}

// Sixty seconds are a minute, also when it takes rounding to get there.
TEST(DurationText, RoundsToMillisecondsBeforeItSplits) {
  EXPECT_EQ(format_duration(59'999'600us), "1m");
  EXPECT_EQ(format_duration(1min + 59'999'600us), "2m");
  EXPECT_EQ(format_duration(59min + 59'999'600us), "1h");
  EXPECT_EQ(format_duration(1h + 100us), "1h");
  EXPECT_EQ(format_duration(1'000'400us), "1s");
}

// What a subtraction gives for something that never happened ends up in a log line, too.
TEST(DurationText, WritesTheShortestAndTheLongestThereIs) {
  EXPECT_EQ(format_duration(Duration::max()), "2562047h47m16.855s");
  EXPECT_EQ(format_duration(Duration::min()), "-2562047h47m16.855s");
}

TEST(Random, IsTheSameEverywhereForOneSeed) {
  Random random{42};
  EXPECT_EQ(random.next(), 1546998764402558742u);
  EXPECT_EQ(random.next(), 6990951692964543102u);
  EXPECT_EQ(random.suffix(), Random{[] {
                               Random copy{42};
                               copy.next();
                               copy.next();
                               return copy;
                             }()}
                                 .suffix());
}

TEST(Random, DrawsStayWithinTheirBounds) {
  Random random{3};
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_LT(random.below(7), 7u);
    const auto delay = random.between(1s, 2s);
    EXPECT_GE(delay, 1s);
    EXPECT_LE(delay, 2s);
    const auto fraction = random.fraction();
    EXPECT_GE(fraction, 0.0);
    EXPECT_LT(fraction, 1.0);
  }
  EXPECT_EQ(random.below(0), 0u);
  EXPECT_EQ(random.between(5s, 5s), 5s);
  EXPECT_EQ(random.uuid().size(), 36u);
  EXPECT_EQ(random.uuid()[14], '4');
  EXPECT_EQ(random.suffix(8).size(), 8u);
}

}  // namespace
}  // namespace hubferry::async
