#include "kube/cache/cache_fixture.hpp"

namespace hubferry::test {
namespace {

using kube::CacheLimits;
using testing::ElementsAre;

kube::CacheOptions limited(bool stream_initial) {
  kube::CacheOptions options;
  options.watch.stream_initial = stream_initial;
  options.limits = CacheLimits{.objects = 3, .bytes = 1000};
  return options;
}

kube::Decoded sized(kube::Decoded item, std::size_t bytes) {
  item.bytes = bytes;
  return item;
}

/// What a hostile hub can make a cache hold.
class LimitedCacheTest : public CacheTest {
 protected:
  explicit LimitedCacheTest(bool stream_initial = false) : CacheTest(limited(stream_initial)) {}
};

class LimitedStreamTest : public LimitedCacheTest {
 protected:
  LimitedStreamTest() : LimitedCacheTest(true) {}
};

TEST_F(LimitedCacheTest, AListOfTooManyObjectsIsRefusedAndTakenOnceItIsSmaller) {
  api_.will_list("10", {widget("a", 1), widget("b", 2)}, "more");
  api_.will_list("10", {widget("c", 3), widget("d", 4)}, "evenmore");
  api_.will_list("11", {widget("a", 1)});
  api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    EXPECT_THAT(names(), ElementsAre("a"));
    EXPECT_TRUE(log_.contains("the list is too large"));
  };
  with_cache(body);
}

TEST_F(LimitedCacheTest, AListOfTooManyBytesIsRefused) {
  api_.will_list("10", {sized(widget("a", 1), 600), sized(widget("b", 2), 600)});
  api_.will_list("11", {sized(widget("a", 1), 600)});
  api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    EXPECT_THAT(names(), ElementsAre("a"));
  };
  with_cache(body);
}

TEST_F(LimitedStreamTest, InitialEventsWithoutEndAreRefused) {
  auto endless = api_.will_watch();
  auto sane = api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    endless->try_push(Batch{added(widget("a", 1)), added(widget("b", 2)), added(widget("c", 3))});
    co_await settle();
    EXPECT_EQ(api_.history(), "W");
    endless->try_push(Batch{added(widget("d", 4))});
    sane->try_push(Batch{added(widget("a", 1)), initial_end(10)});
    co_await cache_.wait_synced();
    EXPECT_THAT(names(), ElementsAre("a"));
    EXPECT_TRUE(log_.contains("the initial events are too many"));
  };
  with_cache(body);
}

TEST_F(LimitedStreamTest, ChangesAmongInitialEventsLeaveEachObjectOnce) {
  auto feed = api_.will_watch();
  record_changes();
  auto body = [&]() -> Awaitable<> {
    feed->try_push(Batch{added(widget("a", 1)), added(widget("b", 2)), added(widget("c", 3)),
                         modified(widget("a", 4, "blue")), deleted(widget("b", 5)), deleted(widget("b", 5)),
                         added(widget("d", 6)), modified(widget("d", 7, "blue")), initial_end(10)});
    co_await cache_.wait_synced();
    EXPECT_THAT(changes_, testing::UnorderedElementsAre("a: none -> blue", "c: none -> red", "d: none -> blue"));
  };
  with_cache(body);
}

TEST_F(LimitedCacheTest, AWatchThatBringsTooMuchIsGivenUpAndListedAgain) {
  api_.will_list("10", {sized(widget("a", 1), 400)});
  auto flood = api_.will_watch();
  api_.will_list("20", {sized(widget("a", 1), 400)});
  auto calm = api_.will_watch();
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    flood->try_push(Batch{modified(sized(widget("a", 11), 900))});
    co_await settle();
    EXPECT_EQ(api_.history(), "LW") << "what was replaced does not count";
    flood->try_push(Batch{added(sized(widget("b", 12), 400))});
    co_await clock_.sleep_for(1min);
    EXPECT_EQ(api_.history(), "LWLW");
    EXPECT_THAT(names(), ElementsAre("a"));
    calm->try_push(
        Batch{added(sized(widget("c", 21), 500)), deleted(widget("c", 22)), added(sized(widget("d", 23), 500))});
    co_await clock_.sleep_for(1min);
    EXPECT_EQ(api_.history(), "LWLW") << "what was deleted does not count";
    EXPECT_THAT(names(), ElementsAre("a", "d"));
  };
  with_cache(body);
}

}  // namespace
}  // namespace hubferry::test
