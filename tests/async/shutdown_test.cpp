#include "hubferry/async/shutdown.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "hubferry/async/clock.hpp"

namespace hubferry::async {
namespace {

RealClock real_clock;

ShutdownPolicy quick() {
  return {.grace = 50ms, .unwind = 50ms, .say = [](const std::string& text) { fprintf(stderr, "%s\n", text.c_str()); }};
}

/// What no coroutine should do: keeps its loop for longer than any test lasts.
void hang() {
  std::this_thread::sleep_for(20s);
}

TEST(RunMain, ReturnsTheCodeOfABodyThatEndsByItself) {
  auto body = [](Event&) -> Awaitable<int> { co_return 7; };
  EXPECT_EQ(run_main(body, quick()), 7);
}

TEST(RunMain, PassesOnWhatTheBodyThrows) {
  auto body = [](Event&) -> Awaitable<int> {
    throw std::runtime_error("failed");
    co_return 0;
  };
  EXPECT_THROW(run_main(body, quick()), std::runtime_error);
}

TEST(RunMain, TheFirstSignalStartsAGracefulShutdown) {
  bool orderly = false;
  auto body = [&](Event& stop) -> Awaitable<int> {
    kill(getpid(), SIGTERM);
    co_await stop.wait();
    orderly = true;
    co_return 0;
  };
  EXPECT_EQ(run_main(body, quick()), 0);
  EXPECT_TRUE(orderly);
}

// From a supervisor to the process, and to its group.
TEST(RunMain, TheSameSignalTwiceAtOnceIsOneRequest) {
  for (int round = 0; round < 20; ++round) {
    bool orderly = false;
    auto body = [&](Event& stop) -> Awaitable<int> {
      kill(getpid(), SIGTERM);
      co_await stop.wait();
      kill(getpid(), SIGTERM);
      co_await real_clock.sleep_for(1ms);
      orderly = true;
      co_return 0;
    };
    EXPECT_EQ(run_main(body, quick()), 0);
    EXPECT_TRUE(orderly);
  }
}

// The terminal was closed.
TEST(RunMain, AHangUpStartsAGracefulShutdown) {
  auto body = [](Event& stop) -> Awaitable<int> {
    kill(getpid(), SIGHUP);
    co_await stop.wait();
    co_return 7;
  };
  EXPECT_EQ(run_main(body, quick()), 7);
}

TEST(RunMain, WhatWasStartedWithNohupOutlivesItsTerminal) {
  signal(SIGHUP, SIG_IGN);
  bool stopped = true;
  auto body = [&](Event& stop) -> Awaitable<int> {
    kill(getpid(), SIGHUP);
    co_await real_clock.sleep_for(1ms);
    stopped = stop.is_set();
    co_return 0;
  };
  EXPECT_EQ(run_main(body, quick()), 0);
  signal(SIGHUP, SIG_DFL);
  EXPECT_FALSE(stopped);
}

TEST(RunMain, ABodyThatIgnoresTheSignalIsCancelledAfterTheGracePeriod) {
  auto body = [](Event&) -> Awaitable<int> {
    kill(getpid(), SIGINT);
    co_await real_clock.sleep_for(1h);
    co_return 1;
  };
  EXPECT_EQ(run_main(body, quick()), 0);
}

TEST(RunMainDeathTest, ASecondSignalEndsTheProcessAtOnce) {
  auto run = [] {
    auto body = [](Event& stop) -> Awaitable<int> {
      kill(getpid(), SIGTERM);
      co_await stop.wait();
      kill(getpid(), SIGINT);
      co_await real_clock.sleep_for(1h);
      co_return 0;
    };
    ShutdownPolicy long_grace = quick();
    long_grace.grace = 1h;
    run_main(body, long_grace);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(128 + SIGINT), "exiting at once");
}

// A user who sends a second signal most likely sees the process hang.
TEST(RunMainDeathTest, ASecondSignalEndsAProcessWhoseLoopHangs) {
  auto run = [] {
    auto body = [](Event&) -> Awaitable<int> {
      kill(getpid(), SIGTERM);
      kill(getpid(), SIGINT);
      hang();
      co_return 0;
    };
    ShutdownPolicy long_grace = quick();
    long_grace.grace = 1h;
    run_main(body, long_grace);
  };
  // The two may overtake each other.
  const auto by_signal = [](int status) {
    return testing::ExitedWithCode(128 + SIGINT)(status) || testing::ExitedWithCode(128 + SIGTERM)(status);
  };
  EXPECT_EXIT(run(), by_signal, "exiting at once");
}

TEST(RunMainDeathTest, ALoopThatHangsIsEndedWithCodeOneWhenItsTimeIsUp) {
  auto run = [] {
    auto body = [](Event&) -> Awaitable<int> {
      kill(getpid(), SIGTERM);
      hang();
      co_return 0;
    };
    run_main(body, quick());
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(1), "did not unwind");
}

TEST(RunMainDeathTest, ABodyThatDoesNotEvenUnwindIsEndedWithCodeOne) {
  auto run = [] {
    auto body = [](Event&) -> Awaitable<int> {
      co_await asio::this_coro::throw_if_cancelled(false);
      kill(getpid(), SIGTERM);
      while (true) {
        try {
          co_await real_clock.sleep_for(1ms);
        } catch (const boost::system::system_error&) {
          // deaf on purpose
        }
      }
    };
    run_main(body, quick());
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(1), "did not unwind");
}

}  // namespace
}  // namespace hubferry::async
