#include "hubferry/phase/state.hpp"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "phase_test.hpp"

namespace hubferry::phase::test {
namespace {

// A waiting machine's copy of its resource must be cheap, and must not change.
TEST(Components, CopiesShareUntilOneOfThemChanges) {
  State original;
  original.components["a"].done = true;
  State copy = original;
  EXPECT_EQ(copy.components.find("a"), original.components.find("a")) << "one and the same";
  EXPECT_TRUE(copy == original);
  copy.components["a"].done = false;
  copy.components["b"].done = true;
  EXPECT_TRUE(original.component("a").done);
  EXPECT_FALSE(original.components.contains("b"));
  copy.components.erase("a");
  copy.components.erase("b");
  copy.components.erase("c");
  EXPECT_TRUE(copy.components.empty());
  EXPECT_TRUE(copy == State{});
}

TEST(StateJson, IsWhatPeopleReadInAStatus) {
  State state;
  state.done = true;
  state.start_time = async::parse_time("2030-01-01T00:00:00Z");
  state.end_time = async::parse_time("2030-01-01T00:01:00Z");
  state.failed = state.fatal = true;
  state.error = "no";
  state.components["vpc"].done = true;
  EXPECT_EQ(json::value(to_json(state)), json::parse(R"({"done": true, "startTime": "2030-01-01T00:00:00Z",
      "endTime": "2030-01-01T00:01:00Z", "failed": true, "fatal": true, "error": "no",
      "state": {"vpc": {"done": true}}})"));
  EXPECT_EQ(state_from_json(to_json(state)), state);
}

TEST(StateJson, UnknownFieldsSurviveARoundTrip) {
  const auto text =
      json::parse(R"({"done": false, "objects": ["ins-1"], "state": {"a": {"done": true, "note": {"x": 1}}},
                                    "retries": 3})");
  const auto state = state_from_json(text);
  EXPECT_EQ(state.extra.size(), 2u);
  EXPECT_EQ(json::value(to_json(state)), text);
}

TEST(StateJson, MalformedFieldsCountAsAbsent) {
  for (const auto* text : {"null", "7", "[]", R"({"done": "yes", "startTime": 5, "endTime": "yesterday", "failed": 1,
                                                   "error": {}, "fatal": null, "state": [1], "summary": {"total": -1}})",
                           R"({"summary": {"total": 9999999999, "completed": "zz"}, "state": {"a": 1}})"}) {
    const auto state = state_from_json(json::parse(text));
    EXPECT_FALSE(state.done) << text;
    EXPECT_TRUE(state.never_ran()) << text;
    EXPECT_TRUE(state.error.empty()) << text;
    EXPECT_FALSE(state.completed()) << text;
  }
}

TEST(StateText, IsShortenedBetweenCharacters) {
  EXPECT_EQ(shortened("short"), "short");
  const std::string umlauts = "ääääääääää";
  for (std::size_t limit = 3; limit < umlauts.size(); ++limit) {
    const auto text = shortened(umlauts, limit);
    EXPECT_LE(text.size(), limit);
    EXPECT_TRUE(text.ends_with("…"));
    EXPECT_EQ((text.size() - 3) % 2, 0u) << limit;
  }
}

class BoundedStateTest : public PhaseTest {
 protected:
  static constexpr std::size_t count = 5000;

  /// Like a real status: what was written is read back from JSON.
  void through_json() {
    for (auto& [phase, state] : item().status.state)
      state = state_from_json(json::parse(json::serialize(to_json(state))));
  }
  std::size_t size() { return json::serialize(to_json(item().status.state)).size(); }

  std::map<std::string, int> runs_;
};

TEST_F(BoundedStateTest, ThousandsOfComponentsKeepCountsAndFailuresInAFewKilobytes) {
  std::vector<Handlers> components;
  for (std::size_t at = 0; at < count; ++at) {
    auto body = [this, at](TestContext& context, Item&, const State&) -> Awaitable<ReconcileState> {
      const int run = ++runs_[context.handler()];
      co_return at % 1000 == 7 && run == 1 ? failed(Error::network("cluster does not answer")) : done();
    };
    components.push_back(leaf("cluster-" + std::to_string(at), body));
  }
  handle("migrate", Handlers::parallel({}, std::move(components)));
  EXPECT_EQ(reconcile_once().outcome, Reconciled::Outcome::again);
  const auto& migrate = state("migrate");
  ASSERT_NE(migrate.summary, nullptr);
  EXPECT_EQ(migrate.summary->total, count);
  EXPECT_EQ(migrate.summary->done, count - 5);
  EXPECT_EQ(migrate.summary->failed, 5u);
  EXPECT_EQ(migrate.components.size(), 5u);
  EXPECT_EQ(migrate.component("cluster-1007").error, "cluster does not answer");
  EXPECT_LT(size(), 8000u);

  through_json();
  reconcile_to_the_end();
  EXPECT_EQ(item().status.phase, "success");
  EXPECT_EQ(runs_["cluster-1007"], 2);
  EXPECT_EQ(runs_["cluster-1008"], 1);
  EXPECT_EQ(state("migrate").summary->done, count);
  EXPECT_EQ(state("migrate").summary->failed, 0u);
  EXPECT_TRUE(state("migrate").components.empty());
}

TEST_F(BoundedStateTest, ThousandsOfFailuresAreCountedAndOnlySomeKept) {
  std::vector<Handlers> components;
  for (std::size_t at = 0; at < count; ++at)
    components.push_back(leaf("c" + std::to_string(at), always(failed(Error::network(std::string(5000, 'x'))))));
  handle("migrate", Handlers::parallel({}, std::move(components)));
  reconcile_once();
  EXPECT_EQ(state("migrate").summary->failed, count);
  EXPECT_EQ(state("migrate").components.size(), 64u);
  EXPECT_LE(state("migrate").error.size(), longest_error_text);
  EXPECT_LT(size(), 100000u);
  through_json();
  EXPECT_EQ(reconcile_once().writes, 0u);
}

// The bits mean the components by their order: with others they mean nothing.
TEST_F(BoundedStateTest, ASummaryOfOtherComponentsIsIgnored) {
  definition.limit = 2;
  handle("migrate",
         Handlers::parallel({}, {leaf("a", always(done())), leaf("b", always(done())), leaf("c", always(not_done()))}));
  reconcile_once();
  EXPECT_EQ(state("migrate").summary->done, 2u);
  world.ran.clear();
  handle("migrate",
         Handlers::parallel({}, {leaf("b", always(done())), leaf("x", always(done())), leaf("c", always(done()))}));
  reconcile_to_the_end();
  EXPECT_THAT(world.ran, testing::UnorderedElementsAre("b", "x", "c"));
  EXPECT_EQ(item().status.phase, "success");
}

TEST_F(BoundedStateTest, UnfinishedCompositesAndOwnFieldsAreKeptWhateverTheLimit) {
  definition.limit = 1;
  ReconcileState noted = not_done();
  noted.extra["objects"] = json::array{"ins-1"};
  handle("migrate",
         Handlers::parallel(
             {}, {Handlers::serial(named("steps"), {leaf("one", always(done())), leaf("two", always(not_done()))}),
                  leaf("noted", always(noted)), leaf("plain", always(not_done()))}));
  reconcile_once();
  through_json();
  EXPECT_TRUE(state("migrate").component("noted").extra.contains("objects"));
  world.ran.clear();
  reconcile_once();
  EXPECT_EQ(std::count(world.ran.begin(), world.ran.end(), "one"), 0);
}

}  // namespace
}  // namespace hubferry::phase::test
