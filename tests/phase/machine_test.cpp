#include "hubferry/phase/machine.hpp"

#include <gmock/gmock.h>

#include "phase_test.hpp"

namespace hubferry::phase::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MachineTest : public PhaseTest {};

TEST_F(MachineTest, WalksFromTheInitialPhaseToSuccess) {
  const auto result = reconcile_once();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::terminal);
  EXPECT_EQ(result.phase, "success");
  EXPECT_EQ(item().status.phase, "success");
  for (const auto* phase : {"initialize", "precheck", "migrate"}) {
    EXPECT_TRUE(state(phase).completed()) << phase;
    EXPECT_TRUE(state(phase).start_time.has_value()) << phase;
    EXPECT_TRUE(state(phase).end_time.has_value()) << phase;
  }
}

TEST_F(MachineTest, WritesTheStatusOncePerTransition) {
  const auto result = reconcile_once();
  EXPECT_EQ(result.writes, 3u);
  EXPECT_EQ(world.store.writes.size(), 3u);
  EXPECT_EQ(world.store.reads, 1u);
  EXPECT_EQ(world.store.writes[0].status.phase, "precheck");
  EXPECT_EQ(world.store.writes[1].status.phase, "migrate");
  EXPECT_EQ(world.store.writes[2].status.phase, "success");
}

TEST_F(MachineTest, HasNothingToDoForAResourceThatIsGone) {
  world.store.items.clear();
  EXPECT_EQ(reconcile_once().outcome, Reconciled::Outcome::gone);
  EXPECT_TRUE(world.ran.empty());
}

TEST_F(MachineTest, HasNothingToDoInATerminalPhase) {
  item().status.phase = "failed";
  const auto result = reconcile_once();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::terminal);
  EXPECT_EQ(result.writes, 0u);
  EXPECT_TRUE(world.ran.empty());
}

TEST_F(MachineTest, APhaseWithoutAHandlerEndsFatallyInItsErrorPhase) {
  definition.handlers.erase("precheck");
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "prefailed");
  EXPECT_TRUE(state("initialize").completed());
  EXPECT_TRUE(state("precheck").done);
  EXPECT_TRUE(state("precheck").failed);
  EXPECT_TRUE(state("precheck").fatal);
}

TEST_F(MachineTest, ACompositeWithoutComponentsIsFatal) {
  for (const bool parallel : {false, true}) {
    item() = Item{};
    handle("precheck", parallel ? Handlers::parallel({}, {}) : Handlers::serial({}, {}));
    reconcile_to_the_end();
    EXPECT_EQ(item().status.phase, "prefailed");
    EXPECT_TRUE(state("precheck").done);
    EXPECT_TRUE(state("precheck").failed);
    EXPECT_TRUE(state("precheck").fatal);
    EXPECT_THAT(state("precheck").error, HasSubstr("invalid composite handler"));
  }
}

TEST_F(MachineTest, ACompositeWithoutComponentsInsideAnotherIsFatalToo) {
  handle("migrate", Handlers::serial({}, {leaf("first", always(done())), Handlers::parallel(named("empty"), {})}));
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "failed");
  EXPECT_TRUE(state("migrate").component("empty").fatal);
  EXPECT_THAT(state("migrate").error, HasSubstr("invalid composite handler"));
}

TEST_F(MachineTest, NestedParallelHandlersOfASecondEachTakeOneSecondTogether) {
  handle("precheck", Handlers::parallel(
                         {}, {leaf("instances", after(1s)),
                              Handlers::parallel(named("network"), {leaf("vpc", after(1s)), leaf("subnet", after(1s))}),
                              leaf("storage", after(1s))}));
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "success");
  EXPECT_EQ(passed(), 1s);
  EXPECT_TRUE(state("precheck").component("network").component("subnet").completed());
  EXPECT_EQ(*state("precheck").end_time - *state("precheck").start_time, 1s);
}

TEST_F(MachineTest, AHandlerCanLimitHowManyComponentsRunAtOnce) {
  Metadata two_at_once;
  two_at_once.at_most = 2;
  handle("precheck", Handlers::parallel(two_at_once, {leaf("a", after(1s)), leaf("b", after(1s)), leaf("c", after(1s)),
                                                      leaf("d", after(1s))}));
  reconcile_to_the_end();
  EXPECT_EQ(passed(), 2s);
}

TEST_F(MachineTest, SerialStopsAtTheFirstErrorAndLeavesTheRestUntouched) {
  handle("migrate", Handlers::serial({}, {leaf("instances", always(done())),
                                          leaf("storage", always(failed("failed to migrate storage"))),
                                          leaf("network", always(done()))}));
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "failed");
  const auto& migrate = state("migrate");
  EXPECT_TRUE(migrate.failed);
  EXPECT_EQ(migrate.error, "failed to migrate storage");
  EXPECT_FALSE(migrate.component("instances").failed);
  EXPECT_TRUE(migrate.component("storage").failed);
  EXPECT_TRUE(migrate.component("storage").fatal);
  EXPECT_FALSE(migrate.component("network").failed);
  EXPECT_FALSE(migrate.component("network").done);
  EXPECT_FALSE(migrate.component("network").start_time.has_value());
}

// The seed's own scenario: not done at first, a network error, and then a real one.
TEST_F(MachineTest, ANonFatalErrorIsSeenByTheNextRunAndAFatalOneThenEndsThePhase) {
  auto not_done_at_first = [](TestContext&, Item&, const State& last) -> Awaitable<ReconcileState> {
    co_return last.never_ran() ? not_done() : done();
  };
  std::vector<std::pair<bool, bool>> seen;  // failed, fatal
  auto fails_twice = [&](TestContext&, Item&, const State& last) -> Awaitable<ReconcileState> {
    seen.emplace_back(last.failed, last.fatal);
    co_return failed(last.failed ? Error{"failed to migrate storage"} : Error::network("connection closed"));
  };
  handle("migrate", Handlers::serial({}, {leaf("containers", always(done())), leaf("instances", not_done_at_first),
                                          leaf("storage", fails_twice), leaf("network", always(done()))}));
  reconcile_to_the_end();
  EXPECT_THAT(seen, ElementsAre(std::pair{false, false}, std::pair{true, false}));
  EXPECT_EQ(item().status.phase, "failed");
  const auto& migrate = state("migrate");
  EXPECT_TRUE(migrate.failed);
  EXPECT_TRUE(migrate.component("containers").completed());
  EXPECT_TRUE(migrate.component("instances").completed());
  EXPECT_TRUE(migrate.component("storage").fatal);
  EXPECT_TRUE(migrate.component("network").never_ran());
  EXPECT_EQ(std::count(world.ran.begin(), world.ran.end(), "containers"), 1);
}

TEST_F(MachineTest, ANonFatalErrorStaysInThePhaseAndIsRetriedAfterTheDelay) {
  definition.delay = 7s;
  handle("precheck", Handlers::leaf({}, always(failed(Error::network("connection refused")))));
  const auto result = reconcile_once();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::again);
  EXPECT_EQ(result.after, 7s);
  EXPECT_EQ(item().status.phase, "precheck");
  EXPECT_TRUE(state("precheck").failed);
  EXPECT_FALSE(state("precheck").fatal);
  EXPECT_FALSE(state("precheck").done);
  EXPECT_EQ(state("precheck").error, "connection refused");
}

TEST_F(MachineTest, NothingIsWrittenIfNothingChanged) {
  handle("precheck", Handlers::leaf({}, always(failed(Error::network("connection refused")))));
  reconcile_once();
  const auto writes = world.store.writes.size();
  loop.run_for(1min);
  EXPECT_EQ(reconcile_once().writes, 0u);
  loop.run_for(1min);
  EXPECT_EQ(reconcile_once().writes, 0u);
  EXPECT_EQ(world.store.writes.size(), writes);
}

TEST_F(MachineTest, AHandlerThatIsNotDoneIsEnteredAgain) {
  int runs = 0;
  handle("migrate", Handlers::leaf({}, [&](TestContext&, Item&, const State& last) -> Awaitable<ReconcileState> {
           EXPECT_EQ(last.never_ran(), runs == 0);
           co_return ++runs < 4 ? not_done() : done();
         }));
  reconcile_to_the_end();
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(item().status.phase, "success");
  // Two for the phases before, one for the first run of this one, and one for its end.
  EXPECT_EQ(world.store.writes.size(), 4u);
}

TEST_F(MachineTest, AHandlerMayChooseItsRequeueDelay) {
  handle("precheck", Handlers::parallel({}, {leaf("slow", always(not_done(10min))), leaf("fast", always(not_done(2s))),
                                             leaf("whenever", always(not_done()))}));
  EXPECT_EQ(reconcile_once().after, 2s);
}

TEST_F(MachineTest, ADoneComponentIsNotRunAgain) {
  auto second_time = [](TestContext& context, Item&, const State& last) -> Awaitable<ReconcileState> {
    context->ran.push_back(context.handler());
    co_return last.never_ran() ? not_done() : done();
  };
  handle("migrate", Handlers::parallel({}, {leaf("once", always(done())), leaf("twice", second_time)}));
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "success");
  EXPECT_EQ(std::count(world.ran.begin(), world.ran.end(), "once"), 1);
  EXPECT_EQ(std::count(world.ran.begin(), world.ran.end(), "twice"), 2);
}

TEST_F(MachineTest, GoToTakesADeclaredTransitionWhateverTheTwoTablesSay) {
  definition.forced = {{"initialize", "migrate"}};
  handle("initialize", Handlers::serial({}, {leaf("jump", always(go_to("migrate"))), leaf("rest", always(done()))}));
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "success");
  EXPECT_TRUE(state("precheck").never_ran());
  EXPECT_TRUE(state("initialize").component("rest").never_ran());
}

TEST_F(MachineTest, NextToAPhaseThatDoesNotExistIsAFatalErrorThatNamesIt) {
  handle("precheck", Handlers::leaf({}, always(go_to("nowhere"))));
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "prefailed");
  EXPECT_THAT(state("precheck").error, HasSubstr("'nowhere'"));
}

TEST_F(MachineTest, GoToAlongAnUndeclaredTransitionIsAFatalErrorThatNamesIt) {
  handle("precheck", leaf("jump", always(go_to("initialize"))));
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "prefailed");
  EXPECT_TRUE(state("precheck").fatal);
  EXPECT_THAT(state("precheck").error, HasSubstr("'jump' goes from phase 'precheck' to phase 'initialize'"));
  EXPECT_THAT(state("precheck").error, HasSubstr("add it to `forced`"));
}

TEST_F(MachineTest, GoToTheSuccessorIsDeclaredLikeAnyOther) {
  handle("precheck", Handlers::leaf({}, always(go_to("migrate"))));
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "prefailed");
}

TEST_F(MachineTest, AHandlerKnowsTheSuccessorsOfItsPhase) {
  std::vector<Phase> known;
  handle("precheck", Handlers::leaf({}, [&](TestContext& context, Item&, const State&) -> Awaitable<ReconcileState> {
           known = {context.successor(), context.error_successor()};
           co_return done();
         }));
  reconcile_to_the_end();
  EXPECT_THAT(known, ElementsAre("migrate", "prefailed"));
}

// Going back is a second visit: the first one's results must not make the handlers idle.
TEST_F(MachineTest, APhaseThatIsEnteredAgainStartsAfresh) {
  int rounds = 0;
  definition.forced = {{"migrate", "precheck"}};
  handle("precheck", Handlers::serial({}, {leaf("check", always(done()))}));
  handle("migrate", Handlers::leaf({}, [&](TestContext&, Item&, const State&) -> Awaitable<ReconcileState> {
           co_return ++rounds == 1 ? go_to("precheck") : done();
         }));
  reconcile_to_the_end();
  EXPECT_EQ(std::count(world.ran.begin(), world.ran.end(), "check"), 2);
  EXPECT_EQ(item().status.phase, "success");
}

TEST_F(MachineTest, SiblingsOfAFatallyFailedComponentAreCancelledAndStayResumable) {
  bool cancelled = false;
  bool asked_in_time = false;
  auto patient = [&](TestContext& context, Item&, const State&) -> Awaitable<ReconcileState> {
    try {
      co_await context.clock().sleep_for(1h);
    } catch (const boost::system::system_error&) {
      cancelled = true;
      asked_in_time = context.stopping();
      throw;
    }
    co_return done();
  };
  handle("migrate", Handlers::parallel(
                        {}, {leaf("patient", patient), leaf("broken", after(2s, failed("disk on fire"))),
                             Handlers::serial(named("steps"), {leaf("quick", after(1s)), leaf("slow", after(1h))})}));
  reconcile_to_the_end();
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(asked_in_time);
  EXPECT_EQ(passed(), 2s);
  EXPECT_EQ(item().status.phase, "failed");
  const auto& migrate = state("migrate");
  EXPECT_EQ(migrate.error, "disk on fire");
  EXPECT_FALSE(migrate.component("patient").done);
  EXPECT_FALSE(migrate.component("patient").failed);
  EXPECT_FALSE(migrate.component("patient").never_ran());
  // What a cancelled composite had done by then is not lost.
  EXPECT_FALSE(migrate.component("steps").done);
  EXPECT_TRUE(migrate.component("steps").component("quick").completed());
  EXPECT_FALSE(migrate.component("steps").component("slow").failed);
}

TEST_F(MachineTest, ANonFatalFailureLeavesSiblingsAlone) {
  handle("migrate", Handlers::parallel(
                        {}, {leaf("flaky", always(failed(Error::network("timeout")))), leaf("steady", after(1min))}));
  const auto result = reconcile_once();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::again);
  EXPECT_TRUE(state("migrate").component("steady").completed());
  EXPECT_TRUE(state("migrate").component("flaky").failed);
  EXPECT_FALSE(state("migrate").fatal);
}

TEST_F(MachineTest, SeveralErrorsAreListed) {
  handle("precheck", Handlers::parallel({}, {leaf("one", always(failed(Error::network("first trouble")))),
                                             leaf("two", always(failed(Error::network("second trouble"))))}));
  reconcile_once();
  EXPECT_EQ(state("precheck").error, "2 errors: first trouble; second trouble");
  EXPECT_FALSE(state("precheck").fatal);
}

// A handler that is done in the very turn in which its sibling fails has done its work.
TEST_F(MachineTest, AComponentThatFinishesInTheTurnOfItsCancellationIsDone) {
  handle("migrate", Handlers::parallel({}, {leaf("broken", after(1s, failed("no"))), leaf("just in time", after(1s))}));
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "failed");
  EXPECT_TRUE(state("migrate").component("just in time").completed());
}

TEST_F(MachineTest, WhatAHandlerThrowsIsItsError) {
  handle("migrate", Handlers::leaf({}, [](TestContext&, Item&, const State&) -> Awaitable<ReconcileState> {
           throw std::runtime_error("a bug");
           co_return done();
         }));
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "failed");
  EXPECT_EQ(state("migrate").error, "a bug");
}

// An operation aborted elsewhere is a network error, not our own cancellation.
TEST_F(MachineTest, AForeignOperationAbortedIsANonFatalError) {
  handle("migrate", Handlers::leaf({}, [](TestContext&, Item&, const State&) -> Awaitable<ReconcileState> {
           async::throw_cancelled();
           co_return done();
         }));
  EXPECT_EQ(reconcile_once().outcome, Reconciled::Outcome::again);
  EXPECT_TRUE(state("migrate").failed);
  EXPECT_FALSE(state("migrate").fatal);
}

TEST_F(MachineTest, TheDefinitionDecidesWhichErrorsAreFatal) {
  definition.fatal = [](const Error& error) { return error.message != "try again"; };
  handle("precheck", Handlers::leaf({}, always(failed("try again"))));
  EXPECT_EQ(reconcile_once().outcome, Reconciled::Outcome::again);
  handle("precheck", Handlers::leaf({}, always(failed(Error::network("enough")))));
  EXPECT_EQ(reconcile_once().outcome, Reconciled::Outcome::terminal);
  EXPECT_EQ(item().status.phase, "prefailed");
}

TEST_F(MachineTest, AHandlersOwnFieldsAreKeptInItsState) {
  auto notes = [](TestContext&, Item&, const State& last) -> Awaitable<ReconcileState> {
    ReconcileState result;
    if (last.never_ran()) {
      result.extra["objects"] = json::array{"ins-1", "ins-2"};
    } else {
      result.done = last.extra.contains("objects");
    }
    co_return result;
  };
  handle("migrate", Handlers::serial({}, {leaf("instances", notes)}));
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "success");
  EXPECT_TRUE(state("migrate").component("instances").extra.contains("objects"));
}

TEST_F(MachineTest, AStepWithACheckpointIsWrittenBeforeTheNextOneStarts) {
  Metadata careful = named("careful");
  careful.checkpoint = true;
  std::size_t writes_at_second = 0;
  auto second = [&](TestContext& context, Item&, const State&) -> Awaitable<ReconcileState> {
    writes_at_second = context->store.writes.size();
    co_return done();
  };
  handle("migrate", Handlers::serial({}, {Handlers::leaf(careful, always(done())), leaf("second", second)}));
  EXPECT_EQ(reconcile_once().outcome, Reconciled::Outcome::terminal);
  ASSERT_EQ(writes_at_second, 3u);
  EXPECT_TRUE(world.store.writes[2].status.state["migrate"].component("careful").completed());
  EXPECT_EQ(std::count(world.ran.begin(), world.ran.end(), "careful"), 1);
}

TEST_F(MachineTest, UpdatedAloneIsReasonEnoughToWrite) {
  handle("precheck", Handlers::leaf({}, [](TestContext&, Item& item, const State&) -> Awaitable<ReconcileState> {
           ReconcileState result;
           result.updated = ++item.status.counter <= 2;
           co_return result;
         }));
  reconcile_once();
  EXPECT_EQ(item().status.counter, 1);
  EXPECT_EQ(reconcile_once().writes, 1u);
  EXPECT_EQ(item().status.counter, 2);
  EXPECT_EQ(reconcile_once().writes, 0u);
}

TEST_F(MachineTest, AMachineThatGoesInCirclesYieldsToOthers) {
  definition.forced = {{"migrate", "precheck"}};
  handle("migrate", Handlers::leaf({}, always(go_to("precheck"))));
  const auto result = reconcile_once();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::again);
  EXPECT_EQ(result.after, 0s);
  EXPECT_EQ(result.runs, 100u);
}

TEST_F(MachineTest, TransitionsAreReportedOnceTheyAreWritten) {
  definition.normalize();
  std::vector<std::string> reported;
  MachineOptions options;
  options.name = "test";
  options.on_transition = [&](const Transition& transition) {
    EXPECT_EQ(item().status.phase, transition.to);
    reported.push_back(transition.from + ">" + transition.to);
  };
  Machine<World, Item> machine{definition, world, env(), options};
  loop.run(machine.reconcile(key));
  EXPECT_THAT(reported, ElementsAre("initialize>precheck", "precheck>migrate", "migrate>success"));
  EXPECT_THAT(metrics.text(), HasSubstr("hubferry_phase_transitions_total{machine=\"test\",phase=\"success\"} 1"));
}

TEST_F(MachineTest, AResourceThatCannotBeReadIsAFailureToRetry) {
  definition.fetch_resource = [](World&, Key) -> Awaitable<Result<std::optional<Item>>> {
    co_return Error::network("no route to host");
  };
  const auto result = reconcile_once();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::failed);
  EXPECT_EQ(result.error.message, "no route to host");
}

}  // namespace
}  // namespace hubferry::phase::test
