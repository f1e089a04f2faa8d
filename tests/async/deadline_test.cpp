#include "hubferry/async/deadline.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "hubferry/async/event.hpp"
#include "hubferry/async/virtual_loop.hpp"

namespace hubferry::async {
namespace {

class DeadlineTest : public testing::Test {
 protected:
  TimePoint in(Duration delay) { return later(clock_.now(), delay); }

  Awaitable<int> answer_after(Duration delay) {
    started_ = true;
    co_await clock_.sleep_for(delay);
    co_return 42;
  }

  /// The exception that `task` ends with, if any.
  template <typename T>
  std::exception_ptr error_of(Awaitable<T> task) {
    try {
      loop_.run(std::move(task));
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  VirtualLoop loop_;
  VirtualClock& clock_ = loop_.clock();
  bool started_ = false;
};

TEST_F(DeadlineTest, ATaskThatIsQuickEnoughReturnsItsValue) {
  EXPECT_EQ(loop_.run(with_deadline(clock_, in(2s), answer_after(1s))), 42);
  EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
}

TEST_F(DeadlineTest, ATaskThatIsTooSlowIsCancelledAndReportedAsATimeout) {
  const auto error = error_of(with_deadline(clock_, in(1s), answer_after(1h)));
  EXPECT_TRUE(is_timeout(error)) << describe(error);
  EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
}

TEST_F(DeadlineTest, ADeadlineThatHasPassedDoesNotEvenStartTheTask) {
  const auto error = error_of(with_deadline(clock_, clock_.now(), answer_after(0s)));
  EXPECT_TRUE(is_timeout(error));
  EXPECT_FALSE(started_);
}

// Both timers fire at the same instant: what has finished has finished.
TEST_F(DeadlineTest, FinishingInTheVeryTurnOfTheDeadlineCounts) {
  EXPECT_EQ(loop_.run(with_deadline(clock_, in(1s), answer_after(1s))), 42);
}

TEST_F(DeadlineTest, TheTasksOwnErrorIsPassedOn) {
  auto fail = [&]() -> Awaitable<> {
    co_await clock_.sleep_for(1s);
    throw std::runtime_error("its own");
  };
  EXPECT_THROW(loop_.run(with_deadline(clock_, in(1min), fail())), std::runtime_error);
  EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
}

TEST_F(DeadlineTest, NeverMeansNoDeadline) {
  EXPECT_EQ(loop_.run(with_deadline(clock_, never, answer_after(10'000h))), 42);
}

TEST_F(DeadlineTest, CancellationFromOutsideIsNotATimeout) {
  std::exception_ptr seen;
  auto test = [&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    auto waiting = [&]() -> Awaitable<> {
      try {
        co_await with_deadline(clock_, in(1h), clock_.sleep_for(2h));
      } catch (...) {
        seen = std::current_exception();
      }
    };
    scope.spawn(waiting());
    co_await clock_.sleep_for(1s);
    scope.stop();
    co_await scope.join();
  };
  loop_.run(test());
  EXPECT_TRUE(is_cancellation(seen)) << describe(seen);
  EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
}

TEST_F(DeadlineTest, AnInnerTimeoutIsDistinctFromAnOuterOne) {
  auto inner = [&]() -> Awaitable<int> {
    try {
      co_await with_deadline(clock_, in(1s), clock_.sleep_for(1h));
    } catch (const boost::system::system_error& e) {
      EXPECT_EQ(e.code(), asio::error::timed_out);
    }
    co_return 7;
  };
  EXPECT_EQ(loop_.run(with_deadline(clock_, in(1min), inner())), 7);
}

TEST_F(DeadlineTest, BeforeDeadlineReturnsTheValueOrNothing) {
  EXPECT_EQ(loop_.run(before_deadline(clock_, in(2s), answer_after(1s))), 42);
  EXPECT_EQ(loop_.run(before_deadline(clock_, in(1s), answer_after(1s))), 42);
  EXPECT_EQ(loop_.run(before_deadline(clock_, never, answer_after(1h))), 42);
  const auto start = clock_.now();
  EXPECT_EQ(loop_.run(before_deadline(clock_, in(1s), answer_after(1h))), std::nullopt);
  EXPECT_EQ(clock_.now() - start, 1s);
}

TEST_F(DeadlineTest, BeforeDeadlineSaysOfATaskWithoutAValueWhetherItFinished) {
  EXPECT_TRUE(loop_.run(before_deadline(clock_, in(2s), clock_.sleep_for(1s))));
  EXPECT_TRUE(loop_.run(before_deadline(clock_, never, clock_.sleep_for(1h))));
  EXPECT_FALSE(loop_.run(before_deadline(clock_, in(1s), clock_.sleep_for(1h))));
  EXPECT_FALSE(loop_.run(before_deadline(clock_, clock_.now(), clock_.sleep_for(0s))));
}

// A timeout further down is an error of the task: only our own deadline is an expected outcome.
TEST_F(DeadlineTest, BeforeDeadlinePassesOnWhatTheTaskThrows) {
  auto fail = [&]() -> Awaitable<> {
    co_await clock_.sleep_for(1s);
    throw std::runtime_error("its own");
  };
  EXPECT_THROW(loop_.run(before_deadline(clock_, in(1min), fail())), std::runtime_error);
  const auto inner = error_of(before_deadline(clock_, in(1min), with_deadline(clock_, in(1s), answer_after(1h))));
  EXPECT_TRUE(is_timeout(inner)) << describe(inner);
}

TEST_F(DeadlineTest, CancellationFromOutsidePassesThroughBeforeDeadline) {
  bool returned = false;
  auto test = [&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    auto waiting = [&]() -> Awaitable<> {
      co_await before_deadline(clock_, in(1h), clock_.sleep_for(2h));
      returned = true;
    };
    scope.spawn(waiting());
    co_await clock_.sleep_for(1s);
    scope.stop();
    co_await scope.join();
  };
  loop_.run(test());
  EXPECT_FALSE(returned);
  EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
}

TEST_F(DeadlineTest, ATimeNearTheEndOfTimeDoesNotOverflow) {
  EXPECT_EQ(later(never, 1h), never);
  EXPECT_EQ(later(TimePoint{}, Duration::max()), never);
}

// A time point that lies a timeout before now is negative on a machine that has just booted.
TEST_F(DeadlineTest, ATimeBeforeZeroDoesNotOverflow) {
  EXPECT_EQ(later(TimePoint{-10min}, 30s), TimePoint{-570s});
  EXPECT_EQ(later(TimePoint{-1s}, Duration::max()), never - 1s);
}

}  // namespace
}  // namespace hubferry::async
