// Write conflicts, lost responses, and crashes between two writes.
#include <gmock/gmock.h>

#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"
#include "phase_test.hpp"

namespace hubferry::phase::test {
namespace {

class PersistenceTest : public PhaseTest {
 protected:
  PersistenceTest() {
    definition.carry_changes = [](Item& fresh, const Item& mine) {
      fresh.status.counter = std::max(fresh.status.counter, mine.status.counter);
    };
  }

  std::ptrdiff_t runs_of(const std::string& name) { return std::count(world.ran.begin(), world.ran.end(), name); }

  /// Lets somebody else write just before our write number `at`.
  void meddle_before_write(std::size_t at, std::function<void(Item&)> change) {
    world.store.before_write = [this, at, change, count = std::size_t{0}](Item&) mutable -> std::optional<Written> {
      if (count++ == at) {
        change(item());
        ++item().version;
      }
      return std::nullopt;
    };
  }
};

TEST_F(PersistenceTest, AConflictRefetchesWithoutRepeatingWhatIsDone) {
  handle("migrate", Handlers::serial({}, {leaf("a", always(done())), leaf("b", always(done()))}));
  meddle_before_write(2, [](Item& item) { item.status.counter = 42; });
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "success");
  EXPECT_EQ(item().status.counter, 42);
  EXPECT_EQ(runs_of("a"), 1);
  EXPECT_EQ(runs_of("b"), 1);
  EXPECT_TRUE(state("migrate").component("a").completed());
}

TEST_F(PersistenceTest, AComponentThatSomebodyElseCompletedMeanwhileIsKept) {
  handle("migrate", Handlers::parallel({}, {leaf("ours", always(done())), leaf("theirs", always(not_done()))}));
  meddle_before_write(2, [](Item& item) {
    auto& theirs = item.status.state["migrate"].components["theirs"];
    theirs.done = true;
    theirs.start_time = async::WallTime{};
  });
  const auto result = reconcile_once();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::terminal);
  EXPECT_EQ(item().status.phase, "success");
  EXPECT_TRUE(state("migrate").completed());
  EXPECT_EQ(runs_of("ours"), 1);
}

TEST_F(PersistenceTest, APhaseThatSomebodyElseHasSetStandsAndOurResultIsRecorded) {
  meddle_before_write(2, [](Item& item) { item.status.phase = "failed"; });
  const auto result = reconcile_once();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::terminal);
  EXPECT_EQ(item().status.phase, "failed");
  EXPECT_TRUE(state("migrate").completed());
}

TEST_F(PersistenceTest, AWriteWithoutAnAnswerThatHappenedIsNotRepeated) {
  unsigned writes = 0;
  world.store.after_write = [&](Item& item) -> std::optional<Written> {
    if (++writes != 2) return std::nullopt;
    --item.version;  // we have not heard of it
    return Written::ambiguous();
  };
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "success");
  EXPECT_EQ(world.store.writes.size(), 3u);
  EXPECT_EQ(runs_of("migrate"), 1);
  EXPECT_EQ(runs_of("precheck"), 1);
}

// Events, logs and metrics depend on the report: a lost response must neither drop nor duplicate it.
TEST_F(PersistenceTest, ATransitionWhoseResponseGotLostIsReportedOnceWhetherItHappenedOrNot) {
  for (const bool happened : {true, false}) {
    world.store = {};
    world.store.items[key];
    unsigned writes = 0;
    auto loses_the_second = [&](Item& item) -> std::optional<Written> {
      if (++writes != 2) return std::nullopt;
      if (happened) --item.version;
      return Written::ambiguous();
    };
    (happened ? world.store.after_write : world.store.before_write) = loses_the_second;
    definition.normalize();
    std::vector<std::string> reported;
    MachineOptions options;
    options.on_transition = [&](const Transition& transition) {
      EXPECT_TRUE(transition.state.completed());
      reported.push_back(transition.from + ">" + transition.to);
    };
    Machine<World, Item> machine{definition, world, env(), options};
    loop.run(machine.reconcile(key));
    EXPECT_THAT(reported, testing::ElementsAre("initialize>precheck", "precheck>migrate", "migrate>success"));
  }
}

TEST_F(PersistenceTest, ATransitionThatSomebodyElseMadeWhileOurAnswerWasLostIsNotOurs) {
  unsigned writes = 0;
  world.store.before_write = [&](Item&) -> std::optional<Written> {
    if (++writes != 2) return std::nullopt;
    item().status.phase = "migrate";
    ++item().version;
    return Written::ambiguous();
  };
  definition.normalize();
  std::vector<std::string> reported;
  MachineOptions options;
  options.on_transition = [&](const Transition& transition) { reported.push_back(transition.to); };
  Machine<World, Item> machine{definition, world, env(), options};
  loop.run(machine.reconcile(key));
  EXPECT_THAT(reported, testing::ElementsAre("precheck", "success"));
}

TEST_F(PersistenceTest, TheLastStepOfAnInnerCompositeIsWrittenBeforeTheOuterContinues) {
  Metadata careful = named("careful");
  careful.checkpoint = true;
  bool on_record = false;
  auto next = [&](TestContext& context, Item&, const State&) -> Awaitable<ReconcileState> {
    const auto& written = context->store.writes.back().status.state;
    const auto found = written.find("migrate");
    on_record = found != written.end() && found->second.component("inner").component("careful").completed();
    co_return done();
  };
  handle("migrate", Handlers::serial({}, {Handlers::serial(named("inner"), {leaf("first", always(done())),
                                                                            Handlers::leaf(careful, always(done()))}),
                                          leaf("next", next)}));
  EXPECT_EQ(reconcile_once().outcome, Reconciled::Outcome::terminal);
  EXPECT_TRUE(on_record);
  EXPECT_EQ(runs_of("careful"), 1);
}

TEST_F(PersistenceTest, AWriteWithoutAnAnswerThatDidNotHappenIsMade) {
  unsigned attempts = 0;
  world.store.before_write = [&](Item&) -> std::optional<Written> {
    return ++attempts == 2 ? std::optional{Written::ambiguous()} : std::nullopt;
  };
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "success");
  EXPECT_EQ(world.store.writes.size(), 3u);
  EXPECT_EQ(runs_of("precheck"), 1);
}

TEST_F(PersistenceTest, AWriteThatFailsTransientlyIsRetriedWithTheResultAtHand) {
  unsigned attempts = 0;
  world.store.before_write = [&](Item&) -> std::optional<Written> {
    return ++attempts <= 5 ? std::optional{Written::failed(Error::network("503"))} : std::nullopt;
  };
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "success");
  EXPECT_EQ(runs_of("initialize"), 1);
  EXPECT_GT(passed(), 5s);
}

TEST_F(PersistenceTest, AWriteThatCanNeverSucceedEndsTheReconcileWithItsError) {
  world.store.before_write = [](Item&) { return Written::failed(Error{"422: too large"}); };
  const auto result = reconcile_once();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::failed);
  EXPECT_EQ(result.error.message, "422: too large");
}

TEST_F(PersistenceTest, AnExceptionOfAWriteIsAmbiguous) {
  unsigned attempts = 0;
  world.store.before_write = [&](Item&) -> std::optional<Written> {
    if (++attempts == 1) throw std::runtime_error("connection reset");
    return std::nullopt;
  };
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "success");
  EXPECT_EQ(runs_of("initialize"), 1);
}

TEST_F(PersistenceTest, AResourceThatVanishesUnderItsHandlerIsGone) {
  handle("precheck", Handlers::leaf({}, [this](TestContext&, Item&, const State&) -> Awaitable<ReconcileState> {
           world.store.items.clear();
           co_return done();
         }));
  EXPECT_EQ(reconcile_once().outcome, Reconciled::Outcome::gone);
}

TEST_F(PersistenceTest, ANewObjectOfTheSameNameIsAnotherMachine) {
  definition.same_object = [](const Item& one, const Item& other) {
    return one.status.counter == other.status.counter;
  };
  meddle_before_write(1, [](Item& item) {
    item = Item{};
    item.status.counter = 1;
    item.version = 100;
  });
  const auto result = reconcile_once();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::again);
  EXPECT_EQ(item().status.phase, "");
}

// Kills the process after each write in turn: whatever is written must lead to the same end.
TEST_F(PersistenceTest, ACrashBetweenAnyTwoWritesEndsTheSame) {
  Metadata careful = named("copy");
  careful.checkpoint = true;
  handle("precheck", Handlers::parallel({}, {leaf("vpc", after(1s)), leaf("subnet", after(2s))}));
  handle("migrate", Handlers::serial({}, {Handlers::leaf(careful, after(1s)), leaf("switch", after(1s))}));
  definition.normalize();
  for (unsigned crash_after = 0; crash_after <= 4; ++crash_after) {
    item() = Item{};
    world.ran.clear();
    unsigned writes = 0;
    async::Event dead;
    world.store.after_write = [&](Item&) -> std::optional<Written> {
      if (writes++ == crash_after) dead.set();
      return std::nullopt;
    };
    Machine<World, Item> machine{definition, world, env()};
    auto life = [&]() -> Awaitable<> {
      async::TaskScope scope{co_await async::asio::this_coro::executor};
      auto reconcile = [&]() -> Awaitable<> { co_await machine.reconcile(key); };
      auto reaper = [&]() -> Awaitable<> {
        co_await dead.wait();
        scope.stop();
      };
      auto both = [&]() -> Awaitable<> {
        co_await reconcile();
        dead.set();
      };
      scope.spawn(both());
      scope.spawn(reaper());
      co_await scope.join();
    };
    loop.run(life());
    const auto written = item().status.state;
    reconcile_to_the_end();
    EXPECT_EQ(item().status.phase, "success") << crash_after;
    for (const auto* name : {"vpc", "subnet", "copy", "switch"}) {
      const Phase phase = runs_of(name) == 0                                                         ? ""
                          : (std::string_view{name} == "copy" || std::string_view{name} == "switch") ? "migrate"
                                                                                                     : "precheck";
      const auto before = written.find(phase);
      const bool was_written = before != written.end() && before->second.component(name).completed();
      // Only a run whose end was never written may be repeated.
      if (was_written) EXPECT_EQ(runs_of(name), 1) << name << " after crash " << crash_after;
    }
  }
}

}  // namespace
}  // namespace hubferry::phase::test
