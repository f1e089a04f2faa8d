#include "hubferry/kube/cache.hpp"

#include "kube/cache/cache_fixture.hpp"

namespace hubferry::test {
namespace {

using kube::ErrorKind;
using kube::Replay;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

kube::Error error_of(ErrorKind kind, int status = 0) {
  kube::Error error;
  error.kind = kind;
  error.status = status;
  error.message = "scripted";
  return error;
}

TEST_F(CacheTest, AListOfSeveralPagesAppearsAllAtOnce) {
  api_.will_list("10", {widget("a", 1), widget("b", 2)}, "next");
  api_.will_list("10", {widget("c", 3)});
  api_.will_watch();
  record_changes();
  auto body = [&]() -> Awaitable<> {
    EXPECT_FALSE(cache_.synced());
    co_await clock_.sleep_for(15ms);
    EXPECT_EQ(cache_.size(), 0U) << "the first page alone must not be seen";
    EXPECT_THAT(changes_, IsEmpty());
    co_await cache_.wait_synced();
    EXPECT_THAT(names(), ElementsAre("a", "b", "c"));
    EXPECT_EQ(color_of(cache_.get(key("b"))), "red");
    EXPECT_EQ(cache_.get(key("x")), nullptr);
    EXPECT_EQ(changes_.size(), 3U);
    co_await settle();
  };
  with_cache(body);
  EXPECT_EQ(api_.history(), "LLW");
  EXPECT_EQ(api_.calls()[0].list_options.resource_version, "0");
  EXPECT_EQ(api_.calls()[1].list_options.continue_token, "next");
  EXPECT_EQ(api_.calls()[2].watch_options.resource_version, "10");
  EXPECT_TRUE(api_.calls()[2].watch_options.bookmarks);
}

// A list that goes round in circles would grow for ever.
TEST_F(CacheTest, AContinueTokenThatRepeatsEndsTheList) {
  api_.will_list("5", {widget("a", 1)}, "more");
  api_.will_list("5", {widget("b", 2)}, "more");
  with_cache([&]() -> Awaitable<> {
    co_await settle();
    EXPECT_EQ(api_.history(), "LL");
    api_.will_list("6", {widget("c", 3)});
    co_await clock_.sleep_for(5s);
    EXPECT_EQ(names(), (std::set<std::string>{"c"}));
  });
}

TEST_F(CacheTest, AListThatExpiresBetweenPagesIsTakenAgainInOnePiece) {
  api_.will_list("10", {widget("a", 1), widget("old", 2)}, "next");
  api_.will_list(error_of(ErrorKind::gone, 410));
  api_.will_list("20", {widget("a", 1), widget("b", 15)});
  api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    EXPECT_THAT(names(), ElementsAre("a", "b"));
  };
  with_cache(body);
  EXPECT_EQ(api_.calls()[2].list_options.limit, 0);
  EXPECT_EQ(api_.calls()[2].list_options.resource_version, std::nullopt);
}

TEST_F(CacheTest, EventsReachReadersAndHandlersWithOldAndNew) {
  api_.will_list("10", {widget("a", 1, "red")});
  auto feed = api_.will_watch();
  record_changes();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    feed->try_push(Batch{added(widget("b", 11, "blue")), modified(widget("a", 12, "green")), deleted(widget("b", 13))});
    co_await settle();
    EXPECT_THAT(changes_, ElementsAre("a: none -> red", "b: none -> blue", "a: red -> green", "b: blue -> none"));
    EXPECT_THAT(names(), ElementsAre("a"));
    EXPECT_EQ(cache_.status().resource_version, "13");
    EXPECT_EQ(cache_.status().events, 3U);
  };
  with_cache(body);
}

// The state from before stays visible while a new list comes in, and then changes at once.
TEST_F(CacheTest, ARelistSwapsInAtOnceAndReportsOnlyWhatDiffers) {
  api_.will_list("10", {widget("same", 1), widget("gone", 2), widget("changed", 3)});
  auto feed = api_.will_watch();
  api_.will_list("30", {widget("same", 1), widget("changed", 25, "blue")}, "next");
  api_.will_list("30", {widget("new", 22)});
  api_.will_watch();
  std::set<std::string> seen_by_handler;
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    record_changes();
    auto watcher = cache_.subscribe([&](const Key&, const auto&, const auto&) {
      EXPECT_THAT(names(), ElementsAre("changed", "new", "same")) << "handlers see the whole new state";
    });
    feed->try_push(error_of(ErrorKind::gone, 410));
    co_await clock_.sleep_for(25ms);
    EXPECT_THAT(names(), ElementsAre("changed", "gone", "same")) << "the relist is half done";
    EXPECT_THAT(changes_, IsEmpty());
    co_await settle();
    EXPECT_THAT(changes_, UnorderedElementsAre("gone: red -> none", "changed: red -> blue", "new: none -> red"));
    EXPECT_EQ(cache_.status().relists, 1U);
    EXPECT_EQ(cache_.status().resource_version, "30");
  };
  with_cache(body);
  EXPECT_EQ(api_.history(), "LWLLW");
  EXPECT_EQ(api_.calls()[2].list_options.resource_version, std::nullopt) << "after a 410 only the newest will do";
}

// It would be refused again at every relist, after having been sent whole.
TEST_F(CacheTest, AListThatWasTooLargeInOnePieceIsTakenInPagesEverAfter) {
  api_.will_list(error_of(ErrorKind::bad_response, 0));
  api_.will_list("10", {widget("a", 1)}, "next");
  api_.will_list("10", {widget("b", 2)});
  auto feed = api_.will_watch();
  api_.will_list("20", {widget("a", 1)});
  api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    feed->try_push(error_of(ErrorKind::bad_response, 0));
    co_await clock_.sleep_for(10s);
    EXPECT_EQ(cache_.status().relists, 1U);
  };
  with_cache(body);
  ASSERT_EQ(api_.history(), "LLLWLW");
  EXPECT_EQ(api_.calls()[0].list_options.resource_version, "0") << "any version will do";
  EXPECT_EQ(api_.calls()[1].list_options.resource_version, std::nullopt);
  EXPECT_EQ(api_.calls()[4].list_options.resource_version, std::nullopt);
  EXPECT_EQ(api_.calls()[4].list_options.limit, 500);
}

/// An object that is on the server, in a form that cannot be decoded.
kube::Decoded undecodable(const std::string& name, int version) {
  return {key(name), std::to_string(version), nullptr};
}

// A controller would take it for deleted, and clean up after it.
TEST_F(CacheTest, AnObjectThatCannotBeDecodedAnyMoreStaysAsItWas) {
  api_.will_list("10", {widget("a", 1), widget("b", 2)});
  auto feed = api_.will_watch();
  api_.will_list("30", {undecodable("a", 25), widget("b", 2), undecodable("never-seen", 26)});
  auto second = api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    record_changes();
    feed->try_push(Batch{modified(undecodable("a", 12))});
    feed->try_push(error_of(ErrorKind::gone, 410));
    co_await settle();
    EXPECT_THAT(names(), ElementsAre("a", "b"));
    EXPECT_THAT(changes_, IsEmpty());
    second->try_push(Batch{modified(widget("a", 31, "blue")), deleted(undecodable("b", 32))});
    co_await settle();
    EXPECT_THAT(changes_, ElementsAre("a: red -> blue", "b: red -> none"));
  };
  with_cache(body);
}

TEST_F(CacheTest, CachesOfOneResourceAreCountedTogether) {
  const auto counted = [&](const std::string& count) {
    return HasSubstr(R"(hubferry_cache_objects{resource="widgets.example.com",server="scripted"} )" + count + "\n");
  };
  api_.will_list("10", {widget("a", 1), widget("b", 2)});
  api_.will_watch();
  ScriptedApi second_api{clock_};
  second_api.will_list("10", {widget("c", 1)});
  second_api.will_watch();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    kube::Cache<Object> second{second_api,
                               {"example.com", "v1", "widgets", "Widget", true},
                               lists_first(),
                               kube::object_decoder(),
                               kube::Env{loop_.clock(), random_, metrics_, log_.logger()}};
    auto beside = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(second.run());
      co_await second.wait_synced();
      co_await settle();
      EXPECT_THAT(metrics_.text(), counted("3"));
      scope.stop();
    };
    co_await async::with_scope(beside);
  };
  with_cache(body);
  EXPECT_THAT(metrics_.text(), counted("2")) << "the second has ended";
}

TEST_F(CacheTest, A410OnOpeningAWatchIsAnsweredByAList) {
  api_.will_list("10", {widget("a", 1)});
  api_.will_refuse_watch(error_of(ErrorKind::gone, 410));
  api_.will_list("20", {});
  api_.will_watch();
  record_changes();
  auto body = [&]() -> Awaitable<> {
    co_await settle();
    EXPECT_THAT(changes_, ElementsAre("a: none -> red", "a: red -> none"));
  };
  with_cache(body);
  EXPECT_EQ(api_.history(), "LWLW");
}

TEST_F(CacheTest, ADroppedConnectionResumesFromTheLastEventWithoutAList) {
  api_.will_list("10", {widget("a", 1)});
  auto first = api_.will_watch();
  auto second = api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    first->try_push(Batch{modified(widget("a", 14, "blue"))});
    first->try_push(error_of(ErrorKind::unreachable));
    second->try_push(Batch{modified(widget("a", 15, "green"))});
    co_await clock_.sleep_for(5s);
    EXPECT_EQ(color_of(cache_.get(key("a"))), "green");
  };
  with_cache(body);
  EXPECT_EQ(api_.history(), "LWW");
  EXPECT_EQ(api_.calls()[2].watch_options.resource_version, "14");
  EXPECT_GE(api_.calls()[2].at - api_.calls()[1].at, 800ms);
}

TEST_F(CacheTest, BookmarksAloneMoveTheVersionOnWhichAWatchResumes) {
  api_.will_list("10", {widget("a", 1)});
  auto first = api_.will_watch();
  api_.will_watch();
  record_changes();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    co_await clock_.sleep_for(60s);
    first->try_push(Batch{bookmark(50)});
    co_await clock_.sleep_for(60s);
    EXPECT_EQ(cache_.status().last_event_age, 60s);
    EXPECT_EQ(cache_.status().resource_version, "50");
    EXPECT_TRUE(cache_.has_seen(key("a"), "50"));
    first->close();
    co_await settle();
    EXPECT_EQ(changes_.size(), 1U);
  };
  with_cache(body);
  EXPECT_EQ(api_.calls().back().watch_options.resource_version, "50");
}

TEST_F(CacheTest, EventsThatComeTwiceOrLateChangeNothing) {
  api_.will_list("10", {widget("a", 5, "red"), widget("b", 6, "red")});
  auto feed = api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    record_changes();
    feed->try_push(Batch{modified(widget("a", 12, "blue")), modified(widget("a", 12, "blue")),
                         modified(widget("a", 11, "old")), deleted(widget("a", 11)), added(widget("a", 4, "older"))});
    feed->try_push(
        Batch{deleted(widget("b", 14)), modified(widget("b", 13, "late")), deleted(widget("b", 14)), bookmark(9)});
    co_await settle();
    EXPECT_THAT(changes_, ElementsAre("a: red -> blue", "b: red -> none"));
    EXPECT_EQ(cache_.status().resource_version, "14");
    feed->try_push(Batch{added(widget("b", 15, "again"))});
    co_await settle();
    EXPECT_EQ(color_of(cache_.get(key("b"))), "again") << "a deleted object may come back";
  };
  with_cache(body);
}

TEST_F(CacheTest, VersionsThatAreNoNumbersAreTakenAsTheyCome) {
  auto odd = [](const std::string& name, const std::string& version, const std::string& color) {
    auto decoded = widget(name, 0, color);
    decoded.resource_version = version;
    return decoded;
  };
  api_.will_list("x1", {odd("a", "x1", "red")});
  auto feed = api_.will_watch();
  api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    feed->try_push(Batch{modified(odd("a", "x2", "blue"))});
    co_await settle();
    EXPECT_EQ(color_of(cache_.get(key("a"))), "blue");
    EXPECT_FALSE(cache_.has_seen(key("a"), "x2"));
    co_await clock_.sleep_for(2s);  // a watch that ends sooner is not reopened at once
    feed->close();
    co_await settle();
  };
  with_cache(body);
  EXPECT_EQ(api_.calls().back().watch_options.resource_version, "x2");
}

TEST_F(CacheTest, ARestoredServerWithLowerVersionsIsBelieved) {
  api_.will_list("100", {widget("a", 90)});
  auto feed = api_.will_watch();
  api_.will_list("20", {widget("a", 15, "restored")});
  auto second = api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    feed->try_push(error_of(ErrorKind::gone, 410));
    second->try_push(Batch{modified(widget("a", 21, "newer"))});
    co_await settle();
    EXPECT_EQ(color_of(cache_.get(key("a"))), "newer");
  };
  with_cache(body);
}

TEST_F(CacheTest, HandlersMayComeAndGoInsideHandlers) {
  api_.will_list("10", {});
  auto feed = api_.will_watch();
  std::vector<std::string> heard;
  kube::CacheSubscription once;
  kube::CacheSubscription other;
  kube::CacheSubscription late;
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    once = cache_.subscribe([&](const Key& at, const auto&, const auto&) {
      heard.push_back("once " + at.name);
      late = cache_.subscribe([&](const Key& k, const auto&, const auto&) { heard.push_back("late " + k.name); });
      other.reset();
      once.reset();
    });
    other = cache_.subscribe([&](const Key& at, const auto&, const auto&) { heard.push_back("other " + at.name); });
    feed->try_push(Batch{added(widget("a", 11)), added(widget("b", 12))});
    co_await settle();
    EXPECT_THAT(heard, ElementsAre("once a", "late b"));
    late.reset();
    feed->try_push(Batch{added(widget("c", 13))});
    co_await settle();
    EXPECT_EQ(heard.size(), 2U);
  };
  with_cache(body);
}

// A list's changes are all visible when its first handler runs: who subscribes then must not hear of them again.
TEST_F(CacheTest, AReplayInsideAHandlerShowsEachObjectOnce) {
  api_.will_list("10", {widget("a", 1), widget("b", 2), widget("c", 3)});
  api_.will_watch();
  std::vector<std::string> heard;
  kube::CacheSubscription inner;
  bool first = true;
  auto outer = cache_.subscribe([&](const Key&, const auto&, const auto&) {
    if (!std::exchange(first, false)) return;
    inner =
        cache_.subscribe([&](const Key& at, const auto&, const auto&) { heard.push_back(at.name); }, Replay::existing);
  });
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    co_await settle();
    EXPECT_THAT(heard, UnorderedElementsAre("a", "b", "c"));
  };
  with_cache(body);
}

TEST_F(CacheTest, IndexesFollowEveryChange) {
  api_.will_list("10", {widget("a", 1, "red"), widget("b", 2, "red"), widget("c", 3, "blue")});
  auto feed = api_.will_watch();
  api_.will_list("40", {widget("b", 2, "red"), widget("d", 30, "blue")});
  api_.will_watch();
  cache_.add_index("color", [](const Object& object) {
    return std::vector<std::string>{std::string{object.string_at({"spec", "color"})}};
  });
  auto found = [&](const std::string& color) {
    std::set<std::string> names;
    for (const auto& object : cache_.lookup("color", color)) names.insert(std::string{object->name()});
    return names;
  };
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    EXPECT_THAT(found("red"), ElementsAre("a", "b"));
    feed->try_push(Batch{modified(widget("a", 11, "blue")), deleted(widget("c", 12))});
    co_await settle();
    EXPECT_THAT(found("red"), ElementsAre("b"));
    EXPECT_THAT(found("blue"), ElementsAre("a"));
    feed->try_push(error_of(ErrorKind::gone, 410));
    co_await settle();
    EXPECT_THAT(found("blue"), ElementsAre("d"));
    EXPECT_THAT(found("red"), ElementsAre("b"));
    EXPECT_THAT(found("green"), IsEmpty());
    cache_.add_index("late", [](const Object&) { return std::vector<std::string>{"all"}; });
    EXPECT_EQ(cache_.lookup("late", "all").size(), 2U);
    EXPECT_THROW((void)cache_.lookup("none", "x"), std::logic_error);
  };
  with_cache(body);
}

// A simulated world can only be replayed if nothing in it follows the addresses of objects.
TEST_F(CacheTest, ALookupIsOrderedByKey) {
  std::vector<kube::Decoded> widgets;
  std::vector<std::string> names;
  for (int index = 10; index < 60; ++index) names.push_back("w" + std::to_string(index));
  for (int index = 0; index < 50; ++index) widgets.push_back(widget(names[index * 7 % 50], index + 1, "red"));
  api_.will_list("60", widgets);
  api_.will_watch();
  cache_.add_index("all", [](const Object&) { return std::vector<std::string>{"all"}; });
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    std::vector<std::string> found;
    for (const auto& object : cache_.lookup("all", "all")) found.emplace_back(object->name());
    EXPECT_EQ(found, names);
  };
  with_cache(body);
}

TEST_F(CacheTest, FailuresAreLoggedBySeverityAndCounted) {
  api_.will_list(error_of(ErrorKind::forbidden, 403));
  api_.will_list("10", {widget("a", 1)});
  auto feed = api_.will_watch();
  api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    co_await clock_.sleep_for(6min);
    log_.set_level(obs::Level::info);
    feed->close();
    co_await settle();
    for (const auto& line : log_.lines()) EXPECT_THAT(line, testing::Not(HasSubstr("the watch ended")));
  };
  with_cache(body);
  bool warned = false;
  for (const auto& line : log_.lines()) {
    if (line.find("(403") == std::string::npos) continue;  // not in a time
    warned = true;
    EXPECT_THAT(line, HasSubstr("warn"));
  }
  EXPECT_TRUE(warned);
  const auto text = metrics_.text();
  EXPECT_THAT(text, HasSubstr(R"(hubferry_cache_objects{resource="widgets.example.com",server="scripted"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"({reason="closed",resource="widgets.example.com",server="scripted"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"({reason="failed",resource="widgets.example.com",server="scripted"} 1)"));
}

TEST_F(CacheTest, TheServersRetryAfterIsWaitedFor) {
  auto busy = error_of(ErrorKind::retry_later, 429);
  busy.retry_after = 40s;
  api_.will_list(busy);
  api_.will_list("10", {});
  api_.will_watch();
  auto body = [&]() -> Awaitable<> { co_await cache_.wait_synced(); };
  with_cache(body);
  EXPECT_GE(api_.calls()[1].at - api_.calls()[0].at, 40s);
}

// Whatever it is doing when it is cancelled, nothing is left behind, and a second run resumes.
TEST_F(CacheTest, CancellationAtEachAwaitLeavesACacheThatCanRunAgain) {
  for (auto when = 0ms; when < 1500ms; when += 5ms) {
    ScriptedApi api{clock_};
    kube::Cache<Object> cache{api,
                              {"", "v1", "widgets", "Widget", true},
                              lists_first(),
                              kube::object_decoder(),
                              kube::Env{clock_, random_, metrics_, {}}};
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      api.will_list("10", {widget("a", 1)}, "next");
      api.will_list("10", {widget("b", 2)});
      api.will_watch()->try_push(error_of(ErrorKind::unreachable));
      api.will_watch();
      scope.spawn(cache.run());
      co_await clock_.sleep_for(when);
      scope.stop();
    };
    loop_.run(async::with_scope(body));
    EXPECT_EQ(api.open_streams(), 0);

    auto again = [&](async::TaskScope& scope) -> Awaitable<> {
      // Beyond what the first run has left unused.
      for (int i = 0; i < 3; ++i) api.will_list("20", {widget("c", 15)});
      for (int i = 0; i < 3; ++i) api.will_watch();
      scope.spawn(cache.run());
      co_await clock_.sleep_for(5s);
      EXPECT_TRUE(cache.synced());
      scope.stop();
    };
    loop_.run(async::with_scope(again));
    EXPECT_GE(cache.size(), 1U);
    EXPECT_EQ(api.open_streams(), 0);
  }
}

class StreamedCacheTest : public CacheTest {
 protected:
  StreamedCacheTest() : CacheTest(kube::CacheOptions{}) {}
};

TEST_F(StreamedCacheTest, InitialEventsAppearAllAtOnceAndNewsInTheSameBatchAfterThem) {
  auto feed = api_.will_watch();
  record_changes();
  auto body = [&]() -> Awaitable<> {
    feed->try_push(Batch{added(widget("b", 9)), added(widget("a", 3))});
    co_await settle();
    EXPECT_FALSE(cache_.synced());
    EXPECT_EQ(cache_.size(), 0U);
    feed->try_push(Batch{added(widget("c", 5)), initial_end(10), modified(widget("a", 11, "blue"))});
    co_await settle();
    EXPECT_TRUE(cache_.synced());
    EXPECT_THAT(names(), ElementsAre("a", "b", "c"));
    EXPECT_EQ(color_of(cache_.get(key("a"))), "blue");
    EXPECT_EQ(changes_.size(), 4U);
    EXPECT_EQ(cache_.status().resource_version, "11");
  };
  with_cache(body);
  EXPECT_EQ(api_.history(), "W");
  EXPECT_TRUE(api_.calls()[0].watch_options.send_initial_events);
}

TEST_F(StreamedCacheTest, AServerThatCannotStreamIsListed) {
  api_.will_refuse_watch(error_of(ErrorKind::invalid, 422));
  api_.will_list("10", {widget("a", 1)});
  api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    EXPECT_THAT(names(), ElementsAre("a"));
    EXPECT_LT(clock_.now().time_since_epoch(), 1s) << "no pause";
  };
  with_cache(body);
}

TEST_F(StreamedCacheTest, AServerThatIgnoresSendInitialEventsIsListedAfterAWhile) {
  auto feed = api_.will_watch();
  api_.will_list("10", {widget("a", 1)});
  api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    feed->try_push(Batch{added(widget("stray", 5))});
    co_await cache_.wait_synced();
    EXPECT_THAT(names(), ElementsAre("a"));
    EXPECT_LT(clock_.now().time_since_epoch(), 20s);
  };
  with_cache(body);
}

TEST_F(StreamedCacheTest, ARelistByStreamReportsMissedDeletions) {
  auto first = api_.will_watch();
  auto second = api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    first->try_push(Batch{added(widget("a", 1)), added(widget("b", 2)), initial_end(10)});
    co_await cache_.wait_synced();
    record_changes();
    first->try_push(error_of(ErrorKind::gone, 410));
    second->try_push(Batch{added(widget("a", 1)), added(widget("x", 15)), deleted(widget("x", 16)), initial_end(20)});
    co_await settle();
    EXPECT_THAT(changes_, ElementsAre("b: red -> none"));
  };
  with_cache(body);
}

}  // namespace
}  // namespace hubferry::test
