#include <gmock/gmock.h>

#include "phase_test.hpp"

namespace hubferry::phase::test {
namespace {

using testing::ElementsAre;

class SaveTest : public PhaseTest {
 protected:
  SaveTest() {
    definition.carry_changes = [](Item& fresh, const Item& mine) { fresh.status.counter = mine.status.counter; };
  }
  [[nodiscard]] std::vector<int> written() const {
    std::vector<int> counters;
    for (const auto& item : world.store.writes) counters.push_back(item.status.counter);
    return counters;
  }
};

TEST_F(SaveTest, ProgressInsideALongHandlerIsWrittenWhenItIsSaved) {
  handle("initialize",
         Handlers::leaf({}, [](TestContext& context, Item& item, const State&) -> Awaitable<ReconcileState> {
           for (item.status.counter = 1; item.status.counter < 3; ++item.status.counter) {
             co_await context.save();
             co_await context.clock().sleep_for(1min);
           }
           co_return done();
         }));
  reconcile_to_the_end();
  EXPECT_THAT(written(), ElementsAre(1, 2, 3, 3, 3));
  EXPECT_EQ(world.store.writes.at(0).status.phase, "initialize");
}

TEST_F(SaveTest, WhatIsWrittenSaysWhichStepRunsWithoutCountingTheStepsBeforeItAsCompleted) {
  auto first = [](TestContext&, Item&, const State&) -> Awaitable<ReconcileState> { co_return done(); };
  auto second = [](TestContext& context, Item&, const State&) -> Awaitable<ReconcileState> {
    co_await context.save();
    co_return done();
  };
  auto third = [](TestContext&, Item&, const State&) -> Awaitable<ReconcileState> { co_return done(); };
  handle("precheck", Handlers::serial({}, {leaf("first", first), leaf("second", second), leaf("third", third)}));
  EXPECT_EQ(reconcile_to_the_end().phase, "success");
  const auto has_it = [](const Item& item) { return item.status.state.contains("precheck"); };
  const auto first_write = std::ranges::find_if(world.store.writes, has_it);
  ASSERT_NE(first_write, world.store.writes.end());
  const auto& saved = first_write->status.state.at("precheck");
  EXPECT_TRUE(saved.component("second").start_time);
  EXPECT_FALSE(saved.component("third").start_time);
  EXPECT_FALSE(saved.component("first").done) << "the next process would skip it";
  EXPECT_FALSE(saved.component("second").done);
  EXPECT_TRUE(state("precheck").component("first").done);
}

TEST_F(SaveTest, OnAConflictTheChangesAreReappliedToTheLatestVersion) {
  handle("precheck",
         Handlers::leaf({}, [this](TestContext& context, Item& item, const State&) -> Awaitable<ReconcileState> {
           item.status.counter = 5;
           this->item().status.state["somebody's"].done = true;
           ++this->item().version;
           co_await context.save();
           EXPECT_TRUE(item.status.state["somebody's"].done);
           EXPECT_EQ(this->item().status.counter, 5);
           co_return done();
         }));
  EXPECT_EQ(reconcile_to_the_end().phase, "success");
  EXPECT_TRUE(state("somebody's").done);
}

TEST_F(SaveTest, AWriteThatFailsIsMadeUpForByTheNext) {
  handle("precheck",
         Handlers::leaf({}, [this](TestContext& context, Item& item, const State&) -> Awaitable<ReconcileState> {
           item.status.counter = 5;
           world.store.before_write = [](Item&) { return Written::failed(Error::network("no route to host")); };
           co_await context.save();
           world.store.before_write = {};
           EXPECT_EQ(this->item().status.counter, 0);
           co_return done();
         }));
  EXPECT_EQ(reconcile_to_the_end().phase, "success");
  EXPECT_EQ(item().status.counter, 5);
}

TEST_F(SaveTest, WhatChangesWhileAWriteIsInFlightIsNotLost) {
  definition.persist_status = [this](World& world, Item& item) -> Awaitable<Written> {
    co_await loop.clock().sleep_for(1s);
    co_return co_await world.store.persist(key, item);
  };
  auto saver = [](TestContext& context, Item& item, const State&) -> Awaitable<ReconcileState> {
    item.status.counter = 1;
    co_await context.save();
    EXPECT_EQ(item.status.counter, 2);
    co_return done();
  };
  auto meanwhile = [](TestContext& context, Item& item, const State&) -> Awaitable<ReconcileState> {
    co_await context.clock().sleep_for(500ms);
    item.status.counter = 2;
    co_return done();
  };
  handle("migrate", Handlers::parallel({}, {leaf("saver", saver), leaf("meanwhile", meanwhile)}));
  EXPECT_EQ(reconcile_to_the_end().phase, "success");
  EXPECT_EQ(item().status.counter, 2);
}

TEST_F(SaveTest, ComponentsThatSaveAtOnceWriteOneAfterTheOther) {
  int in_flight = 0;
  int most = 0;
  definition.persist_status = [&](World& world, Item& item) -> Awaitable<Written> {
    most = std::max(most, ++in_flight);
    co_await loop.clock().sleep_for(1s);
    auto written = co_await world.store.persist(key, item);
    --in_flight;
    co_return written;
  };
  auto saver = [](TestContext& context, Item& item, const State&) -> Awaitable<ReconcileState> {
    ++item.status.counter;
    co_await context.save();
    co_return done();
  };
  handle("migrate", Handlers::parallel({}, {leaf("a", saver), leaf("b", saver), leaf("c", saver)}));
  EXPECT_EQ(reconcile_to_the_end().phase, "success");
  EXPECT_EQ(most, 1);
  EXPECT_EQ(item().status.counter, 3);
}

}  // namespace
}  // namespace hubferry::phase::test
