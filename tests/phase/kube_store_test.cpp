#include "hubferry/phase/kube_store.hpp"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "few_objects.hpp"
#include "hubferry/async/task_scope.hpp"
#include "phase_test.hpp"

namespace hubferry::phase::test {
namespace {

const kube::Resource widgets{"example.com", "v1", "widgets", "Widget", true};

struct Nothing {};

class KubeStoreTest : public testing::Test {
 protected:
  using Handlers = Handler<Nothing, KubeResource>;

  KubeStoreTest() {
    api.objects[key] = json::parse(R"({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "one", "namespace": "default", "uid": "u1", "resourceVersion": "7"},
        "spec": {"size": 3}, "status": {"note": "by a person"}})")
                           .as_object();
  }

  void define(KubeStore& store) {
    keep_in(definition, store);
    definition.initial = "work";
    definition.terminals = {{"success", Ending::success}, {"failed", Ending::failure}};
    definition.normal = {{"work", "success"}};
    definition.error = {{"work", "failed"}};
    definition.handlers.insert_or_assign("work", Handlers::leaf({},
                                                                [this](Context<Nothing>&, KubeResource& resource,
                                                                       const State& last) -> Awaitable<ReconcileState> {
                                                                  ++runs;
                                                                  return work(resource, last);
                                                                }));
    definition.normalize();
  }
  Reconciled reconcile() {
    Nothing nothing;
    Machine<Nothing, KubeResource> machine{definition, nothing, {loop.clock(), random, metrics, obs::Logger{}}};
    return loop.run(machine.reconcile(key));
  }
  static Awaitable<ReconcileState> just_done(KubeResource& resource, const State&) {
    resource.status["moved"] = 3;
    co_return done();
  }
  const json::value& status() { return api.objects[key].at("status"); }

  const Key key{"default", "one"};
  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  FewObjects api;
  DefaultDefinition<Nothing, KubeResource> definition;
  std::function<Awaitable<ReconcileState>(KubeResource&, const State&)> work = just_done;
  int runs = 0;
};

TEST_F(KubeStoreTest, OneConditionalPatchOfWhatChangedPerTransition) {
  KubeStore store{api, widgets};
  define(store);
  const auto result = reconcile();
  EXPECT_EQ(result.outcome, Reconciled::Outcome::terminal);
  ASSERT_EQ(api.patches.size(), 1u);
  EXPECT_EQ(json::value(api.patches[0]), json::parse(R"({"metadata": {"resourceVersion": "7", "uid": "u1"},
      "status": {"phase": "success", "moved": 3, "state": {"work": {"done": true,
                 "startTime": "2030-01-01T00:00:00Z", "endTime": "2030-01-01T00:00:00Z"}}}})"));
  EXPECT_EQ(status().at("note"), "by a person");
  EXPECT_EQ(status().at("phase"), "success");
}

TEST_F(KubeStoreTest, AStatusThatAHandlerChangedIsWrittenWithoutUpdatedBeingSet) {
  KubeStore store{api, widgets};
  work = [](KubeResource& resource, const State&) -> Awaitable<ReconcileState> {
    resource.status["heard"] = true;
    co_return not_done();
  };
  define(store);
  EXPECT_EQ(reconcile().writes, 1u);
  EXPECT_TRUE(status().at("heard").as_bool());
  EXPECT_EQ(reconcile().writes, 0u);
  EXPECT_EQ(api.patches.size(), 1u);
}

TEST_F(KubeStoreTest, AfterAConflictBothSidesChangesAreKept) {
  KubeStore store{api, widgets};
  define(store);
  api.before = [&, first = true](const kube::Request& request) mutable -> std::optional<kube::Error> {
    if (request.verb == kube::Verb::patch && std::exchange(first, false)) {
      api.objects[key]["status"].as_object()["confirmed"] = true;
      api.touch(key);
    }
    return std::nullopt;
  };
  reconcile();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(status().at("phase"), "success");
  EXPECT_TRUE(status().at("confirmed").as_bool());
  EXPECT_EQ(status().at("moved"), 3);
}

TEST_F(KubeStoreTest, AnAmbiguousWriteThatHappenedIsNotRepeated) {
  KubeStore store{api, widgets};
  define(store);
  api.after = [](const kube::Request& request) -> std::optional<kube::Error> {
    if (request.verb == kube::Verb::patch) return FewObjects::failure(kube::ErrorKind::ambiguous);
    return std::nullopt;
  };
  EXPECT_EQ(reconcile().outcome, Reconciled::Outcome::terminal);
  EXPECT_EQ(api.patches.size(), 1u);
  EXPECT_EQ(runs, 1);
}

TEST_F(KubeStoreTest, TheResultIsKeptWhileTheServerIsUnreachable) {
  KubeStore store{api, widgets};
  define(store);
  api.before = [&](const kube::Request&) -> std::optional<kube::Error> {
    if (runs == 1 && loop.clock().now() - async::TimePoint{} < 1min)
      return FewObjects::failure(kube::ErrorKind::unreachable);
    return std::nullopt;
  };
  EXPECT_EQ(reconcile().outcome, Reconciled::Outcome::terminal);
  EXPECT_EQ(runs, 1);
}

// Acting on a cache that lags would undo, or repeat, what we have just written.
TEST_F(KubeStoreTest, ACacheThatHasNotSeenOurOwnWriteIsIgnored) {
  std::optional<kube::Object> in_cache{kube::Object{api.objects[key]}};
  KubeStoreOptions options;
  options.cached = [&](const Key&) { return in_cache; };
  KubeStore store{api, widgets, options};
  work = [](KubeResource&, const State& last) -> Awaitable<ReconcileState> {
    co_return last.never_ran() ? not_done() : done();
  };
  define(store);
  EXPECT_EQ(reconcile().outcome, Reconciled::Outcome::again);
  EXPECT_EQ(api.gets, 0u);
  EXPECT_EQ(store.ahead_of_cache(), 1u);
  EXPECT_EQ(reconcile().outcome, Reconciled::Outcome::terminal);
  EXPECT_EQ(reconcile().outcome, Reconciled::Outcome::terminal);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(api.gets, 0u);
  in_cache = kube::Object{api.objects[key]};
  EXPECT_EQ(reconcile().outcome, Reconciled::Outcome::terminal);
  EXPECT_EQ(store.ahead_of_cache(), 0u);
  in_cache.reset();
  EXPECT_EQ(reconcile().outcome, Reconciled::Outcome::gone);
}

TEST_F(KubeStoreTest, AnObjectThatVanishedFromTheCacheAfterOurWriteIsReadFromTheServer) {
  std::optional<kube::Object> in_cache{kube::Object{api.objects[key]}};
  KubeStoreOptions options;
  options.cached = [&](const Key&) { return in_cache; };
  KubeStore store{api, widgets, options};
  define(store);
  reconcile();
  in_cache.reset();
  api.objects.clear();
  EXPECT_EQ(reconcile().outcome, Reconciled::Outcome::gone);
  EXPECT_EQ(api.gets, 1u);
  EXPECT_EQ(store.ahead_of_cache(), 0u);
}

// The machine has acted on the server's response: a cache that lags must not undo that.
TEST_F(KubeStoreTest, AFreshReadIsNotFollowedByAnOlderCachedOne) {
  std::optional<kube::Object> in_cache{kube::Object{api.objects[key]}};
  KubeStoreOptions options;
  options.cached = [&](const Key&) { return in_cache; };
  KubeStore store{api, widgets, options};
  const auto note = [&](Awaitable<Result<std::optional<KubeResource>>> read) {
    auto resource = loop.run(std::move(read));
    return std::string{kube::string_at(resource.value()->status, {"note"})};
  };
  api.objects[key]["status"].as_object()["note"] = "by another person";
  api.touch(key);
  EXPECT_EQ(note(store.fetch(key)), "by a person");
  EXPECT_EQ(note(store.fetch_fresh(key)), "by another person");
  EXPECT_EQ(store.ahead_of_cache(), 1u);
  EXPECT_EQ(note(store.fetch(key)), "by another person");
  EXPECT_EQ(api.gets, 1u);

  in_cache = kube::Object{api.objects[key]};
  EXPECT_EQ(note(store.fetch(key)), "by another person");
  EXPECT_EQ(store.ahead_of_cache(), 0u);
  EXPECT_EQ(note(store.fetch_fresh(key)), "by another person");
  EXPECT_EQ(store.ahead_of_cache(), 0u) << "the cache has seen it: nothing to remember";
}

// The fence of a leader that lost its Lease: a write under way carries the version that it was decided on, and after
// the refusal the machine, which is being cancelled, neither reads nor writes again.
TEST_F(KubeStoreTest, TheLateWriteOfADeposedLeaderDoesNotTouchWhatItsSuccessorWrote) {
  KubeStore store{api, widgets};
  define(store);
  Nothing nothing;
  Machine<Nothing, KubeResource> machine{definition, nothing, {loop.clock(), random, metrics, obs::Logger{}}};
  unsigned attempts = 0;
  auto term = [&]() -> Awaitable<> {
    async::TaskScope leadership{co_await async::asio::this_coro::executor};
    api.before = [&](const kube::Request& request) -> std::optional<kube::Error> {
      if (request.verb != kube::Verb::patch) return std::nullopt;
      ++attempts;
      api.objects[key]["status"] = {{"phase", "failed"}, {"note", "by the successor"}};
      api.touch(key);
      leadership.stop();
      return std::nullopt;
    };
    auto one_turn = [&]() -> Awaitable<> { co_await machine.reconcile(key); };
    leadership.spawn(one_turn());
    co_await leadership.join();
  };
  loop.run(term());
  EXPECT_EQ(attempts, 1u);
  EXPECT_TRUE(api.patches.empty());
  EXPECT_EQ(status(), (json::value{{"phase", "failed"}, {"note", "by the successor"}}));
}

TEST_F(KubeStoreTest, AResourceThatIsBeingDeletedIsLeftAlone) {
  api.objects[key]["metadata"].as_object()["deletionTimestamp"] = "2030-01-01T00:00:00Z";
  KubeStore store{api, widgets};
  define(store);
  EXPECT_EQ(reconcile().outcome, Reconciled::Outcome::gone);
  EXPECT_EQ(runs, 0);
}

TEST_F(KubeStoreTest, ANewObjectOfTheSameNameDoesNotGetItsPredecessorsStatus) {
  KubeStore store{api, widgets};
  define(store);
  api.before = [&, first = true](const kube::Request& request) mutable -> std::optional<kube::Error> {
    if (request.verb == kube::Verb::patch && std::exchange(first, false)) {
      api.objects[key]["metadata"].as_object()["uid"] = "u2";
      api.objects[key]["status"].emplace_object();
      api.touch(key);
    }
    return std::nullopt;
  };
  EXPECT_EQ(reconcile().outcome, Reconciled::Outcome::again);
  EXPECT_TRUE(status().as_object().empty());
}

TEST(CarryStatus, LeavesTheConditionsOfOtherControllersAlone) {
  const auto base =
      json::parse(R"({"conditions": [{"type": "Ours", "status": "False"}, {"type": "Old", "status": "True"},
                                    {"type": "Theirs", "status": "False"}]})");
  const auto mine = json::parse(R"({"conditions": [{"type": "Ours", "status": "True"},
                                    {"type": "Theirs", "status": "False"}, {"type": "New", "status": "True"}]})");
  auto fresh = json::parse(R"({"conditions": [{"type": "Theirs", "status": "True"}, {"type": "Ours", "status": "False"},
                               {"type": "Old", "status": "True"}]})");
  carry_status(fresh.as_object(), base.as_object(), mine.as_object());
  EXPECT_EQ(fresh, json::parse(R"({"conditions": [{"type": "Theirs", "status": "True"},
                                   {"type": "Ours", "status": "True"}, {"type": "New", "status": "True"}]})"));
}

TEST(MergeDiff, TurnsOneObjectIntoTheOther) {
  const char* pairs[][2] = {
      {R"({})", R"({"a": 1})"},
      {R"({"a": 1, "b": {"c": 2, "d": 3}})", R"({"b": {"c": 2, "e": [1]}})"},
      {R"({"a": {"b": 1}})", R"({"a": 5})"},
      {R"({"a": 5})", R"({"a": {"b": {"c": {}}}})"},
      {R"({"a": [1, {"x": null}]})", R"({"a": [2]})"},
  };
  for (const auto& [from, to] : pairs) {
    auto object = json::parse(from).as_object();
    const auto target = json::parse(to).as_object();
    merge_apply(object, merge_diff(object, target));
    EXPECT_EQ(object, target) << from << " -> " << to;
    EXPECT_TRUE(merge_diff(target, target).empty());
  }
}

}  // namespace
}  // namespace hubferry::phase::test
