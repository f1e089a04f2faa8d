#include "hubferry/async/deadline.hpp"
#include "kube/cache/cache_fixture.hpp"

namespace hubferry::test {
namespace {

bool is_blue(const Object* object) {
  return object != nullptr && object->string_at({"spec", "color"}) == "blue";
}
bool is_absent(const Object* object) {
  return object == nullptr;
}

class CacheWaitTest : public CacheTest {
 protected:
  CacheWaitTest() { api_.will_list("10", {widget("a", 1, "red")}); }

  async::TimePoint in(async::Duration delay) { return async::later(clock_.now(), delay); }

  /// How waiting ended.
  Awaitable<> wait_and_note(Key at, kube::Cache<Object>::Predicate predicate, async::TimePoint deadline,
                            std::string& note) {
    std::exception_ptr error;
    try {
      auto object = co_await cache_.wait_for(at, predicate, deadline);
      note = "got " + color_of(object);
    } catch (...) {
      error = std::current_exception();
    }
    if (async::is_timeout(error)) note = "timeout";
    if (async::is_cancellation(error)) {
      note = "cancelled";
      std::rethrow_exception(error);
    }
  }

  std::shared_ptr<ScriptedApi::Feed> feed_ = api_.will_watch();
};

TEST_F(CacheWaitTest, WhatHoldsAlreadyIsReturnedAtOnceEvenPastTheDeadline) {
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    const auto before = clock_.now();
    auto object = co_await cache_.wait_for(key("a"), [](const Object* o) { return o != nullptr; }, before);
    EXPECT_EQ(color_of(object), "red");
    auto none = co_await cache_.wait_for(key("x"), is_absent, before);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(clock_.now(), before);
  };
  with_cache(body);
}

TEST_F(CacheWaitTest, BeforeTheFirstListNothingIsKnownToBeAbsent) {
  auto body = [&]() -> Awaitable<> {
    auto none = co_await cache_.wait_for(key("x"), is_absent, in(1s));
    EXPECT_TRUE(cache_.synced());
    EXPECT_EQ(none, nullptr);
  };
  with_cache(body);
}

TEST_F(CacheWaitTest, AnEventWakesOnlyWaitersForThatObject) {
  int asked = 0;
  auto counted = [&](const Object* object) {
    ++asked;
    return is_blue(object);
  };
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    std::string note;
    async::TaskScope scope{co_await async::asio::this_coro::executor};
    scope.spawn(wait_and_note(key("a"), counted, in(1h), note));
    co_await settle();
    const int before = asked;
    feed_->try_push(Batch{added(widget("other", 11, "blue")), bookmark(12)});
    co_await settle();
    EXPECT_EQ(asked, before);
    feed_->try_push(Batch{modified(widget("a", 13, "green"))});
    co_await settle();
    EXPECT_EQ(asked, before + 1);
    EXPECT_EQ(note, "");
    feed_->try_push(Batch{modified(widget("a", 14, "blue"))});
    co_await scope.join();
    EXPECT_EQ(note, "got blue");
  };
  with_cache(body);
}

TEST_F(CacheWaitTest, ADeletionWakesWaitersWithNull) {
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    std::string note;
    async::TaskScope scope{co_await async::asio::this_coro::executor};
    scope.spawn(wait_and_note(key("a"), is_absent, in(1h), note));
    co_await settle();
    feed_->try_push(Batch{deleted(widget("a", 11))});
    co_await scope.join();
    EXPECT_EQ(note, "got none");
  };
  with_cache(body);
}

TEST_F(CacheWaitTest, TheDeadlineThrowsATimeoutInTime) {
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    const auto before = clock_.now();
    std::string note;
    co_await wait_and_note(key("a"), is_blue, in(30s), note);
    EXPECT_EQ(note, "timeout");
    EXPECT_EQ(clock_.now() - before, 30s);
    co_await wait_and_note(key("a"), is_blue, clock_.now(), note);
    EXPECT_EQ(note, "timeout") << "a deadline that has passed";
  };
  with_cache(body);
}

TEST_F(CacheWaitTest, AWaiterWokenAndCancelledInOneTurnLeavesTheOthersTheirWakeUp) {
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    std::string first_note;
    std::string second_note;
    async::TaskScope first{co_await async::asio::this_coro::executor};
    async::TaskScope second{co_await async::asio::this_coro::executor};
    first.spawn(wait_and_note(key("a"), is_blue, async::never, first_note));
    second.spawn(wait_and_note(key("a"), is_blue, async::never, second_note));
    auto on_change = cache_.subscribe([&](const Key&, const auto&, const auto&) { first.stop(); });
    co_await settle();
    feed_->try_push(Batch{modified(widget("a", 11, "blue"))});
    co_await first.join();
    co_await second.join();
    EXPECT_THAT(first_note, testing::AnyOf("got blue", "cancelled"));
    EXPECT_EQ(second_note, "got blue");
  };
  with_cache(body);
}

TEST_F(CacheWaitTest, ACancelledWaiterLeavesNothingBehind) {
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    std::string note;
    async::TaskScope scope{co_await async::asio::this_coro::executor};
    for (int i = 0; i < 3; ++i) scope.spawn(wait_and_note(key("a"), is_blue, in(1h), note));
    scope.spawn(cache_.wait_until_seen(key("a"), "99", in(1h)));
    co_await settle();
    scope.stop();
    co_await scope.join();
    EXPECT_EQ(note, "cancelled");
    feed_->try_push(Batch{modified(widget("a", 100, "blue"))});
    co_await settle();
    EXPECT_EQ(color_of(cache_.get(key("a"))), "blue");
  };
  with_cache(body);
}

TEST_F(CacheWaitTest, OurOwnWriteIsWaitedFor) {
  auto body = [&]() -> Awaitable<> {
    EXPECT_FALSE(cache_.has_seen(key("a"), "5")) << "nothing is seen before the first list";
    co_await cache_.wait_until_seen(key("a"), "5", in(1s));
    EXPECT_TRUE(cache_.has_seen(key("a"), "10"));
    EXPECT_FALSE(cache_.has_seen(key("a"), "11"));
    bool seen = false;
    async::TaskScope scope{co_await async::asio::this_coro::executor};
    auto waiter = [&]() -> Awaitable<> {
      co_await cache_.wait_until_seen(key("a"), "12", in(1h));
      seen = true;
    };
    scope.spawn(waiter());
    co_await settle();
    feed_->try_push(Batch{modified(widget("a", 11, "blue"))});
    co_await settle();
    EXPECT_FALSE(seen);
    feed_->try_push(Batch{modified(widget("a", 12, "green"))});
    co_await scope.join();
    EXPECT_TRUE(seen);
  };
  with_cache(body);
}

// Numbers, not text: "9" is older than "12".
TEST_F(CacheWaitTest, VersionsAreComparedAsNumbers) {
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    EXPECT_TRUE(cache_.has_seen(key("a"), "9"));
    EXPECT_FALSE(cache_.has_seen(key("a"), "100"));
    EXPECT_FALSE(cache_.has_seen(key("a"), ""));
    EXPECT_FALSE(cache_.has_seen(key("a"), "1x"));
  };
  with_cache(body);
}

TEST_F(CacheWaitTest, ADeletionAfterTheWriteCountsAsSeen) {
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    async::TaskScope scope{co_await async::asio::this_coro::executor};
    scope.spawn(cache_.wait_until_seen(key("a"), "12", in(1h)));
    co_await settle();
    feed_->try_push(Batch{deleted(widget("a", 13))});
    co_await scope.join();
    EXPECT_EQ(cache_.get(key("a")), nullptr);
  };
  with_cache(body);
}

TEST_F(CacheWaitTest, AWriteThatIsNeverSeenTimesOut) {
  auto body = [&]() -> Awaitable<> {
    co_await cache_.wait_synced();
    bool timed_out = false;
    try {
      co_await cache_.wait_until_seen(key("a"), "12", in(10s));
    } catch (const boost::system::system_error& error) {
      timed_out = error.code() == async::asio::error::timed_out;
    }
    EXPECT_TRUE(timed_out);
  };
  with_cache(body);
}

}  // namespace
}  // namespace hubferry::test
