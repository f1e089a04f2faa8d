#include "hubferry/async/loops.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/task_scope.hpp"
#include "support/real_loop.hpp"

namespace hubferry::async {
namespace {

class LoopsTest : public testing::Test {
 protected:
  // The pool goes last: its loops may hold what the home loop's tasks refer to.
  LoopPool pool_{2};
  RealClock clock_;
  test::RealLoop home_;
};

TEST_F(LoopsTest, WorkRunsOnTheOtherLoopAndItsResultComesHome) {
  auto test = [&]() -> Awaitable<> {
    const auto here = std::this_thread::get_id();
    auto ask = []() -> Awaitable<std::thread::id> { co_return std::this_thread::get_id(); };
    const auto there = co_await run_on(pool_.next(), ask);
    EXPECT_NE(there, here);
    EXPECT_EQ(std::this_thread::get_id(), here);
  };
  home_.run(test());
}

TEST_F(LoopsTest, OnItsOwnLoopItIsAPlainCall) {
  auto test = [&]() -> Awaitable<> {
    auto ask = []() -> Awaitable<std::thread::id> { co_return std::this_thread::get_id(); };
    const auto there = co_await run_on(home_.executor(), ask);
    EXPECT_EQ(there, std::this_thread::get_id());
  };
  home_.run(test());
}

TEST_F(LoopsTest, ErrorsComeHomeToo) {
  auto test = [&]() -> Awaitable<> {
    auto fail = []() -> Awaitable<> {
      throw std::runtime_error("over there");
      co_return;
    };
    std::string message;
    try {
      co_await run_on(pool_.next(), fail);
    } catch (const std::runtime_error& e) {
      message = e.what();
    }
    EXPECT_EQ(message, "over there");
  };
  home_.run(test());
}

TEST_F(LoopsTest, CancellationCrossesOverAndTheCallerWaitsForTheUnwinding) {
  std::atomic<bool> unwound = false;
  auto test = [&]() -> Awaitable<> {
    auto sleep = [&]() -> Awaitable<> {
      try {
        co_await clock_.sleep_for(1h);
      } catch (const boost::system::system_error&) {
        unwound = true;
        throw;
      }
    };
    TaskScope scope{co_await asio::this_coro::executor};
    scope.spawn(run_on(pool_.next(), sleep));
    co_await clock_.sleep_for(5ms);
    scope.stop();
    co_await scope.join();
    EXPECT_TRUE(unwound);
  };
  home_.run(test());
}

// The sender still wakes the home loop up when its result is there already: destroying the loop has to wait for that
// (TSan watches).
TEST_F(LoopsTest, ALoopMayBeDestroyedAsSoonAsItsResultHasArrived) {
  for (int round = 0; round < 300; ++round) {
    test::RealLoop home;
    auto answer = [round]() -> Awaitable<int> { co_return round; };
    EXPECT_EQ(home.run(run_on(pool_.next(), answer)), round);
  }
}

// Results and cancellations meet in every order; nothing may hang, leak or race (TSan watches).
TEST_F(LoopsTest, ManyCrossingsSurviveCancellationAtAnyMoment) {
  int finished = 0;
  auto test = [&]() -> Awaitable<> {
    for (int round = 0; round < 50; ++round) {
      auto work = [&, round](int i) -> Awaitable<int> {
        if ((i + round) % 3 == 0) co_await clock_.sleep_for(std::chrono::microseconds(i * 10));
        co_return i;
      };
      auto ask = [&](int i) -> Awaitable<> {
        auto call = [&work, i] { return work(i); };
        const int answer = co_await run_on(pool_.next(), call);
        EXPECT_EQ(answer, i);
        ++finished;
      };
      TaskScope scope{co_await asio::this_coro::executor};
      for (int i = 0; i < 40; ++i) scope.spawn(ask(i));
      if (round % 2 == 0) co_await clock_.sleep_for(std::chrono::microseconds(round * 5));
      if (round % 4 != 3) scope.stop();
      co_await scope.join();
    }
  };
  home_.run(test());
  EXPECT_GT(finished, 0);
}

}  // namespace
}  // namespace hubferry::async
