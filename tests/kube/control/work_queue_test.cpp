#include "hubferry/kube/work_queue.hpp"

#include "kube/control/control_test.hpp"

namespace hubferry::kube {
namespace {

using testing::ElementsAre;

class WorkQueueTest : public ControlTest {
 protected:
  static Key key(std::string name) { return {"ns", std::move(name)}; }
  static WorkQueueOptions named(std::string name) {
    WorkQueueOptions options;
    options.name = std::move(name);
    return options;
  }
  /// The value of a metric's line without its labels; -1 when there is none.
  double metric(const std::string& name) {
    const std::string text = metrics_.text();
    const auto at = text.find("\n" + name + "{controller=\"q\",name=\"q\"} ");
    const auto other = text.find("\n" + name + "{name=\"q\",controller=\"q\"} ");
    const auto line = at != std::string::npos ? at : other;
    if (line == std::string::npos) return -1;
    return std::stod(text.substr(text.find("} ", line) + 2));
  }

  WorkQueue queue_{named("q"), env()};
};

TEST_F(WorkQueueTest, KeysComeOutInTheOrderInWhichTheyCame) {
  run([&](async::TaskScope&) -> Awaitable<> {
    for (const auto* name : {"b", "a", "c"}) queue_.add(key(name));
    std::vector<std::string> seen;
    for (int i = 0; i < 3; ++i) {
      auto next = co_await queue_.get();
      seen.push_back(next->name);
    }
    EXPECT_THAT(seen, ElementsAre("b", "a", "c"));
  });
}

TEST_F(WorkQueueTest, AKeyAddedManyTimesComesOutOnce) {
  run([&](async::TaskScope&) -> Awaitable<> {
    for (int i = 0; i < 5; ++i) queue_.add(key("a"));
    EXPECT_EQ(queue_.size(), 1U);
    co_await queue_.get();
    queue_.done(key("a"));
    EXPECT_EQ(queue_.size(), 0U);
  });
}

// A run already in flight may have read the old state, so it cannot answer this change.
TEST_F(WorkQueueTest, ChangesDuringARunCauseExactlyOneMoreRun) {
  run([&](async::TaskScope&) -> Awaitable<> {
    queue_.add(key("a"));
    co_await queue_.get();
    queue_.add(key("a"));
    queue_.add(key("a"));
    EXPECT_EQ(queue_.size(), 0U) << "never the same key twice at once";
    queue_.done(key("a"));
    EXPECT_EQ(queue_.size(), 1U);
    co_await queue_.get();
    queue_.done(key("a"));
    EXPECT_EQ(queue_.size(), 0U);
  });
}

TEST_F(WorkQueueTest, ManyWorkersNeverShareAKey) {
  int running = 0;
  int most_at_once = 0;
  std::map<std::string, int> by_key;
  bool shared = false;
  auto worker = [&]() -> Awaitable<> {
    while (true) {
      auto next = co_await queue_.get();
      if (!next) co_return;
      shared |= ++by_key[next->name] > 1;
      most_at_once = std::max(most_at_once, ++running);
      co_await clock_.sleep_for(random_.between(1ms, 50ms));
      --by_key[next->name];
      --running;
      queue_.done(*next);
    }
  };
  run([&](async::TaskScope& scope) -> Awaitable<> {
    for (int i = 0; i < 8; ++i) scope.spawn(worker());
    for (int i = 0; i < 2000; ++i) {
      queue_.add(key(std::to_string(random_.below(20))));
      co_await clock_.sleep_for(1ms);
    }
    co_await queue_.shut_down_with_drain();
    EXPECT_EQ(running, 0);
  });
  EXPECT_FALSE(shared);
  EXPECT_EQ(most_at_once, 8);
}

TEST_F(WorkQueueTest, OfSeveralDelaysTheEarliestCounts) {
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(queue_.run());
    queue_.add_after(key("a"), 10s);
    queue_.add_after(key("a"), 3s);
    queue_.add_after(key("a"), 5s);
    queue_.add_after(key("b"), 4s);
    EXPECT_EQ(queue_.delayed(), 2U);
    auto first = co_await queue_.get();
    EXPECT_EQ(first->name, "a");
    EXPECT_EQ(elapsed(), 3s);
    auto second = co_await queue_.get();
    EXPECT_EQ(second->name, "b");
    EXPECT_EQ(elapsed(), 4s);
    EXPECT_EQ(queue_.delayed(), 0U);
  });
}

TEST_F(WorkQueueTest, ADelayThatHasPassedAddsAtOnce) {
  run([&](async::TaskScope&) -> Awaitable<> {
    queue_.add_after(key("a"), 0s);
    queue_.add_after(key("b"), -1s);
    EXPECT_EQ(queue_.size(), 2U);
    co_return;
  });
}

TEST_F(WorkQueueTest, AnEarlierDelayWakesTheSleepingTimer) {
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(queue_.run());
    queue_.add_after(key("late"), 1h);
    co_await clock_.sleep_for(1s);
    queue_.add_after(key("early"), 1s);
    auto next = co_await queue_.get();
    EXPECT_EQ(next->name, "early");
    EXPECT_EQ(elapsed(), 2s);
  });
}

TEST_F(WorkQueueTest, RetriesOfAKeySlowDownUntilItIsForgotten) {
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(queue_.run());
    std::vector<Duration> delays;
    for (int i = 0; i < 4; ++i) {
      const auto before = clock_.now();
      queue_.add_rate_limited(key("a"));
      auto next = co_await queue_.get();
      delays.push_back(clock_.now() - before);
      queue_.done(*next);
    }
    EXPECT_THAT(delays, ElementsAre(5ms, 10ms, 20ms, 40ms));
    EXPECT_EQ(queue_.retries(key("a")), 4U);
    EXPECT_EQ(queue_.retries(key("b")), 0U);
    queue_.forget(key("a"));
    const auto before = clock_.now();
    queue_.add_rate_limited(key("a"));
    co_await queue_.get();
    EXPECT_EQ(clock_.now() - before, 5ms);
  });
}

TEST_F(WorkQueueTest, TheDelayOfRetriesHasABound) {
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(queue_.run());
    // Without a bound the hundredth delay would not fit into any duration.
    for (int i = 0; i < 100; ++i) queue_.add_rate_limited(key("a"));
    auto next = co_await queue_.get();
    EXPECT_EQ(elapsed(), 5ms) << "the earliest of the delays counts";
    queue_.done(*next);
    const auto before = clock_.now();
    queue_.add_rate_limited(key("a"));
    co_await queue_.get();
    EXPECT_EQ(clock_.now() - before, 1000s);
  });
}

TEST_F(WorkQueueTest, AllKeysTogetherKeepToTheOverallRate) {
  auto options = named("limited");
  options.overall_per_second = 10;
  options.overall_burst = 2;
  WorkQueue queue{options, env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(queue.run());
    for (const auto* name : {"a", "b", "c", "d"}) queue.add_rate_limited(key(name));
    std::vector<Duration> at;
    for (int i = 0; i < 4; ++i) {
      co_await queue.get();
      at.push_back(elapsed());
    }
    EXPECT_THAT(at, ElementsAre(5ms, 5ms, 100ms, 200ms));
  });
}

TEST_F(WorkQueueTest, ShutDownGivesOutWhatIsQueuedAndThenNothing) {
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(queue_.run());
    queue_.add(key("a"));
    queue_.add_after(key("late"), 1s);
    queue_.shut_down();
    queue_.add(key("b"));
    queue_.add_after(key("c"), 1s);
    queue_.add_rate_limited(key("d"));
    auto first = co_await queue_.get();
    EXPECT_EQ(first->name, "a");
    auto second = co_await queue_.get();
    EXPECT_FALSE(second.has_value());
    EXPECT_EQ(queue_.delayed(), 0U);
  });
}

TEST_F(WorkQueueTest, ShutDownWakesEveryIdleWorker) {
  int ended = 0;
  auto worker = [&]() -> Awaitable<> {
    auto next = co_await queue_.get();
    EXPECT_FALSE(next.has_value());
    ++ended;
  };
  run([&](async::TaskScope& scope) -> Awaitable<> {
    for (int i = 0; i < 3; ++i) scope.spawn(worker());
    co_await clock_.sleep_for(1s);
    queue_.shut_down();
    co_await clock_.sleep_for(1s);
    EXPECT_EQ(ended, 3);
  });
}

TEST_F(WorkQueueTest, DrainingWaitsForTheRunInFlightAndTheChangeItMissed) {
  int runs = 0;
  auto worker = [&]() -> Awaitable<> {
    while (true) {
      auto next = co_await queue_.get();
      if (!next) co_return;
      ++runs;
      co_await clock_.sleep_for(10s);
      queue_.done(*next);
    }
  };
  run([&](async::TaskScope& scope) -> Awaitable<> {
    queue_.add(key("a"));
    scope.spawn(worker());
    co_await clock_.sleep_for(1s);
    queue_.add(key("a"));
    co_await queue_.shut_down_with_drain();
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(elapsed(), 20s);
  });
}

// The key was meant for the cancelled worker; another one must get it.
TEST_F(WorkQueueTest, AGetThatIsCancelledInTheTurnOfItsWakeUpTakesNothing) {
  std::vector<std::string> taken;
  auto worker = [&]() -> Awaitable<> {
    auto next = co_await queue_.get();
    taken.push_back(next->name);
  };
  run([&](async::TaskScope& scope) -> Awaitable<> {
    async::TaskScope doomed{co_await async::asio::this_coro::executor};
    doomed.spawn(worker());
    co_await clock_.sleep_for(1s);
    scope.spawn(worker());
    co_await clock_.sleep_for(1s);
    queue_.add(key("a"));
    doomed.stop();
    co_await doomed.join();
    co_await clock_.sleep_for(1s);
    EXPECT_THAT(taken, ElementsAre("a"));
    EXPECT_EQ(queue_.processing(), 1U);
    EXPECT_EQ(queue_.size(), 0U);
  });
}

TEST_F(WorkQueueTest, TheMetricsAreThoseThatDashboardsKnow) {
  EXPECT_EQ(metric("workqueue_depth"), 0) << "series exist from the start";
  EXPECT_EQ(metric("workqueue_retries_total"), 0);
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(queue_.run());
    queue_.add(key("a"));
    queue_.add(key("a"));
    queue_.add(key("b"));
    EXPECT_EQ(metric("workqueue_adds_total"), 2);
    EXPECT_EQ(metric("workqueue_depth"), 2);
    co_await clock_.sleep_for(2s);
    co_await queue_.get();
    EXPECT_EQ(metric("workqueue_depth"), 1);
    EXPECT_EQ(metric("workqueue_queue_duration_seconds_sum"), 2);
    co_await clock_.sleep_for(1s);
    co_await queue_.get();
    co_await clock_.sleep_for(4s);
    EXPECT_GE(metric("workqueue_unfinished_work_seconds"), 7);
    EXPECT_GE(metric("workqueue_longest_running_processor_seconds"), 4);
    queue_.done(key("a"));
    queue_.done(key("b"));
    EXPECT_EQ(metric("workqueue_unfinished_work_seconds"), 0);
    EXPECT_EQ(metric("workqueue_work_duration_seconds_count"), 2);
    EXPECT_EQ(metric("workqueue_work_duration_seconds_sum"), 9);
    queue_.add_rate_limited(key("a"));
    EXPECT_EQ(metric("workqueue_retries_total"), 1);
  });
}

}  // namespace
}  // namespace hubferry::kube
