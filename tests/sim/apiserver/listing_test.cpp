#include "sim/sim_test.hpp"

namespace hubferry::sim {
namespace {

class ListingTest : public SimTest {
 protected:
  Awaitable<> make(int count) {
    for (int i = 0; i < count; ++i) {
      json::object body = widget("w" + std::to_string(i));
      body["metadata"].as_object()["labels"] = json::object{{"parity", i % 2 == 0 ? "even" : "odd"}};
      auto made = co_await api_.create(widgets, body);
      EXPECT_TRUE(made);
    }
  }
};

TEST_F(ListingTest, PagesComeFromOneSnapshot) {
  auto test = [&]() -> Awaitable<> {
    co_await make(5);
    kube::ListOptions options;
    options.limit = 2;
    auto first = co_await api_.list(widgets, options, kube::object_decoder());
    CO_ASSERT_TRUE(first);
    EXPECT_EQ(first->items.size(), 2U);
    co_await api_.create(widgets, widget("w00"));
    co_await api_.remove(widgets, {"default", "w4"});
    std::vector<std::string> names;
    options.continue_token = first->continue_token;
    while (!options.continue_token.empty()) {
      auto page = co_await api_.list(widgets, options, kube::object_decoder());
      CO_ASSERT_TRUE(page);
      EXPECT_EQ(page->resource_version, first->resource_version);
      for (const auto& item : page->items) names.push_back(item.key.name);
      options.continue_token = page->continue_token;
    }
    EXPECT_EQ(names, (std::vector<std::string>{"w2", "w3", "w4"}));
    options.continue_token = first->continue_token;
    server_.compact();
    co_await api_.create(widgets, widget("w01"));
    auto expired = co_await api_.list(widgets, options, kube::object_decoder());
    CO_ASSERT_TRUE(!expired);
    EXPECT_EQ(expired.error().kind, ErrorKind::gone);
    auto all = co_await api_.list_all(widgets, {});
    CO_ASSERT_TRUE(all);
    EXPECT_EQ(all->size(), 6U);
  };
  loop_.run(test());
}

TEST_F(ListingTest, SelectorsSelect) {
  auto test = [&]() -> Awaitable<> {
    co_await make(4);
    const auto count = [&](std::string labels, std::string fields) -> Awaitable<std::size_t> {
      kube::ListOptions options;
      options.label_selector = std::move(labels);
      options.field_selector = std::move(fields);
      auto page = co_await api_.list(widgets, options, kube::object_decoder());
      co_return page ? page->items.size() : std::size_t{999};
    };
    EXPECT_EQ(co_await count("parity=even", ""), 2U);
    EXPECT_EQ(co_await count("parity!=even", ""), 2U);
    EXPECT_EQ(co_await count("parity in (even,odd)", ""), 4U);
    EXPECT_EQ(co_await count("parity notin (even)", ""), 2U);
    EXPECT_EQ(co_await count("!parity", ""), 0U);
    EXPECT_EQ(co_await count("parity,parity==odd", ""), 2U);
    EXPECT_EQ(co_await count("", "metadata.name=w1"), 1U);
    EXPECT_EQ(co_await count("", "metadata.name!=w1"), 3U);
    kube::ListOptions options;
    options.field_selector = "spec.size=1";
    auto refused = co_await api_.list(widgets, options, kube::object_decoder());
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().message, "field label not supported: spec.size");
    EXPECT_EQ(refused.error().status, 400);
    options.field_selector.clear();
    options.label_selector = "a in b";
    auto garbage = co_await api_.list(widgets, options, kube::object_decoder());
    EXPECT_FALSE(garbage);
  };
  loop_.run(test());
}

TEST_F(ListingTest, AFutureVersionIsRejectedAndAnExactOneReturnsThePast) {
  auto test = [&]() -> Awaitable<> {
    co_await make(2);
    const auto then = std::to_string(server_.resource_version());
    co_await api_.remove(widgets, {"default", "w0"});
    kube::ListOptions options;
    options.resource_version = "999999";
    options.resource_version_match = "NotOlderThan";
    auto future = co_await api_.list(widgets, options, kube::object_decoder());
    CO_ASSERT_TRUE(!future);
    EXPECT_EQ(future.error().status, 504);
    EXPECT_EQ(future.error().kind, ErrorKind::retry_later);
    options.resource_version = then;
    options.resource_version_match = "Exact";
    auto past = co_await api_.list(widgets, options, kube::object_decoder());
    CO_ASSERT_TRUE(past);
    EXPECT_EQ(past->items.size(), 2U);
    EXPECT_EQ(past->resource_version, then);
    options.resource_version = "0";
    options.resource_version_match.clear();
    options.limit = 1;
    auto cached = co_await api_.list(widgets, options, kube::object_decoder());
    CO_ASSERT_TRUE(cached);
    EXPECT_EQ(cached->items.size(), 1U);
    options.resource_version = "nonsense";
    auto garbage = co_await api_.list(widgets, options, kube::object_decoder());
    CO_ASSERT_TRUE(!garbage);
    EXPECT_EQ(garbage.error().kind, ErrorKind::invalid);
  };
  loop_.run(test());
}

/// "ADDED a", "BOOKMARK" …
std::string describe(const kube::WatchEvent& event) {
  switch (event.type) {
    case kube::WatchEventType::added:
      return "ADDED " + event.decoded.key.name;
    case kube::WatchEventType::modified:
      return "MODIFIED " + event.decoded.key.name;
    case kube::WatchEventType::deleted:
      return "DELETED " + event.decoded.key.name;
    case kube::WatchEventType::bookmark:
      return event.initial_events_end ? "END" : "BOOKMARK";
  }
  return {};
}

/// Reads until `count` events arrived or the stream ended.
Awaitable<std::vector<std::string>> read(kube::WatchStream& stream, std::size_t count) {
  std::vector<std::string> events;
  while (events.size() < count) {
    auto batch = co_await stream.next();
    if (!batch) {
      events.push_back("ERROR " + std::string{to_string(batch.error().kind)});
      break;
    }
    if (batch->empty()) {
      events.emplace_back("CLOSED");
      break;
    }
    for (const auto& event : *batch) events.push_back(describe(event));
  }
  co_return events;
}

using Events = std::vector<std::string>;

TEST_F(ListingTest, AWatchContinuesFromAVersionAndEndsAtItsTimeout) {
  auto test = [&]() -> Awaitable<> {
    co_await make(1);
    kube::WatchOptions options;
    options.resource_version = std::to_string(server_.resource_version());
    options.bookmarks = false;
    options.timeout = 10s;
    json::object patch{{"spec", json::object{{"size", 7}}}};
    co_await api_.merge_patch(widgets, {"default", "w0"}, patch);
    auto stream = co_await api_.watch(widgets, options, kube::object_decoder());
    CO_ASSERT_TRUE(stream);
    co_await api_.create(widgets, widget("b"));
    co_await api_.remove(widgets, {"default", "w0"});
    auto events = co_await read(**stream, 4);
    EXPECT_EQ(events, (Events{"MODIFIED w0", "ADDED b", "DELETED w0", "CLOSED"}));
    EXPECT_EQ(clock_.now() - async::TimePoint{}, 10s);
  };
  loop_.run(test());
  EXPECT_EQ(server_.open_watches(), 0U);
}

TEST_F(ListingTest, AnObjectThatEntersOrLeavesTheSelectionIsAddedOrDeleted) {
  auto test = [&]() -> Awaitable<> {
    co_await make(2);
    kube::WatchOptions options;
    options.resource_version = std::to_string(server_.resource_version());
    options.label_selector = "parity=even";
    options.bookmarks = false;
    auto stream = co_await api_.watch(widgets, options, kube::object_decoder());
    CO_ASSERT_TRUE(stream);
    json::object odd{{"metadata", json::object{{"labels", json::object{{"parity", "odd"}}}}}};
    json::object even{{"metadata", json::object{{"labels", json::object{{"parity", "even"}}}}}};
    co_await api_.merge_patch(widgets, {"default", "w0"}, odd);
    co_await api_.merge_patch(widgets, {"default", "w1"}, even);
    co_await api_.remove(widgets, {"default", "w0"});
    co_await api_.remove(widgets, {"default", "w1"});
    auto events = co_await read(**stream, 3);
    EXPECT_EQ(events, (Events{"DELETED w0", "ADDED w1", "DELETED w1"}));
  };
  loop_.run(test());
}

TEST_F(ListingTest, InitialEventsEndWithABookmarkAndBookmarksComeEveryMinute) {
  auto test = [&]() -> Awaitable<> {
    co_await make(2);
    kube::WatchOptions options;
    options.send_initial_events = true;
    options.timeout = 90s;
    auto stream = co_await api_.watch(widgets, options, kube::object_decoder());
    CO_ASSERT_TRUE(stream);
    auto events = co_await read(**stream, 6);
    EXPECT_EQ(events, (Events{"ADDED w0", "ADDED w1", "END", "BOOKMARK", "BOOKMARK", "CLOSED"}));
  };
  loop_.run(test());
}

TEST_F(ListingTest, AWatchFromACompactedVersionIsGone) {
  auto test = [&]() -> Awaitable<> {
    co_await make(1);
    kube::WatchOptions options;
    options.resource_version = std::to_string(server_.resource_version());
    co_await api_.create(widgets, widget("b"));
    server_.compact();
    auto stream = co_await api_.watch(widgets, options, kube::object_decoder());
    CO_ASSERT_TRUE(stream);
    auto events = co_await read(**stream, 1);
    EXPECT_EQ(events, (Events{"ERROR gone"}));
  };
  loop_.run(test());
}

TEST_F(ListingTest, AWatchThatOverflowsIsClosed) {
  Options options;
  options.watch_buffer = 3;
  Server small{options, env_};
  auto test = [&]() -> Awaitable<> {
    kube::WatchOptions from;
    from.resource_version = std::to_string(small.resource_version());
    auto stream = co_await small.api().watch(kube::resources::config_maps, from, kube::object_decoder());
    CO_ASSERT_TRUE(stream);
    for (int i = 0; i < 5; ++i)
      co_await small.api().create(kube::resources::config_maps, config_map("c" + std::to_string(i)));
    auto events = co_await read(**stream, 1);
    EXPECT_EQ(events, (Events{"CLOSED"}));
  };
  loop_.run(test());
}

TEST_F(ListingTest, ACancelledWatcherLeavesNothingBehind) {
  auto test = [&]() -> Awaitable<> {
    kube::WatchOptions options;
    auto stream = co_await api_.watch(widgets, options, kube::object_decoder());
    CO_ASSERT_TRUE(stream);
    async::TaskScope scope{co_await async::asio::this_coro::executor};
    auto reader = [&]() -> Awaitable<> {
      auto events = co_await (*stream)->next();
      ADD_FAILURE() << "unexpected event";
    };
    scope.spawn(reader());
    co_await clock_.sleep_for(1s);
    scope.stop();
    co_await scope.join();
  };
  loop_.run(test());
  EXPECT_EQ(server_.open_watches(), 0U);
}

}  // namespace
}  // namespace hubferry::sim
