#include <gmock/gmock.h>

#include "phase_test.hpp"
#include "support/edge_coverage.hpp"

namespace hubferry::phase::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A failed item whose counter is 7 asks for another attempt; one whose counter is 8, for a new start.
class ResumeTest : public PhaseTest {
 protected:
  ResumeTest() {
    definition.resumptions = {
        {"failed", "migrate", "retry requested", [](const Item& item) { return item.status.counter == 7; },
         [](World&, Item& item, async::WallTime) { item.status.counter = 0; }},
        {"failed", "precheck", "restart requested", [](const Item& item) { return item.status.counter == 8; }, {}}};
    item().status.phase = "failed";
  }

  Reconciled run() {
    definition.normalize();
    MachineOptions options;
    options.on_transition = [this](const Transition& transition) {
      taken.push_back(to_string(Edge{transition.from, transition.to, transition.edge}));
    };
    Machine<World, Item> machine{definition, world, env(), options};
    return loop.run(machine.reconcile(key));
  }

  std::vector<std::string> taken;
};

TEST_F(ResumeTest, AnEndedMachineThatNobodyAsksForStaysEndedAndUnwritten) {
  const auto result = run();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::terminal);
  EXPECT_EQ(result.writes, 0u);
}

TEST_F(ResumeTest, AResumptionIsATransitionThatIsWrittenAndReportedBeforeTheHandlerRuns) {
  item().status.counter = 7;
  item().status.state["migrate"].done = true;  // of the first time
  std::size_t writes_before_handler = 0;
  handle("migrate",
         Handlers::leaf({}, [&](TestContext& context, Item& item, const State& last) -> Awaitable<ReconcileState> {
           writes_before_handler = context->store.writes.size();
           EXPECT_EQ(item.status.counter, 0);
           EXPECT_TRUE(last == State{});
           co_return done();
         }));
  EXPECT_EQ(run().phase, "success");
  EXPECT_EQ(writes_before_handler, 1u);
  EXPECT_EQ(world.store.writes.at(0).status.phase, "migrate");
  EXPECT_THAT(taken, ElementsAre("failed -> migrate (resume)", "migrate -> success (normal)"));
  EXPECT_THAT(metrics.text(), HasSubstr("hubferry_phase_transitions_total{machine=\"machine\",phase=\"migrate\"} 1"));
}

TEST_F(ResumeTest, TheConditionDecidesWhereItLeads) {
  item().status.counter = 8;
  EXPECT_EQ(run().phase, "success");
  EXPECT_EQ(taken.at(0), "failed -> precheck (resume)");
}

TEST_F(ResumeTest, AMereReadChangesNothing) {
  item().status.counter = 7;
  world.store.before_write = [](Item&) { return Written::failed(Error{"forbidden"}); };
  const auto result = run();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::failed);
  EXPECT_EQ(item().status.phase, "failed");
  EXPECT_THAT(taken, ElementsAre());
}

TEST_F(ResumeTest, AWriteConflictDecidesAnewWithWhatIsThereNow) {
  item().status.counter = 7;
  world.store.before_write = [this](Item&) {
    world.store.before_write = {};
    ++item().version;
    item().status.counter = 0;  // somebody has withdrawn the request
    return std::nullopt;
  };
  EXPECT_EQ(run().outcome, Reconciled::Outcome::terminal);
  EXPECT_EQ(item().status.phase, "failed");
  EXPECT_THAT(taken, ElementsAre());
}

TEST_F(ResumeTest, AConflictThatLeavesTheRequestStandingIsWrittenAgain) {
  item().status.counter = 7;
  world.store.before_write = [this](Item&) {
    world.store.before_write = {};
    ++item().version;
    return std::nullopt;
  };
  EXPECT_EQ(run().phase, "success");
  EXPECT_THAT(taken, ElementsAre("failed -> migrate (resume)", "migrate -> success (normal)"));
}

TEST_F(ResumeTest, AWriteWithoutAnAnswerIsReportedOnceItIsFoundToHaveHappened) {
  item().status.counter = 7;
  world.store.after_write = [this](Item&) {
    world.store.after_write = {};
    return Written::ambiguous(Error{"connection reset"});
  };
  EXPECT_EQ(run().phase, "success");
  EXPECT_THAT(taken, ElementsAre("failed -> migrate (resume)", "migrate -> success (normal)"));
}

// Else it would keep the loop, and the server, busy with nothing else.
TEST_F(ResumeTest, OneThatEndsAgainAndIsStillAskedForPausesFirst) {
  item().status.counter = 8;
  handle("precheck", Handlers::leaf({}, [](TestContext&, Item&, const State&) -> Awaitable<ReconcileState> {
           co_return go_to("failed");
         }));
  definition.forced = {{"precheck", "failed"}};
  const auto result = run();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::again);
  EXPECT_EQ(result.after, 5s);
  EXPECT_THAT(taken, ElementsAre("failed -> precheck (resume)", "precheck -> failed (forced)"));
}

TEST_F(ResumeTest, AResourceThatIsGoneIsNotResumed) {
  item().status.counter = 7;
  world.store.before_write = [](Item&) { return Written::gone(); };
  EXPECT_EQ(run().outcome, Reconciled::Outcome::gone);
}

/// A hand-written definition whose resumption its tables do not declare.
TEST_F(ResumeTest, AnUndeclaredResumptionIsAnErrorThatNamesIt) {
  class Careless final : public Definition<World, Item> {
   public:
    explicit Careless(const Tables& tables) : tables_(tables) {}
    const Tables& tables() const override { return tables_; }
    const HandlerNode* handler_for(const Phase&) const override { return nullptr; }
    Awaitable<Result<std::optional<Item>>> fetch(World& world, Key key, bool) override {
      return world.store.fetch(std::move(key));
    }
    Awaitable<Written> persist(World&, Item&) override { co_return Written::ok(); }
    Phase phase(const Item& item) const override { return item.status.phase; }
    void set_phase(Item& item, const Phase& to) override { item.status.phase = to; }
    State state(const Item&, const Phase&) const override { return {}; }
    void set_state(Item&, const Phase&, const State&) override {}
    std::optional<Phase> resumption(const Item&) const override { return "initialize"; }

   private:
    const Tables& tables_;
  };
  definition.normalize();
  Careless careless{definition.tables()};
  Machine<World, Item> machine{careless, world, env()};
  const auto result = loop.run(machine.reconcile(key));
  EXPECT_EQ(result.outcome, Reconciled::Outcome::failed);
  EXPECT_THAT(result.error.message, HasSubstr("'failed' cannot be resumed in phase 'initialize'"));
}

// The framework's own example of a test that holds all transitions of a definition against those that were taken.
TEST_F(ResumeTest, EveryTransitionOfADefinitionIsTakenByItsTests) {
  definition.forced = {{"migrate", "precheck", "once more"}};
  definition.normalize();
  EdgeCoverage coverage;
  EXPECT_THAT(coverage.missing(definition.tables()), HasSubstr("failed -> migrate (resume)\n"));
  const auto take = [&](const Phase& from, std::map<Phase, ReconcileState> results, int counter = 0) {
    item() = Item{};
    item().status.phase = from;
    item().status.counter = counter;
    for (const auto* phase : {"initialize", "precheck", "migrate"}) {
      const auto result = results.contains(phase) ? results.at(phase) : done();
      handle(phase,
             Handlers::leaf(
                 {}, [result, first = true](TestContext&, Item&, const State&) mutable -> Awaitable<ReconcileState> {
                   co_return std::exchange(first, false) ? result : done();
                 }));
    }
    definition.normalize();
    MachineOptions options;
    options.on_transition = coverage.recorder();
    Machine<World, Item> machine{definition, world, env(), options};
    loop.run(machine.reconcile(key));
  };
  take("", {});
  take("", {{"initialize", failed("broken")}});
  take("", {{"precheck", failed("broken")}});
  take("", {{"migrate", failed("broken")}});
  take("migrate", {{"migrate", go_to("precheck")}});
  take("failed", {}, 7);
  EXPECT_EQ(coverage.missing(definition.tables()), "failed -> precheck (resume)\n");
  take("failed", {}, 8);
  EXPECT_EQ(coverage.missing(definition.tables()), "");
}

}  // namespace
}  // namespace hubferry::phase::test
