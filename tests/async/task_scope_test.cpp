#include "hubferry/async/task_scope.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/event.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "support/coroutine_test.hpp"

namespace hubferry::async {
namespace {

class TaskScopeTest : public testing::Test {
 protected:
  template <typename Body>
  void run(Body body) {
    loop_.run(body());
  }

  Awaitable<> sleep_then_throw(Duration delay, std::string message) {
    co_await clock_.sleep_for(delay);
    throw std::runtime_error(message);
  }

  Awaitable<> sleep_and_note_cancellation(bool& cancelled) {
    try {
      co_await clock_.sleep_for(1h);
    } catch (const boost::system::system_error&) {
      cancelled = true;
      throw;
    }
  }

  VirtualLoop loop_;
  VirtualClock& clock_ = loop_.clock();
};

TEST_F(TaskScopeTest, JoinWaitsForAllChildren) {
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    scope.spawn(clock_.sleep_for(1s));
    scope.spawn(clock_.sleep_for(3s));
    scope.spawn(clock_.sleep_for(2s));
    EXPECT_EQ(scope.running(), 3u);
    co_await scope.join();
    EXPECT_EQ(clock_.now() - TimePoint{}, 3s);
  });
}

TEST_F(TaskScopeTest, JoinOfAnEmptyScopeReturnsAtOnce) {
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    co_await scope.join();
    EXPECT_EQ(clock_.now(), TimePoint{});
  });
}

// The siblings' own "cancelled" errors come later and must not hide why it all ended.
TEST_F(TaskScopeTest, TheFirstErrorStopsSiblingsAndIsTheOneThrown) {
  bool sibling_cancelled = false;
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    scope.spawn(sleep_and_note_cancellation(sibling_cancelled));
    scope.spawn(sleep_then_throw(2s, "second"));
    scope.spawn(sleep_then_throw(1s, "first"));
    try {
      co_await scope.join();
      ADD_FAILURE() << "join() did not throw";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "first");
    }
    EXPECT_TRUE(sibling_cancelled);
    EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
  });
}

TEST_F(TaskScopeTest, StopEndsChildrenWithoutAnError) {
  bool cancelled = false;
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    scope.spawn(sleep_and_note_cancellation(cancelled));
    co_await clock_.sleep_for(1s);
    scope.stop();
    co_await scope.join();
    EXPECT_TRUE(cancelled);
    EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
  });
}

TEST_F(TaskScopeTest, ATaskSpawnedAfterStopNeverRuns) {
  bool ran = false;
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    scope.stop();
    auto task = [&]() -> Awaitable<> {
      ran = true;
      co_return;
    };
    scope.spawn(task());
    co_await scope.join();
    EXPECT_FALSE(ran);
  });
}

// Asio 1.81 alone would lose the completion of a child that is cancelled before it ever suspended.
TEST_F(TaskScopeTest, AChildMayStopItsScopeBeforeItsFirstSuspension) {
  bool sibling_cancelled = false;
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    scope.spawn(sleep_and_note_cancellation(sibling_cancelled));
    auto stopper = [&]() -> Awaitable<> {
      scope.stop();
      co_await clock_.sleep_for(1h);
    };
    scope.spawn(stopper());
    co_await scope.join();
    EXPECT_TRUE(sibling_cancelled);
    EXPECT_EQ(clock_.now(), TimePoint{});
  });
}

TEST_F(TaskScopeTest, OneChildCanBeStoppedWhileTheOthersContinue) {
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    bool first = false;
    bool second = false;
    auto* child = scope.spawn(sleep_and_note_cancellation(first));
    scope.spawn(sleep_and_note_cancellation(second));
    co_await clock_.sleep_for(1s);
    scope.stop(*child);
    scope.stop(*child);  // asking twice is asking once
    co_await scope.join();
    EXPECT_TRUE(first);
    EXPECT_FALSE(second);
    EXPECT_EQ(clock_.now() - TimePoint{}, 1h);
  });
}

TEST_F(TaskScopeTest, AChildThatIsStoppedBeforeItsTurnNeverRuns) {
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    bool ran = false;
    auto note = [&]() -> Awaitable<> {
      ran = true;
      co_return;
    };
    auto* child = scope.spawn(note());
    scope.stop(*child);
    co_await scope.join();
    EXPECT_FALSE(ran);
  });
}

// Both in one turn: the order to stop must not reach somebody else's place in memory.
TEST_F(TaskScopeTest, AChildMayEndInTheTurnInWhichItIsStopped) {
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    Event gate;
    auto* child = scope.spawn(gate.wait());
    co_await clock_.sleep_for(1s);
    gate.set();
    scope.stop(*child);
    scope.spawn(clock_.sleep_for(1s));
    co_await scope.join();
    EXPECT_EQ(clock_.now() - TimePoint{}, 2s);
  });
}

TEST_F(TaskScopeTest, AStoppedChildThatFailsForAReasonOfItsOwnIsStillTheError) {
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    auto fails_while_stopping = [&]() -> Awaitable<> {
      try {
        co_await clock_.sleep_for(1h);
      } catch (const boost::system::system_error&) {
      }
      throw std::runtime_error("the last words");
    };
    auto* child = scope.spawn(fails_while_stopping());
    co_await clock_.sleep_for(1s);
    scope.stop(*child);
    std::string told;
    try {
      co_await scope.join();
    } catch (const std::runtime_error& error) {
      told = error.what();
    }
    EXPECT_EQ(told, "the last words");
  });
}

TEST_F(TaskScopeTest, SpawnRunsNothingByItself) {
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    bool ran = false;
    auto task = [&]() -> Awaitable<> {
      ran = true;
      co_return;
    };
    scope.spawn(task());
    EXPECT_FALSE(ran);
    scope.stop();
    co_await scope.join();
    EXPECT_FALSE(ran) << "stopped before its turn came";
  });
}

TEST_F(TaskScopeTest, AChildThatThrowsBeforeItsFirstSuspensionIsTheError) {
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    auto thrower = []() -> Awaitable<> {
      throw std::runtime_error("at once");
      co_return;
    };
    scope.spawn(thrower());
    std::string message;
    try {
      co_await scope.join();
    } catch (const std::runtime_error& e) {
      message = e.what();
    }
    EXPECT_EQ(message, "at once");
  });
}

TEST_F(TaskScopeTest, CancellingTheJoinerStopsTheChildrenAndWaitsForThem) {
  bool child_cancelled = false;
  bool joiner_cancelled = false;
  run([&]() -> Awaitable<> {
    TaskScope outer{co_await asio::this_coro::executor};
    auto joiner = [&]() -> Awaitable<> {
      TaskScope inner{co_await asio::this_coro::executor};
      inner.spawn(sleep_and_note_cancellation(child_cancelled));
      try {
        co_await inner.join();
      } catch (const boost::system::system_error&) {
        joiner_cancelled = true;
        EXPECT_EQ(inner.running(), 0u);
      }
    };
    outer.spawn(joiner());
    co_await clock_.sleep_for(1s);
    outer.stop();
    co_await outer.join();
    EXPECT_TRUE(child_cancelled);
    EXPECT_TRUE(joiner_cancelled);
  });
}

TEST_F(TaskScopeTest, AChildMaySpawnIntoItsOwnScope) {
  int ran = 0;
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    auto leaf = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(1s);
      ++ran;
    };
    auto parent = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(1s);
      scope.spawn(leaf());
      scope.spawn(leaf());
    };
    scope.spawn(parent());
    co_await scope.join();
    EXPECT_EQ(ran, 2);
  });
}

TEST_F(TaskScopeTest, WithScopeJoinsEvenWhenItsBodyThrows) {
  bool child_cancelled = false;
  run([&]() -> Awaitable<> {
    auto body = [&](TaskScope& scope) -> Awaitable<> {
      scope.spawn(sleep_and_note_cancellation(child_cancelled));
      co_await clock_.sleep_for(1s);
      throw std::runtime_error("body failed");
    };
    std::string message;
    try {
      co_await with_scope(body);
    } catch (const std::runtime_error& e) {
      message = e.what();
    }
    EXPECT_EQ(message, "body failed");
    EXPECT_TRUE(child_cancelled);
  });
}

TEST_F(TaskScopeTest, AFailingChildReachesTheBodyOfWithScope) {
  run([&]() -> Awaitable<> {
    auto body = [&](TaskScope& scope) -> Awaitable<> {
      scope.spawn(sleep_then_throw(1s, "child failed"));
      co_await clock_.sleep_for(1h);
    };
    std::string message;
    try {
      co_await with_scope(body);
    } catch (const std::runtime_error& e) {
      message = e.what();
    }
    EXPECT_EQ(message, "child failed");
    EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
  });
}

TEST_F(TaskScopeTest, AShieldedStretchRunsToItsEndAndThenTheCancellationShows) {
  bool stretch_finished = false;
  bool went_on = false;
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    auto stretch = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(5s);
      stretch_finished = true;
    };
    auto task = [&]() -> Awaitable<> {
      co_await shielded(stretch());
      co_await clock_.sleep_for(1s);
      went_on = true;
    };
    scope.spawn(task());
    co_await clock_.sleep_for(1s);
    scope.stop();
    co_await scope.join();
    EXPECT_TRUE(stretch_finished);
    EXPECT_FALSE(went_on);
    EXPECT_EQ(clock_.now() - TimePoint{}, 5s);
  });
}

TEST_F(TaskScopeTest, TenThousandChildrenStopInOneTurn) {
  std::size_t cancelled = 0;
  run([&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    auto child = [&]() -> Awaitable<> {
      bool mine = false;
      try {
        co_await sleep_and_note_cancellation(mine);
      } catch (...) {
      }
      cancelled += mine ? 1 : 0;
    };
    for (int i = 0; i < 10'000; ++i) scope.spawn(child());
    co_await clock_.sleep_for(1s);
    scope.stop();
    co_await scope.join();
    EXPECT_EQ(cancelled, 10'000u);
    EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
  });
}

TEST(TaskScopeDeathTest, ForgettingToJoinAbortsWithAMessage) {
  auto forget = [] {
    VirtualLoop loop;
    auto task = [&]() -> Awaitable<> {
      TaskScope scope{co_await asio::this_coro::executor};
      scope.spawn(loop.clock().sleep_for(1h));
    };
    loop.run(task());
  };
  EXPECT_DEATH(forget(), "destroyed with 1 tasks running: join\\(\\) it first");
}

}  // namespace
}  // namespace hubferry::async
