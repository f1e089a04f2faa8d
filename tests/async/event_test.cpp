#include "hubferry/async/event.hpp"

#include <gtest/gtest.h>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "support/coroutine_test.hpp"

namespace hubferry::async {
namespace {

class EventTest : public testing::Test {
 protected:
  VirtualLoop loop_;
  VirtualClock& clock_ = loop_.clock();
};

TEST_F(EventTest, ASetEventLetsEveryWaiterThrough) {
  auto test = [&]() -> Awaitable<> {
    Event event;
    int through = 0;
    auto waiter = [&]() -> Awaitable<> {
      co_await event.wait();
      ++through;
    };
    TaskScope scope{co_await asio::this_coro::executor};
    for (int i = 0; i < 3; ++i) scope.spawn(waiter());
    co_await clock_.sleep_for(1s);
    EXPECT_EQ(through, 0);
    event.set();
    co_await scope.join();
    EXPECT_EQ(through, 3);
    co_await event.wait();
  };
  loop_.run(test());
}

TEST_F(EventTest, ANotificationBeforeTheWaitIsNotLost) {
  auto test = [&]() -> Awaitable<> {
    Notify notify;
    notify.notify();
    notify.notify();
    co_await notify.wait();
    EXPECT_EQ(clock_.now(), TimePoint{});
    TaskScope scope{co_await asio::this_coro::executor};
    auto notifier = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(1s);
      notify.notify();
    };
    scope.spawn(notifier());
    co_await notify.wait();  // the two notifications above counted as one
    EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
    co_await scope.join();
  };
  loop_.run(test());
}

// Woken and cancelled in one turn: the wake-up must go to somebody who can use it.
TEST_F(EventTest, ANotificationTakenByACancelledWaiterGoesToTheNext) {
  auto test = [&]() -> Awaitable<> {
    Notify notify;
    bool second_woke = false;
    TaskScope first{co_await asio::this_coro::executor};
    TaskScope second{co_await asio::this_coro::executor};
    first.spawn(notify.wait());
    auto waiter = [&]() -> Awaitable<> {
      co_await notify.wait();
      second_woke = true;
    };
    second.spawn(waiter());
    co_await clock_.sleep_for(1s);
    first.stop();  // takes effect in the next turn, when the waiter has been woken but has not run yet
    notify.notify();
    co_await first.join();
    co_await second.join();
    EXPECT_TRUE(second_woke);
  };
  loop_.run(test());
}

TEST_F(EventTest, ACancelledWaiterLeavesNothingBehind) {
  auto test = [&]() -> Awaitable<> {
    Event event;
    TaskScope scope{co_await asio::this_coro::executor};
    scope.spawn(event.wait());
    scope.spawn(event.wait());
    co_await clock_.sleep_for(1s);
    scope.stop();
    co_await scope.join();
    event.set();
    EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
  };
  loop_.run(test());
}

TEST_F(EventTest, ADeadlockIsReportedNotHung) {
  Event event;
  EXPECT_THROW(loop_.run(event.wait()), std::runtime_error);
}

}  // namespace
}  // namespace hubferry::async
