#include "hubferry/phase/decision.hpp"

#include "phase_test.hpp"

namespace hubferry::phase::test {
namespace {

class DecisionTest : public PhaseTest {
 protected:
  void SetUp() override { definition.normalize(); }

  ReconcileState result(bool is_done, Boxed<Error> error = {}) {
    ReconcileState made;
    made.phase = "precheck";
    made.handler = "precheck";
    made.start_time = made.end_time = loop.clock().wall_now();
    made.done = is_done;
    made.error = std::move(error);
    judge(definition, made);
    return made;
  }
};

TEST_F(DecisionTest, TheTablesAndTheResultDecide) {
  struct Row {
    ReconcileState result;
    Phase to;
    bool moved;
  };
  definition.forced = {{"precheck", "failed"}};
  definition.normalize();
  auto forced = result(false, Error::network("no"));
  forced.next = "failed";
  const Row rows[] = {
      {result(true), "migrate", true},
      {result(false), "precheck", false},
      {result(false, Error{"broken"}), "prefailed", true},
      {result(true, Error{"broken"}), "prefailed", true},
      {result(false, Error::network("no")), "precheck", false},
      {result(true, Error::network("no")), "precheck", false},
      {forced, "failed", true},
  };
  for (const auto& row : rows) {
    const auto decision = decide(definition, State{}, row.result);
    EXPECT_EQ(decision.phase, row.to);
    EXPECT_EQ(decision.moved, row.moved);
    EXPECT_EQ(decision.again, row.moved ? 0s : 5s);
  }
}

TEST_F(DecisionTest, AServersRetryAfterIsRespected) {
  auto error = Error::network("slow down");
  error.retry_after = 90s;
  EXPECT_EQ(decide(definition, State{}, result(false, error)).again, 90s);
}

// A machine without a requeue delay would occupy the loop.
TEST_F(DecisionTest, TheRequeueDelayHasAMinimum) {
  auto error = Error::network("try again");
  error.retry_after = 0s;
  EXPECT_EQ(decide(definition, State{}, result(false, error)).again, least_requeue_delay);
  for (const async::Duration wish : {0s, -5s}) {
    auto impatient = result(false);
    impatient.requeue_after = wish;
    EXPECT_EQ(decide(definition, State{}, impatient).again, least_requeue_delay);
  }
}

TEST_F(DecisionTest, TheSameResultAgainChangesNothing) {
  const auto first = merge(nullptr, State{}, result(false, Error::network("no")), 64);
  EXPECT_TRUE(first.end_time.has_value());
  loop.run_for(1min);
  EXPECT_EQ(merge(nullptr, first, result(false, Error::network("no")), 64), first);
  const auto other = merge(nullptr, first, result(false, Error::network("still no")), 64);
  EXPECT_EQ(other.start_time, first.start_time);
  EXPECT_EQ(*other.end_time - *first.end_time, 1min);
}

TEST_F(DecisionTest, ARecoveryClearsTheError) {
  const auto failed_once = merge(nullptr, State{}, result(false, Error::network("no")), 64);
  const auto better = merge(nullptr, failed_once, result(false), 64);
  EXPECT_FALSE(better.failed);
  EXPECT_TRUE(better.error.empty());
  EXPECT_FALSE(better.end_time.has_value());
  EXPECT_EQ(better.start_time, failed_once.start_time);
}

class ConcurrentMergeTest : public testing::Test {
 protected:
  static State leaf_state(bool is_done, bool has_failed = false) {
    State state;
    state.start_time = async::WallTime{};
    state.done = is_done;
    state.failed = has_failed;
    if (has_failed) state.error = "no";
    return state;
  }
  static HandlerNode pair() {
    HandlerNode node;
    node.kind = HandlerKind::parallel;
    node.components.resize(2);
    node.components[0].metadata.name = "a";
    node.components[1].metadata.name = "b";
    return node;
  }
};

TEST_F(ConcurrentMergeTest, AChangeOfOnlyOneSideIsTaken) {
  const auto node = pair();
  State base;
  State mine;
  mine.components["a"] = leaf_state(true);
  State fresh;
  fresh.components["b"] = leaf_state(true);
  const auto merged = merge_concurrent(&node, base, mine, fresh);
  EXPECT_TRUE(merged.component("a").completed());
  EXPECT_TRUE(merged.component("b").completed());
  EXPECT_TRUE(merged.completed());
}

TEST_F(ConcurrentMergeTest, CompletedWinsOverFailed) {
  const auto node = pair();
  State mine;
  mine.components["a"] = leaf_state(false, true);
  mine.failed = true;
  State fresh;
  fresh.components["a"] = leaf_state(true);
  const auto merged = merge_concurrent(&node, State{}, mine, fresh);
  EXPECT_TRUE(merged.component("a").completed());
  EXPECT_FALSE(merged.done);
  EXPECT_EQ(merge_concurrent(&node, State{}, fresh, mine).component("a").completed(), true);
}

TEST_F(ConcurrentMergeTest, FieldsThatOthersAddedAreKept) {
  State mine = leaf_state(true);
  State fresh;
  fresh.extra["note"] = "by a person";
  EXPECT_TRUE(merge_concurrent(nullptr, State{}, mine, fresh).extra.contains("note"));
}

TEST_F(ConcurrentMergeTest, SummariesAreMerged) {
  const auto node = pair();
  const auto with = [&](bool a, bool b) {
    ReconcileState run;
    run.start_time = run.end_time = async::WallTime{};
    for (const auto& [name, is_done] : {std::pair{"a", a}, std::pair{"b", b}}) {
      auto& component = run.components.emplace_back();
      component.start_time = component.end_time = async::WallTime{};
      component.handler = name;
      component.done = is_done;
    }
    return merge(&node, State{}, run, 1);
  };
  const auto merged = merge_concurrent(&node, State{}, with(true, false), with(false, true));
  ASSERT_NE(merged.summary, nullptr);
  EXPECT_EQ(merged.summary->done, 2u);
  EXPECT_TRUE(merged.completed());
}

}  // namespace
}  // namespace hubferry::phase::test
