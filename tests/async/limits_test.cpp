// Semaphore, Queue, TokenBucket and Backoff: what bounds how much happens, and how often.
#include <gtest/gtest.h>

#include "hubferry/async/backoff.hpp"
#include "hubferry/async/semaphore.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/token_bucket.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "support/coroutine_test.hpp"
#include "support/queue.hpp"

namespace hubferry::async {
namespace {

class LimitsTest : public testing::Test {
 protected:
  template <typename Body>
  void run(Body body) {
    loop_.run(body());
  }

  VirtualLoop loop_;
  VirtualClock& clock_ = loop_.clock();
  Random random_{1};
};

TEST_F(LimitsTest, ASemaphoreNeverLetsMoreThanItsPermitsRun) {
  run([&]() -> Awaitable<> {
    Semaphore semaphore{3};
    int running = 0;
    int most = 0;
    auto work = [&]() -> Awaitable<> {
      auto permit = co_await semaphore.acquire();
      most = std::max(most, ++running);
      co_await clock_.sleep_for(1s);
      --running;
    };
    TaskScope scope{co_await asio::this_coro::executor};
    for (int i = 0; i < 10; ++i) scope.spawn(work());
    co_await scope.join();
    EXPECT_EQ(most, 3);
    EXPECT_EQ(semaphore.free(), 3u);
    EXPECT_EQ(clock_.now() - TimePoint{}, 4s);
  });
}

TEST_F(LimitsTest, SemaphorePermitsGoInTheOrderOfAsking) {
  run([&]() -> Awaitable<> {
    Semaphore semaphore{1};
    std::vector<int> order;
    auto work = [&](int me) -> Awaitable<> {
      auto permit = co_await semaphore.acquire();
      order.push_back(me);
      co_await clock_.sleep_for(1s);
    };
    TaskScope scope{co_await asio::this_coro::executor};
    for (int i = 0; i < 5; ++i) scope.spawn(work(i));
    co_await scope.join();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  });
}

// A newcomer must not slip in between the release and the turn of the waiter who was granted the permit.
TEST_F(LimitsTest, ASemaphoreCannotBeOvertakenBetweenWakeUpAndTurn) {
  run([&]() -> Awaitable<> {
    Semaphore semaphore{1};
    std::vector<std::string> order;
    auto held = co_await semaphore.acquire();
    TaskScope scope{co_await asio::this_coro::executor};
    auto waiter = [&](std::string name) -> Awaitable<> {
      auto permit = co_await semaphore.acquire();
      order.push_back(name);
      co_await clock_.sleep_for(1s);
    };
    scope.spawn(waiter("first"));
    co_await clock_.sleep_for(1s);
    held.release();
    scope.spawn(waiter("late"));
    co_await scope.join();
    EXPECT_EQ(order, (std::vector<std::string>{"first", "late"}));
  });
}

TEST_F(LimitsTest, APermitGrantedToACancelledWaiterIsNotLost) {
  run([&]() -> Awaitable<> {
    Semaphore semaphore{1};
    auto held = co_await semaphore.acquire();
    TaskScope scope{co_await asio::this_coro::executor};
    auto waiter = [&]() -> Awaitable<> {
      auto permit = co_await semaphore.acquire();
      co_await clock_.sleep_for(1h);
    };
    scope.spawn(waiter());
    co_await clock_.sleep_for(1s);
    scope.stop();  // takes effect in the next turn, when the permit has been granted
    held.release();
    co_await scope.join();
    EXPECT_EQ(semaphore.free(), 1u);
    auto again = co_await semaphore.acquire();
    EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
  });
}

TEST_F(LimitsTest, AQueueHoldsProducersBackWhenFull) {
  run([&]() -> Awaitable<> {
    test::Queue<int> queue{2};
    int pushed = 0;
    auto producer = [&]() -> Awaitable<> {
      for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(co_await queue.push(i));
        ++pushed;
      }
      queue.close();
    };
    TaskScope scope{co_await asio::this_coro::executor};
    scope.spawn(producer());
    co_await clock_.sleep_for(1s);
    EXPECT_EQ(pushed, 2);
    std::vector<int> taken;
    while (true) {
      auto value = co_await queue.pop();
      if (!value) break;
      taken.push_back(*value);
    }
    co_await scope.join();
    EXPECT_EQ(taken, (std::vector<int>{0, 1, 2, 3, 4}));
  });
}

TEST_F(LimitsTest, AClosedQueueGivesOutWhatIsLeftAndTakesNothing) {
  run([&]() -> Awaitable<> {
    test::Queue<int> queue{2};
    EXPECT_TRUE(queue.try_push(1));
    queue.close();
    EXPECT_FALSE(queue.try_push(2));
    EXPECT_FALSE(co_await queue.push(3));
    auto first = co_await queue.pop();
    auto second = co_await queue.pop();
    EXPECT_EQ(first, 1);
    EXPECT_EQ(second, std::nullopt);
  });
}

TEST_F(LimitsTest, AConsumerThatIsCancelledAsItIsServedLeavesTheValueToTheNext) {
  run([&]() -> Awaitable<> {
    test::Queue<int> queue{1};
    std::optional<int> taken;
    TaskScope cancelled{co_await asio::this_coro::executor};
    TaskScope living{co_await asio::this_coro::executor};
    auto consumer = [&]() -> Awaitable<> { taken = co_await queue.pop(); };
    auto doomed = [&]() -> Awaitable<> {
      auto value = co_await queue.pop();
      ADD_FAILURE() << "took " << value.value_or(-1);
    };
    cancelled.spawn(doomed());
    co_await clock_.sleep_for(1s);
    living.spawn(consumer());
    co_await clock_.sleep_for(1s);
    cancelled.stop();  // takes effect in the next turn, when the consumer has been woken but has not run yet
    queue.try_push(5);
    co_await cancelled.join();
    co_await living.join();
    EXPECT_EQ(taken, 5);
  });
}

/// How many are in the middle of something.
struct Counted {
  int& count;
  explicit Counted(int& counter) : count(counter) { ++count; }
  ~Counted() { --count; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

// Whichever waiter is cancelled, and whenever: no other is left waiting for what is there.
TEST_F(LimitsTest, NothingIsLostWhateverIsCancelledWhen) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    Semaphore semaphore{8};
    test::Queue<int> queue{2};
    int acquiring = 0;
    int pushing = 0;
    int popping = 0;
    int in_queue = 0;
    // Whole milliseconds, so that much happens in one turn.
    const auto a_moment = [&] { return random.below(4) * 1ms; };
    auto acquire = [&]() -> Awaitable<Semaphore::Permit> {
      const Counted waiting{acquiring};
      co_return co_await semaphore.acquire();
    };
    auto produce = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(a_moment());
      const auto permit = co_await acquire();
      co_await clock_.sleep_for(a_moment());
      const Counted waiting{pushing};
      if (co_await queue.push(1)) ++in_queue;
    };
    auto consume = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(3 * a_moment());
      const Counted waiting{popping};
      if (co_await queue.pop()) --in_queue;
    };
    run([&]() -> Awaitable<> {
      TaskScope unlucky{co_await asio::this_coro::executor};
      TaskScope lucky{co_await asio::this_coro::executor};
      const auto one = [&]() -> TaskScope& { return random.chance(0.5) ? unlucky : lucky; };
      for (auto producers = random.below(30); producers > 0; --producers) one().spawn(produce());
      for (auto consumers = random.below(30); consumers > 0; --consumers) one().spawn(consume());
      co_await clock_.sleep_for(3 * a_moment());
      unlucky.stop();
      co_await unlucky.join();
      co_await clock_.sleep_for(1s);
      EXPECT_FALSE(acquiring > 0 && semaphore.free() > 0);
      EXPECT_FALSE(pushing > 0 && queue.size() < 2);
      EXPECT_FALSE(popping > 0 && queue.size() > 0);
      queue.close();
      co_await lucky.join();
    });
    EXPECT_EQ(semaphore.free(), semaphore.total());
    EXPECT_EQ(in_queue, static_cast<int>(queue.size()));
  }
}

TEST_F(LimitsTest, ATokenBucketAllowsABurstAndThenItsRate) {
  run([&]() -> Awaitable<> {
    TokenBucket bucket{clock_, 10, 5};
    for (int i = 0; i < 5; ++i) co_await bucket.take();
    EXPECT_EQ(clock_.now(), TimePoint{});
    EXPECT_FALSE(bucket.try_take());
    for (int i = 0; i < 10; ++i) co_await bucket.take();
    EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
    co_await clock_.sleep_for(1min);  // a long rest earns one burst, not more
    int at_once = 0;
    while (bucket.try_take()) ++at_once;
    EXPECT_EQ(at_once, 5);
  });
}

TEST_F(LimitsTest, ATokenBucketWithoutARateLimitsNothing) {
  run([&]() -> Awaitable<> {
    TokenBucket bucket{clock_, 0, 0};
    for (int i = 0; i < 1000; ++i) co_await bucket.take();
    EXPECT_EQ(clock_.now(), TimePoint{});
  });
}

TEST_F(LimitsTest, ACancelledWaiterGivesItsTokenBack) {
  run([&]() -> Awaitable<> {
    TokenBucket bucket{clock_, 1, 1};
    co_await bucket.take();
    TaskScope scope{co_await asio::this_coro::executor};
    auto waiter = [&]() -> Awaitable<> { co_await bucket.take(); };
    scope.spawn(waiter());
    co_await clock_.sleep_for(500ms);
    scope.stop();
    co_await scope.join();
    co_await bucket.take();
    EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
  });
}

// Else those who gave up long ago would hold back all who come after them, until those give up as well.
TEST_F(LimitsTest, ATokenBucketForgetsAWholeQueueThatGaveUp) {
  run([&]() -> Awaitable<> {
    TokenBucket bucket{clock_, 1, 1};
    co_await bucket.take();
    TaskScope scope{co_await asio::this_coro::executor};
    auto waiter = [&]() -> Awaitable<> { co_await bucket.take(); };
    for (int i = 0; i < 1000; ++i) scope.spawn(waiter());
    co_await clock_.sleep_for(500ms);
    scope.stop();
    co_await scope.join();
    co_await bucket.take();
    EXPECT_EQ(clock_.now() - TimePoint{}, 1s);
  });
}

TEST_F(LimitsTest, ThoseBehindAWaiterThatGivesUpMoveUpInOrder) {
  run([&]() -> Awaitable<> {
    TokenBucket bucket{clock_, 1, 1};
    co_await bucket.take();
    std::vector<int> order;
    auto waiter = [&](int me) -> Awaitable<> {
      co_await bucket.take();
      order.push_back(me);
    };
    TaskScope scope{co_await asio::this_coro::executor};
    auto* first = scope.spawn(waiter(1));
    auto* second = scope.spawn(waiter(2));
    scope.spawn(waiter(3));
    scope.spawn(waiter(4));
    co_await clock_.sleep_for(500ms);
    scope.stop(*first);
    scope.stop(*second);
    co_await clock_.sleep_for(1ms);
    EXPECT_FALSE(bucket.try_take());
    co_await scope.join();
    EXPECT_EQ(order, (std::vector<int>{3, 4}));
    EXPECT_EQ(clock_.now() - TimePoint{}, 2s);
  });
}

TEST_F(LimitsTest, ATokenBucketTakesExtremeRatesAndBursts) {
  TokenBucket hardly_ever{clock_, 1e-300, 2};
  EXPECT_TRUE(hardly_ever.try_take());
  EXPECT_TRUE(hardly_ever.try_take());
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(hardly_ever.try_take());
  TokenBucket nearly_always{clock_, 1, 1e300};
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(nearly_always.try_take());
}

TEST_F(LimitsTest, BackoffGrowsToItsMostAndStartsOverAfterCalm) {
  Backoff backoff{{.first = 1s, .most = 5s, .factor = 2, .jitter = 0, .reset_after = 2min}, clock_, random_};
  EXPECT_EQ(backoff.next(), 1s);
  EXPECT_EQ(backoff.next(), 2s);
  EXPECT_EQ(backoff.next(), 4s);
  EXPECT_EQ(backoff.next(), 5s);
  EXPECT_EQ(backoff.next(), 5s);
  loop_.run_for(5s + 2min);
  EXPECT_EQ(backoff.next(), 1s);
  backoff.next();
  backoff.reset();
  EXPECT_EQ(backoff.next(), 1s);
}

// The pauses themselves are no calm: nothing was tried meanwhile.
TEST_F(LimitsTest, BackoffThatPausesForLongerThanItsCalmDoesNotStartOver) {
  run([&]() -> Awaitable<> {
    Backoff backoff{{.first = 1min, .most = 8min, .factor = 2, .jitter = 0, .reset_after = 2min}, clock_, random_};
    for (int i = 0; i < 6; ++i) co_await backoff.pause();
    EXPECT_EQ(clock_.now() - TimePoint{}, 1min + 2min + 4min + 3 * 8min);
  });
}

TEST_F(LimitsTest, BackoffKeepsWithinTheRangeOfADuration) {
  Backoff endless{{.first = 1s, .most = Duration::max(), .factor = 1e9, .jitter = 1, .reset_after = Duration::max()},
                  clock_,
                  random_};
  Backoff none{
      {.first = 0s, .most = 1s, .factor = 1e300, .jitter = 1, .reset_after = Duration::max()}, clock_, random_};
  for (int i = 0; i < 20; ++i) {
    EXPECT_GE(endless.next(), 1s);
    EXPECT_EQ(none.next(), 0s);
  }
}

TEST_F(LimitsTest, BackoffSurvivesThousandsOfFailures) {
  Backoff backoff{{.first = 1s, .most = 30s, .jitter = 0}, clock_, random_};
  for (int i = 0; i < 5000; ++i) backoff.next();
  EXPECT_EQ(backoff.next(), 30s);
}

TEST_F(LimitsTest, JitterStaysWithinItsShareAndVaries) {
  Backoff backoff{{.first = 1s, .most = 1s, .jitter = 0.5}, clock_, random_};
  Duration low = 1h;
  Duration high{0};
  for (int i = 0; i < 1000; ++i) {
    const auto delay = backoff.next();
    low = std::min(low, delay);
    high = std::max(high, delay);
  }
  EXPECT_GE(low, 1s);
  EXPECT_LT(low, 1050ms);
  EXPECT_LE(high, 1500ms);
  EXPECT_GT(high, 1450ms);
}

}  // namespace
}  // namespace hubferry::async
