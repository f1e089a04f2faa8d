#include <gmock/gmock.h>

#include "phase_test.hpp"

/// What a definition declares of a handler besides its function: timeout, retry; and what the framework measures.
namespace hubferry::phase::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class HandlerPolicyTest : public PhaseTest {
 protected:
  static Metadata with_timeout(std::string name, async::Duration timeout) {
    Metadata metadata = named(std::move(name));
    metadata.timeout = timeout;
    return metadata;
  }
  static Metadata with_retry(std::string name, RetryPolicy policy) {
    Metadata metadata = named(std::move(name));
    metadata.retry = policy;
    return metadata;
  }
  std::vector<std::string> problems() {
    try {
      definition.normalize();
    } catch (const DefinitionError& error) {
      return error.problems();
    }
    return {};
  }
};

TEST_F(HandlerPolicyTest, AHandlerThatTakesTooLongIsCancelledAndHasFailedFatally) {
  handle("migrate", Handlers::leaf(with_timeout("", 5min), after(1h)));
  const auto result = reconcile_to_the_end();
  EXPECT_EQ(result.phase, "failed");
  EXPECT_EQ(passed(), 5min);
  EXPECT_EQ(state("migrate").error, "timed out after 5m");
  EXPECT_TRUE(state("migrate").fatal);
}

TEST_F(HandlerPolicyTest, AHandlerThatIsInTimeIsNotDisturbed) {
  handle("migrate", Handlers::leaf(with_timeout("", 5min), after(4min)));
  EXPECT_EQ(reconcile_to_the_end().phase, "success");
  EXPECT_EQ(passed(), 4min);
}

TEST_F(HandlerPolicyTest, AHandlerSeesTheEarliestDeadlineAroundIt) {
  std::vector<async::TimePoint> seen;
  auto look = [&](TestContext& context, Item&, const State&) -> Awaitable<ReconcileState> {
    seen.push_back(context.deadline());
    co_return done();
  };
  handle("initialize", Handlers::leaf({}, look));
  handle("precheck", Handlers::serial(with_timeout("", 5min),
                                      {leaf("none", look), Handlers::leaf(with_timeout("shorter", 2min), look),
                                       Handlers::leaf(with_timeout("longer", 9min), look)}));
  reconcile_to_the_end();
  const async::TimePoint start{};
  EXPECT_THAT(seen, ElementsAre(async::never, start + 5min, start + 2min, start + 5min));
}

TEST_F(HandlerPolicyTest, ComponentsThatWereDoneBeforeTheTimeoutAreOnRecord) {
  handle("migrate", Handlers::serial(with_timeout("", 10min), {leaf("quick", after(1min)), leaf("slow", after(1h))}));
  EXPECT_EQ(reconcile_to_the_end().phase, "failed");
  EXPECT_TRUE(state("migrate").component("quick").completed());
  EXPECT_FALSE(state("migrate").component("slow").done);
  EXPECT_FALSE(state("migrate").component("slow").failed);
  EXPECT_EQ(state("migrate").error, "timed out after 10m");
}

// Being entered again and again does not give a handler more time.
TEST_F(HandlerPolicyTest, TheTimeoutCountsOverAllRuns) {
  handle("migrate", Handlers::serial({}, {Handlers::leaf(with_timeout("polling", 1min), always(not_done(20s)))}));
  EXPECT_EQ(reconcile_to_the_end().phase, "failed");
  EXPECT_EQ(passed(), 1min);
}

TEST_F(HandlerPolicyTest, ARestartDoesNotGiveAPhaseMoreTime) {
  handle("migrate", Handlers::leaf(with_timeout("", 10min), after(1h)));
  definition.normalize();
  {
    Machine<World, Item> machine{definition, world, env()};
    auto killed = [&]() -> Awaitable<> {
      async::TaskScope scope{co_await async::asio::this_coro::executor};
      auto run = [&]() -> Awaitable<> { co_await machine.reconcile(key); };
      scope.spawn(run());
      co_await loop.clock().sleep_for(7min);
      scope.stop();
      co_await scope.join();
    };
    loop.run(killed());
  }
  EXPECT_EQ(item().status.phase, "migrate");
  EXPECT_TRUE(state("migrate").never_ran());
  EXPECT_EQ(reconcile_to_the_end().phase, "failed");
  EXPECT_EQ(passed(), 10min);
}

TEST_F(HandlerPolicyTest, AFatalTimeoutStopsTheSiblings) {
  handle("migrate",
         Handlers::parallel({}, {Handlers::leaf(with_timeout("stuck", 1min), after(1h)), leaf("patient", after(1h))}));
  EXPECT_EQ(reconcile_to_the_end().phase, "failed");
  EXPECT_EQ(passed(), 1min);
}

TEST_F(HandlerPolicyTest, RetriesPauseLongerEachTimeUpToALimit) {
  std::vector<async::Duration> attempts;
  auto flaky = [&](TestContext&, Item&, const State&) -> Awaitable<ReconcileState> {
    attempts.push_back(passed());
    co_return attempts.size() < 6 ? failed(Error::network("no route to host")) : done();
  };
  handle("migrate", Handlers::leaf(with_retry("", {.first = 10s, .most = 1min, .attempts = 0}), flaky));
  EXPECT_EQ(reconcile_to_the_end().phase, "success");
  ASSERT_EQ(attempts.size(), 6u);
  const async::Duration pauses[] = {10s, 20s, 40s, 1min, 1min};
  for (std::size_t at = 0; at + 1 < attempts.size(); ++at) {
    const auto pause = attempts[at + 1] - attempts[at];
    EXPECT_GE(pause, pauses[at]);
    EXPECT_LE(pause, pauses[at] * 6 / 5);
  }
}

TEST_F(HandlerPolicyTest, TheLastAttemptThatThePolicyAllowsIsFatal) {
  handle("migrate", Handlers::serial({}, {Handlers::leaf(with_retry("flaky", {.first = 1s, .attempts = 3}),
                                                         always(failed(Error::network("no route to host"))))}));
  EXPECT_EQ(reconcile_to_the_end().phase, "failed");
  EXPECT_EQ(std::count(world.ran.begin(), world.ran.end(), "flaky"), 3);
  EXPECT_EQ(state("migrate").component("flaky").error, "no route to host (attempt 3 of 3)");
  EXPECT_TRUE(state("migrate").component("flaky").fatal);
}

TEST_F(HandlerPolicyTest, OnlyFailuresInARowCount) {
  int run = 0;
  auto now_and_then = [&](TestContext&, Item&, const State&) -> Awaitable<ReconcileState> {
    if (++run == 7) co_return done();
    co_return run % 2 == 0 ? not_done() : failed(Error::network("no"));
  };
  handle("migrate", Handlers::leaf(with_retry("", {.first = 1s, .attempts = 2}), now_and_then));
  EXPECT_EQ(reconcile_to_the_end().phase, "success");
  EXPECT_FALSE(state("migrate").extra.contains("attempts"));
}

TEST_F(HandlerPolicyTest, AServersWishComesBeforeThePolicys) {
  auto error = Error::network("slow down");
  error.retry_after = 42s;
  handle("initialize", Handlers::leaf(with_retry("", {.first = 1s}), always(failed(error))));
  EXPECT_EQ(reconcile_once().after, 42s);
}

TEST_F(HandlerPolicyTest, OnlyALeafIsRetriedAndNoTimeoutIsNegative) {
  handle("migrate", Handlers::serial(with_retry("", {.attempts = 3}),
                                     {Handlers::leaf(with_timeout("back", -1s), always(done()))}));
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("'migrate': only a leaf has a retry policy"),
                                      "phase 'migrate', handler 'migrate' > 'back': its timeout is negative"));
}

TEST_F(HandlerPolicyTest, RunsOfHandlersAreMeasuredAndTheirFailuresCounted) {
  int run = 0;
  auto flaky = [&](TestContext& context, Item&, const State&) -> Awaitable<ReconcileState> {
    co_await context.clock().sleep_for(2s);
    co_return ++run == 1 ? failed(Error::network("no")) : failed("broken");
  };
  handle("migrate", Handlers::serial({}, {leaf("flaky", flaky)}));
  reconcile_to_the_end();
  const std::string labels = "handler=\"flaky\",machine=\"machine\",phase=\"migrate\"} ";
  const auto text = metrics.text();
  EXPECT_THAT(text, HasSubstr("hubferry_phase_handler_duration_seconds_count{" + labels + "2"));
  EXPECT_THAT(text, HasSubstr("hubferry_phase_handler_duration_seconds_sum{" + labels + "4"));
  EXPECT_THAT(text, HasSubstr("hubferry_phase_handler_failures_total{fatal=\"false\"," + labels + "1"));
  EXPECT_THAT(text, HasSubstr("hubferry_phase_handler_failures_total{fatal=\"true\"," + labels + "1"));
}

TEST_F(HandlerPolicyTest, ThousandsOfComponentsAreMeasuredAsOne) {
  std::vector<Handlers> many;
  for (int at = 0; at < 100; ++at) many.push_back(leaf("part-" + std::to_string(at), after(1s)));
  handle("migrate", Handlers::parallel({}, std::move(many)));
  reconcile_to_the_end();
  const auto text = metrics.text();
  EXPECT_THAT(text, HasSubstr("_duration_seconds_count{handler=\"migrate\",machine=\"machine\",phase=\"migrate\"} 1"));
  EXPECT_THAT(text, testing::Not(HasSubstr("part-7")));
}

}  // namespace
}  // namespace hubferry::phase::test
