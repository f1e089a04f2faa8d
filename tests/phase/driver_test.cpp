#include "hubferry/phase/driver.hpp"

#include <gmock/gmock.h>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/work_queue.hpp"
#include "phase_test.hpp"

namespace hubferry::phase::test {
namespace {

/// Items that know their key, so that many can be written.
struct Numbered {
  struct Status {
    Phase phase;
    States state;
  } status;
  Key key;
};

struct Fleet {
  std::map<Key, Numbered> items;
  std::size_t writes = 0;
  int at_once = 0;
  int most_at_once = 0;
  int cancelled = 0;
  async::Event gate;  // what "wait" handlers wait for
};

class DriverTest : public testing::Test {
 protected:
  using Handlers = Handler<Fleet, Numbered>;

  DriverTest() {
    definition.fetch_resource = [](Fleet& fleet, Key key) -> Awaitable<Result<std::optional<Numbered>>> {
      const auto found = fleet.items.find(key);
      co_return found == fleet.items.end() ? std::nullopt : std::optional{found->second};
    };
    definition.persist_status = [](Fleet& fleet, Numbered& item) -> Awaitable<Written> {
      if (!fleet.items.contains(item.key)) co_return Written::gone();
      fleet.items[item.key] = item;
      ++fleet.writes;
      co_return Written::ok();
    };
    definition.initial = "work";
    definition.terminals = {{"success", Ending::success}, {"failed", Ending::failure}};
    definition.normal = {{"work", "success"}};
    definition.error = {{"work", "failed"}};
  }

  void work_is(Handlers::Function function) {
    definition.handlers.insert_or_assign("work", Handlers::leaf({}, std::move(function)));
    definition.normalize();
  }

  /// Waits for the gate, and records cancellation.
  static Awaitable<ReconcileState> wait_for_gate(Context<Fleet>& context, Numbered&, const State&) {
    auto& fleet = context.services();
    fleet.most_at_once = std::max(fleet.most_at_once, ++fleet.at_once);
    struct Leave {
      Fleet& fleet;
      ~Leave() { --fleet.at_once; }
    } leave{fleet};
    try {
      co_await fleet.gate.wait();
    } catch (const boost::system::system_error&) {
      ++fleet.cancelled;
      throw;
    }
    co_return done();
  }

  void add(int count) {
    for (int at = 0; at < count; ++at) {
      const Key key = numbered(at);
      fleet.items[key].key = key;
      source.add(key);
    }
  }
  static Key numbered(int at) { return {"default", "item-" + std::to_string(at)}; }
  int in_phase(const Phase& phase) {
    int count = 0;
    for (const auto& [key, item] : fleet.items) count += item.status.phase == phase ? 1 : 0;
    return count;
  }

  /// Runs the driver beside `script`, and waits for both.
  template <typename Script>
  void run_with(Driver& driver, Script script) {
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(driver.run());
      co_await script();
    };
    loop.run(async::with_scope(both));
    EXPECT_EQ(driver.running(), 0u);
    EXPECT_EQ(fleet.at_once, 0);
  }
  Awaitable<> sleep(async::Duration span) { return loop.clock().sleep_for(span); }

  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  Fleet fleet;
  DefaultDefinition<Fleet, Numbered> definition;
  MemoryKeySource source{loop.clock()};
  kube::Env env{loop.clock(), random, metrics, obs::Logger{}};
};

TEST_F(DriverTest, ThousandsOfMachinesWaitAtOnceAndFinish) {
  work_is(wait_for_gate);
  Machine<Fleet, Numbered> machine{definition, fleet, env};
  Driver driver{machine, source, {.max_concurrent = 10000, .grace = 10s}};
  add(5000);
  run_with(driver, [&]() -> Awaitable<> {
    co_await sleep(1s);
    EXPECT_EQ(driver.running(), 5000u);
    fleet.gate.set();
    co_await sleep(1s);
    driver.stop();
  });
  EXPECT_EQ(in_phase("success"), 5000);
  EXPECT_EQ(fleet.cancelled, 0);
}

TEST_F(DriverTest, NoMoreMachinesRunAtOnceThanAllowed) {
  work_is([](Context<Fleet>& context, Numbered&, const State&) -> Awaitable<ReconcileState> {
    auto& fleet = context.services();
    fleet.most_at_once = std::max(fleet.most_at_once, ++fleet.at_once);
    co_await context.clock().sleep_for(1s);
    --fleet.at_once;
    co_return done();
  });
  Machine<Fleet, Numbered> machine{definition, fleet, env};
  Driver driver{machine, source, {.max_concurrent = 7, .grace = 10s}};
  add(70);
  source.close();
  run_with(driver, [&]() -> Awaitable<> { co_return; });
  EXPECT_EQ(fleet.most_at_once, 7);
  EXPECT_EQ(in_phase("success"), 70);
  EXPECT_EQ(loop.clock().now() - async::TimePoint{}, 10s);
}

TEST_F(DriverTest, AMachineThatIsNotDoneIsRequeuedAfterItsDelay) {
  std::vector<async::Duration> runs;
  work_is([&](Context<Fleet>& context, Numbered&, const State&) -> Awaitable<ReconcileState> {
    runs.push_back(context.clock().now() - async::TimePoint{});
    co_return runs.size() == 3 ? done() : not_done(40s);
  });
  Machine<Fleet, Numbered> machine{definition, fleet, env};
  Driver driver{machine, source};
  add(1);
  run_with(driver, [&]() -> Awaitable<> {
    co_await sleep(5min);
    driver.stop();
  });
  EXPECT_THAT(runs, testing::ElementsAre(0s, 40s, 80s));
  EXPECT_EQ(in_phase("success"), 1);
}

TEST_F(DriverTest, StopGivesRunningMachinesAGracePeriodAndStartsNoNewOnes) {
  work_is([](Context<Fleet>& context, Numbered& item, const State&) -> Awaitable<ReconcileState> {
    co_await context.clock().sleep_for(item.key == numbered(0) ? 5s : 5min);
    co_return done();
  });
  Machine<Fleet, Numbered> machine{definition, fleet, env};
  Driver driver{machine, source, {.max_concurrent = 2, .grace = 10s}};
  add(3);
  run_with(driver, [&]() -> Awaitable<> {
    co_await sleep(1s);
    driver.stop();
  });
  EXPECT_EQ(in_phase("success"), 1);
  EXPECT_EQ(in_phase(""), 2);
  EXPECT_EQ(loop.clock().now() - async::TimePoint{}, 11s);
}

TEST_F(DriverTest, StopOfAnIdleDriverReturnsAtOnce) {
  work_is(wait_for_gate);
  Machine<Fleet, Numbered> machine{definition, fleet, env};
  Driver driver{machine, source};
  run_with(driver, [&]() -> Awaitable<> {
    co_await sleep(1s);
    driver.stop();
  });
  EXPECT_EQ(loop.clock().now() - async::TimePoint{}, 1s);
}

// A leader that lost its lease must not write, even if what its handlers wait for happens right after.
TEST_F(DriverTest, LossOfLeadershipUnwindsEverythingAtOnceAndWritesNothing) {
  work_is(wait_for_gate);
  Machine<Fleet, Numbered> machine{definition, fleet, env};
  Driver driver{machine, source};
  add(100);
  run_with(driver, [&]() -> Awaitable<> {
    co_await sleep(1s);
    driver.abort();
    fleet.gate.set();
  });
  EXPECT_EQ(fleet.writes, 0u);
  EXPECT_EQ(in_phase(""), 100);
  EXPECT_EQ(loop.clock().now() - async::TimePoint{}, 1s);

  // The next leader resumes.
  Driver successor{machine, source};
  for (int at = 0; at < 100; ++at) source.add(numbered(at));
  run_with(successor, [&]() -> Awaitable<> {
    co_await sleep(1s);
    successor.stop();
  });
  EXPECT_EQ(in_phase("success"), 100);
}

TEST_F(DriverTest, CancellingRunUnwindsEveryMachine) {
  work_is(wait_for_gate);
  Machine<Fleet, Numbered> machine{definition, fleet, env};
  Driver driver{machine, source};
  add(50);
  auto life = [&]() -> Awaitable<> {
    async::TaskScope scope{co_await async::asio::this_coro::executor};
    scope.spawn(driver.run());
    co_await sleep(1s);
    EXPECT_EQ(driver.running(), 50u);
    scope.stop();
    co_await scope.join();
  };
  loop.run(life());
  EXPECT_EQ(driver.running(), 0u);
  EXPECT_EQ(fleet.cancelled, 50);
  EXPECT_EQ(fleet.writes, 0u);
}

TEST_F(DriverTest, TheMachineOfADeletedResourceIsCancelledAndTheOthersContinue) {
  work_is(wait_for_gate);
  Machine<Fleet, Numbered> machine{definition, fleet, env};
  Driver driver{machine, source};
  add(3);
  run_with(driver, [&]() -> Awaitable<> {
    co_await sleep(1s);
    fleet.items.erase(numbered(1));
    EXPECT_TRUE(driver.cancel(numbered(1)));
    EXPECT_FALSE(driver.cancel(numbered(77)));
    co_await sleep(1ms);
    EXPECT_FALSE(driver.is_running(numbered(1)));
    EXPECT_EQ(driver.running(), 2u);
    EXPECT_EQ(fleet.cancelled, 1);
    fleet.gate.set();
    co_await sleep(1s);
    driver.stop();
  });
  EXPECT_EQ(in_phase("success"), 2);
  EXPECT_EQ(fleet.items.size(), 2u);
}

TEST_F(DriverTest, AChangeDuringARunCausesExactlyOneMore) {
  int runs = 0;
  work_is([&](Context<Fleet>& context, Numbered& item, const State&) -> Awaitable<ReconcileState> {
    ++runs;
    source.add(item.key);
    source.add(item.key);
    co_await context.clock().sleep_for(1s);
    co_return not_done(1h);
  });
  Machine<Fleet, Numbered> machine{definition, fleet, env};
  Driver driver{machine, source};
  add(1);
  run_with(driver, [&]() -> Awaitable<> {
    co_await sleep(1500ms);
    EXPECT_EQ(runs, 2);
    driver.stop();
  });
}

TEST_F(DriverTest, AResourceThatCannotBeReadIsRetriedWithBackoff) {
  work_is(wait_for_gate);
  std::vector<async::TimePoint> reads;
  definition.fetch_resource = [&](Fleet&, Key) -> Awaitable<Result<std::optional<Numbered>>> {
    reads.push_back(loop.clock().now());
    co_return Error::network("no route to host");
  };
  definition.normalize();
  Machine<Fleet, Numbered> machine{definition, fleet, env};
  Driver driver{machine, source};
  add(1);
  run_with(driver, [&]() -> Awaitable<> {
    co_await sleep(100ms);
    driver.stop();
  });
  ASSERT_GE(reads.size(), 4u);
  EXPECT_GT(reads[3] - reads[2], reads[2] - reads[1]);
}

TEST_F(DriverTest, AHandlerThatAsksForNoDelayLeavesTimeForOthers) {
  int runs = 0;
  work_is([&](Context<Fleet>&, Numbered&, const State&) -> Awaitable<ReconcileState> {
    ++runs;
    co_return not_done(0s);
  });
  Machine<Fleet, Numbered> machine{definition, fleet, env};
  Driver driver{machine, source};
  add(1);
  run_with(driver, [&]() -> Awaitable<> {
    co_await sleep(10 * least_requeue_delay + 1ms);
    driver.stop();
  });
  EXPECT_EQ(runs, 11);
}

// "Operation aborted" is also what a closed socket reports: it is our cancellation only if we were cancelled.
TEST_F(DriverTest, AnAbortedOperationInAStoreIsAFailureOfThatMachineOnly) {
  work_is([](Context<Fleet>&, Numbered&, const State&) -> Awaitable<ReconcileState> { co_return done(); });
  int reads = 0;
  int writes = 0;
  definition.fetch_resource = [&, inner = definition.fetch_resource](Fleet& of, Key key) {
    if (key == numbered(0) && ++reads == 1) async::throw_cancelled();
    return inner(of, std::move(key));
  };
  definition.persist_status = [&, inner = definition.persist_status](Fleet& of, Numbered& item) {
    if (item.key == numbered(1) && ++writes == 1) async::throw_cancelled();
    return inner(of, item);
  };
  definition.normalize();
  Machine<Fleet, Numbered> machine{definition, fleet, env};
  Driver driver{machine, source};
  add(3);
  run_with(driver, [&]() -> Awaitable<> {
    co_await sleep(1min);
    driver.stop();
  });
  EXPECT_EQ(in_phase("success"), 3);
}

TEST_F(DriverTest, RunsFromAWorkQueue) {
  work_is([](Context<Fleet>&, Numbered&, const State& last) -> Awaitable<ReconcileState> {
    co_return last.never_ran() ? not_done(20s) : done();
  });
  Machine<Fleet, Numbered> machine{definition, fleet, env};
  kube::WorkQueue queue{{.name = "test", .controller = {}}, env};
  WorkQueueSource from_queue{queue};
  Driver driver{machine, from_queue};
  add(10);
  for (int at = 0; at < 10; ++at) queue.add(numbered(at));
  run_with(driver, [&]() -> Awaitable<> {
    async::TaskScope scope{co_await async::asio::this_coro::executor};
    scope.spawn(queue.run());
    co_await sleep(1min);
    EXPECT_EQ(in_phase("success"), 10);
    driver.stop();
    scope.stop();
    co_await scope.join();
  });
}

}  // namespace
}  // namespace hubferry::phase::test
