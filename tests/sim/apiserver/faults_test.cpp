#include "sim/sim_test.hpp"

namespace hubferry::sim {
namespace {

class FaultsTest : public SimTest {
 protected:
  Faults& faults_ = server_.faults();
};

TEST_F(FaultsTest, AScriptedErrorOccursAsOftenAsConfiguredAndThenTheScriptIsExhausted) {
  auto test = [&]() -> Awaitable<> {
    faults_.on({"create", "widgets"}).times(1).fail(429, 7);
    faults_.on({"create", "widgets"}).times(1).fail(503);
    EXPECT_FALSE(faults_.script_exhausted());
    auto throttled = co_await api_.create(widgets, widget("a"));
    CO_ASSERT_TRUE(!throttled);
    EXPECT_EQ(throttled.error().kind, ErrorKind::retry_later);
    EXPECT_EQ(throttled.error().retry_after, async::Duration{7s});
    auto unavailable = co_await api_.create(widgets, widget("a"));
    CO_ASSERT_TRUE(!unavailable);
    EXPECT_EQ(unavailable.error().status, 503);
    EXPECT_TRUE(faults_.script_exhausted()) << faults_.unused();
    auto made = co_await api_.create(widgets, widget("a"));
    EXPECT_TRUE(made);
  };
  loop_.run(test());
}

TEST_F(FaultsTest, AResetAfterTheWriteIsAmbiguousAndTheWriteHappened) {
  auto test = [&]() -> Awaitable<> {
    faults_.on({"write"}).reset_before();
    auto unsent = co_await api_.create(widgets, widget("a"));
    CO_ASSERT_TRUE(!unsent);
    EXPECT_EQ(unsent.error().kind, ErrorKind::unreachable);
    EXPECT_EQ(server_.count(widgets), 0U);
    faults_.on({"write"}).reset_after();
    auto lost = co_await api_.create(widgets, widget("a"));
    CO_ASSERT_TRUE(!lost);
    EXPECT_EQ(lost.error().kind, ErrorKind::ambiguous);
    EXPECT_EQ(server_.count(widgets), 1U);
  };
  loop_.run(test());
}

TEST_F(FaultsTest, LatencyPassesAndADeadlineCutsItShort) {
  auto test = [&]() -> Awaitable<> {
    faults_.on({"get"}).always().delay(Latency::fixed(30s));
    auto read = co_await api_.get(widgets, {"default", "a"});
    EXPECT_FALSE(read);
    EXPECT_EQ(clock_.now() - async::TimePoint{}, 30s);
    kube::Request request;
    request.resource = widgets;
    request.key = {"default", "a"};
    request.deadline = clock_.now() + 5s;
    auto late = co_await api_.call(request);
    CO_ASSERT_TRUE(!late);
    EXPECT_EQ(late.error().kind, ErrorKind::unreachable);
    EXPECT_EQ(clock_.now() - async::TimePoint{}, 35s);
  };
  loop_.run(test());
}

// Over HTTP the client times out after 30 s too, and the server does not know of it.
TEST_F(FaultsTest, ARequestThatHangsTimesOutAndAWriteLandsLate) {
  auto test = [&]() -> Awaitable<> {
    faults_.on({"create", "widgets"}).delay(Latency::fixed(40s));
    auto hung = co_await api_.create(widgets, widget("a"));
    CO_ASSERT_TRUE(!hung);
    EXPECT_EQ(hung.error().kind, ErrorKind::ambiguous);
    EXPECT_EQ(clock_.now() - async::TimePoint{}, 30s);
    EXPECT_EQ(server_.count(widgets), 0U);
    auto not_yet = co_await api_.get(widgets, {"default", "a"});
    EXPECT_FALSE(not_yet);
    co_await clock_.sleep_for(10s);
    auto landed = co_await api_.get(widgets, {"default", "a"});
    EXPECT_TRUE(landed);

    faults_.on({"list", "widgets"}).delay(Latency::fixed(40s));
    auto unheard = co_await api_.list(widgets, {}, kube::object_decoder());
    CO_ASSERT_TRUE(!unheard);
    EXPECT_EQ(unheard.error().kind, ErrorKind::unreachable);
    EXPECT_EQ(clock_.now() - async::TimePoint{}, 70s);
  };
  loop_.run(test());
}

TEST_F(FaultsTest, WatchEventsAreDroppedDelayedAndCutAsConfigured) {
  auto test = [&]() -> Awaitable<> {
    kube::WatchOptions options;
    options.bookmarks = false;
    auto stream = co_await api_.watch(widgets, options, kube::object_decoder());
    CO_ASSERT_TRUE(stream);
    FaultTarget lost{.verb = {}, .resource = "widgets", .subresource = {}, .ns = {}, .name = "lost"};
    FaultTarget late{.verb = {}, .resource = "widgets", .subresource = {}, .ns = {}, .name = "late"};
    FaultTarget last{.verb = {}, .resource = "widgets", .subresource = {}, .ns = {}, .name = "last"};
    faults_.on(lost).drop_event();
    faults_.on(late).delay_event(Latency::fixed(5s));
    faults_.on(last).cut_watch();
    co_await api_.create(widgets, widget("lost"));
    co_await api_.create(widgets, widget("late"));
    auto events = co_await (*stream)->next();
    CO_ASSERT_TRUE(events && events->size() == 1);
    EXPECT_EQ(events->front().decoded.key.name, "late");
    EXPECT_EQ(clock_.now() - async::TimePoint{}, 5s);
    co_await api_.create(widgets, widget("last"));
    auto broken = co_await (*stream)->next();
    CO_ASSERT_TRUE(!broken);
    EXPECT_EQ(broken.error().kind, ErrorKind::unreachable);
    EXPECT_TRUE(faults_.script_exhausted());
  };
  loop_.run(test());
}

TEST_F(FaultsTest, AnOutageBreaksWatchesAndRefusesEverything) {
  auto test = [&]() -> Awaitable<> {
    auto stream = co_await api_.watch(widgets, {}, kube::object_decoder());
    CO_ASSERT_TRUE(stream);
    server_.outage(true);
    auto broken = co_await (*stream)->next();
    EXPECT_FALSE(broken);
    auto refused = co_await api_.list(widgets, {}, kube::object_decoder());
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::unreachable);
    server_.outage(false);
    auto back = co_await api_.list(widgets, {}, kube::object_decoder());
    EXPECT_TRUE(back);
  };
  loop_.run(test());
}

TEST_F(FaultsTest, AListFromTheWatchCacheMayShowThePast) {
  auto test = [&]() -> Awaitable<> {
    co_await api_.create(widgets, widget("a"));
    co_await api_.create(widgets, widget("b"));
    faults_.on({"list", "widgets"}).times(2).stale(1);
    kube::ListOptions cached;
    cached.resource_version = "0";
    auto stale = co_await api_.list(widgets, cached, kube::object_decoder());
    CO_ASSERT_TRUE(stale);
    EXPECT_EQ(stale->items.size(), 1U);
    auto quorum = co_await api_.list(widgets, {}, kube::object_decoder());
    CO_ASSERT_TRUE(quorum);
    EXPECT_EQ(quorum->items.size(), 2U) << "a list without a version is read from the storage";
    auto fresh = co_await api_.list(widgets, cached, kube::object_decoder());
    CO_ASSERT_TRUE(fresh);
    EXPECT_EQ(fresh->items.size(), 2U);
  };
  loop_.run(test());
}

std::string run_once(std::uint64_t seed) {
  async::VirtualLoop loop;
  async::Random random{seed};
  obs::Metrics metrics;
  Options options;
  options.seed = seed;
  options.latency = Latency::uniform(1ms, 9ms);
  Server server{options, kube::Env{loop.clock(), random, metrics, obs::Logger{}}};
  server.faults().on({"write"}).rate(0.3).fail(500);
  auto test = [&]() -> Awaitable<> {
    json::object body{{"metadata", json::object{{"generateName", "c-"}, {"namespace", "default"}}}};
    for (int i = 0; i < 50; ++i) co_await server.api().create(kube::resources::config_maps, body);
  };
  loop.run(test());
  return server.timeline();
}

TEST(FaultsSeedTest, TheSameSeedGivesTheSameTimelineAndAnotherSeedAnother) {
  EXPECT_EQ(run_once(1), run_once(1));
  EXPECT_NE(run_once(1), run_once(2));
}

}  // namespace
}  // namespace hubferry::sim
