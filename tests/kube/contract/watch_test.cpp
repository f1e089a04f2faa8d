// Watches: order, versions, selectors, bookmarks, ends, compaction.
#include "hubferry/kube/event_recorder.hpp"
#include "kube/contract/contract.hpp"

namespace hubferry::contract {
namespace {

using testing::ElementsAre;

TEST_P(KubeContract, AWatchReportsEveryChangeInOrder) {
  run([&]() -> Awaitable<> {
    auto events = co_await watch();
    co_await make_config_map("a");
    co_await api().update(resources::config_maps, config_map("a", "changed"));
    co_await api().remove(resources::config_maps, key("a"));
    auto added = co_await events.next();
    auto modified = co_await events.next();
    auto deleted = co_await events.next();
    EXPECT_EQ(to_text(added), "ADDED a");
    EXPECT_EQ(to_text(modified), "MODIFIED a");
    EXPECT_EQ(object_of(modified).string_at({"data", "k"}), "changed");
    EXPECT_EQ(to_text(deleted), "DELETED a");
    EXPECT_EQ(object_of(deleted).string_at({"data", "k"}), "changed") << "the last state comes with the deletion";
    EXPECT_NE(deleted.decoded.resource_version, modified.decoded.resource_version);
  });
}

TEST_P(KubeContract, AWatchFromAVersionReportsWhatHappenedSince) {
  run([&]() -> Awaitable<> {
    auto first = co_await make_config_map("a");
    co_await make_config_map("b");
    co_await api().remove(resources::config_maps, key("a"));
    WatchOptions options;
    options.resource_version = first.resource_version();
    auto events = co_await watch(options);
    auto one = co_await events.next();
    auto two = co_await events.next();
    EXPECT_EQ(to_text(one), "ADDED b");
    EXPECT_EQ(to_text(two), "DELETED a");
  });
}

TEST_P(KubeContract, AWatchFromZeroBeginsWithWhatIsThere) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a");
    co_await make_config_map("b");
    // The server's cache may be behind by a moment; a watch of our own is not ahead of it.
    auto behind = co_await watch();
    co_await make_config_map("c");
    co_await behind.next();
    WatchOptions options;
    options.resource_version = "0";
    auto events = co_await watch(options);
    std::vector<std::string> seen;
    for (int i = 0; i < 3; ++i) {
      auto event = co_await events.next();
      seen.push_back(to_text(event));
    }
    EXPECT_THAT(seen, testing::UnorderedElementsAre("ADDED a", "ADDED b", "ADDED c"));
  });
}

TEST_P(KubeContract, AWatchResumedFromItsLastEventMissesAndRepeatsNothing) {
  run([&]() -> Awaitable<> {
    std::vector<std::string> seen;
    std::string version;
    {
      auto events = co_await watch();
      for (int i = 0; i < 5; ++i) co_await make_config_map("n" + std::to_string(i));
      for (int i = 0; i < 3; ++i) {
        auto event = co_await events.next();
        seen.push_back(to_text(event));
        version = event.decoded.resource_version;
      }
    }
    co_await make_config_map("n5");
    WatchOptions options;
    options.resource_version = version;
    auto events = co_await watch(options);
    for (int i = 0; i < 3; ++i) {
      auto event = co_await events.next();
      seen.push_back(to_text(event));
    }
    EXPECT_THAT(seen, ElementsAre("ADDED n0", "ADDED n1", "ADDED n2", "ADDED n3", "ADDED n4", "ADDED n5"));
  });
}

TEST_P(KubeContract, ManyChangesComeInTheOrderOfTheirVersions) {
  run([&]() -> Awaitable<> {
    auto events = co_await watch();
    co_await make_config_map("a", "0");
    for (int i = 1; i < 50; ++i) co_await api().update(resources::config_maps, config_map("a", std::to_string(i)));
    for (int i = 0; i < 50; ++i) {
      auto event = co_await events.next();
      CO_ASSERT_EQ(std::string{object_of(event).string_at({"data", "k"})}, std::to_string(i));
    }
  });
}

TEST_P(KubeContract, TwoWatchersSeeTheSame) {
  run([&]() -> Awaitable<> {
    auto one = co_await watch();
    auto two = co_await watch();
    for (const auto* name : {"a", "b", "c"}) co_await make_config_map(name);
    for (int i = 0; i < 3; ++i) {
      auto left = co_await one.next();
      auto right = co_await two.next();
      EXPECT_EQ(to_text(left), to_text(right));
      EXPECT_EQ(left.decoded.resource_version, right.decoded.resource_version);
    }
  });
}

// For a selector's watcher, what stops to match is deleted, and what begins to match is new.
TEST_P(KubeContract, ObjectsEnterAndLeaveAWatchBySelector) {
  run([&]() -> Awaitable<> {
    WatchOptions options;
    options.label_selector = "watched=yes";
    auto events = co_await watch(options);
    co_await api().create(resources::config_maps, labelled("a", "watched", "no"));
    co_await api().update(resources::config_maps, labelled("a", "watched", "yes"));
    json::object patch{{"data", json::object{{"k", "changed"}}}};
    co_await api().merge_patch(resources::config_maps, key("a"), patch);
    co_await api().update(resources::config_maps, labelled("a", "watched", "no"));
    co_await api().update(resources::config_maps, labelled("a", "watched", "yes"));
    co_await api().remove(resources::config_maps, key("a"));
    std::vector<std::string> seen;
    for (int i = 0; i < 5; ++i) {
      auto event = co_await events.next();
      seen.push_back(to_text(event));
    }
    EXPECT_THAT(seen, ElementsAre("ADDED a", "MODIFIED a", "DELETED a", "ADDED a", "DELETED a"));
  });
}

TEST_P(KubeContract, AWatchOfOneObjectIsSilentAboutOthers) {
  run([&]() -> Awaitable<> {
    WatchOptions options;
    options.field_selector = "metadata.name=b";
    auto events = co_await watch(options);
    for (const auto* name : {"a", "b", "c"}) co_await make_config_map(name);
    co_await api().remove(resources::config_maps, key("b"));
    auto added = co_await events.next();
    auto deleted = co_await events.next();
    EXPECT_EQ(to_text(added), "ADDED b");
    EXPECT_EQ(to_text(deleted), "DELETED b");
  });
}

TEST_P(KubeContract, AWatchOfANamespaceIsSilentAboutOthers) {
  run([&]() -> Awaitable<> {
    auto events = co_await watch();
    json::object elsewhere = config_map(unique_name("contract-"));
    elsewhere["metadata"].get_object()["namespace"] = "default";
    auto other = co_await api().create(resources::config_maps, elsewhere);
    CO_ASSERT_TRUE(other.has_value());
    at_end(resources::config_maps, other->key());
    co_await make_config_map("mine");
    auto event = co_await events.next();
    EXPECT_EQ(to_text(event), "ADDED mine");
  });
}

TEST_P(KubeContract, AFinalizedObjectIsModifiedThenDeleted) {
  run([&]() -> Awaitable<> {
    json::object held = config_map("a");
    held["metadata"].get_object()["finalizers"] = json::array{"example.io/hold"};
    auto made = co_await api().create(resources::config_maps, held);
    auto events = co_await watch();
    co_await api().remove(resources::config_maps, key("a"));
    json::object patch{{"metadata", json::object{{"finalizers", nullptr}}}};
    co_await api().merge_patch(resources::config_maps, key("a"), patch);
    auto marked = co_await events.next();
    EXPECT_EQ(to_text(marked), "MODIFIED a");
    EXPECT_TRUE(object_of(marked).is_being_deleted());
    auto deleted = co_await events.next();
    EXPECT_EQ(to_text(deleted), "DELETED a");
  });
}

TEST_P(KubeContract, AnEventOfOneMebibyteArrives) {
  run([&]() -> Awaitable<> {
    auto events = co_await watch();
    const std::string big(1'000'000, 'x');
    co_await make_config_map("a", big);
    auto event = co_await events.next();
    EXPECT_EQ(object_of(event).string_at({"data", "k"}).size(), big.size());
  });
}

TEST_P(KubeContract, AWatchEndsInGoodOrderAtItsTimeout) {
  run([&]() -> Awaitable<> {
    WatchOptions options;
    options.timeout = 1s;
    options.bookmarks = false;
    auto events = co_await watch(options);
    auto end = co_await events.next_of_any_type();
    CO_ASSERT_TRUE(end.has_value());
    EXPECT_FALSE(end->has_value());
  });
}

// Without them a quiet watcher's version grows too old to resume from.
TEST_P(KubeContract, BookmarksTellAQuietWatcherHowFarItHasCome) {
  run([&]() -> Awaitable<> {
    WatchOptions options;
    options.label_selector = "nobody=has-this";
    options.timeout = 6s;
    auto events = co_await watch(options);
    auto elsewhere = co_await make_config_map("unseen");
    std::optional<WatchEvent> bookmark;
    while (true) {
      auto event = co_await events.next_of_any_type();
      CO_ASSERT_TRUE(event.has_value());
      if (!event->has_value()) break;
      EXPECT_EQ(to_text(**event), "BOOKMARK");
      bookmark = **event;
    }
    CO_ASSERT_TRUE(bookmark.has_value());
    EXPECT_GE(std::stoull(bookmark->decoded.resource_version), std::stoull(std::string{elsewhere.resource_version()}));
    WatchOptions resumed;
    resumed.resource_version = bookmark->decoded.resource_version;
    auto again = co_await watch(resumed);
    co_await make_config_map("seen");
    auto event = co_await again.next();
    EXPECT_EQ(to_text(event), "ADDED seen");
  });
}

TEST_P(KubeContract, NobodyGetsBookmarksWithoutAsking) {
  run([&]() -> Awaitable<> {
    WatchOptions options;
    options.bookmarks = false;
    options.timeout = 4s;
    auto events = co_await watch(options);
    co_await make_config_map("a");
    auto added = co_await events.next_of_any_type();
    CO_ASSERT_TRUE(added.has_value() && added->has_value());
    EXPECT_EQ(to_text(**added), "ADDED a");
    auto end = co_await events.next_of_any_type();
    CO_ASSERT_TRUE(end.has_value());
    EXPECT_FALSE(end->has_value());
  });
}

/// Events, as a real server keeps no cache of them: their watches go to etcd, which forgets when it is compacted.
json::object event_about(const std::string& ns, const std::string& name) {
  return {{"metadata", json::object{{"namespace", ns}, {"name", name}}},
          {"eventTime", "2030-01-01T00:00:00.000000Z"},
          {"reportingController", "example.io/contract"},
          {"reportingInstance", "contract"},
          {"type", "Normal"},
          {"reason", "Tested"},
          {"action", "Test"},
          {"note", "a note"},
          {"regarding", json::object{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"namespace", ns}, {"name", "a"}}}};
}

TEST_P(KubeContract, AWatchFromBeforeACompactionIsGone) {
  run([&]() -> Awaitable<> {
    auto first = co_await api().create(resources::events, event_about(ns(), "e1"));
    CO_ASSERT_TRUE(first.has_value());
    for (const auto* name : {"e2", "e3"}) {
      auto more = co_await api().create(resources::events, event_about(ns(), name));
      CO_ASSERT_TRUE(more.has_value());
    }
    co_await world().compact();
    auto error = co_await watch_error(resources::events, std::string{first->resource_version()});
    CO_ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind, ErrorKind::gone) << *error;
    auto page = co_await api().list(resources::events, here(), object_decoder());
    CO_ASSERT_TRUE(page.has_value());
    WatchOptions fresh;
    fresh.ns = ns();
    fresh.resource_version = page->resource_version;
    auto stream = co_await open(resources::events, fresh);
    CO_ASSERT_TRUE(stream.has_value());
    Watching events{std::move(*stream), clock()};
    co_await api().create(resources::events, event_about(ns(), "e4"));
    auto event = co_await events.next();
    EXPECT_EQ(to_text(event), "ADDED e4") << "after a fresh list all is well";
  });
}

TEST_P(KubeContract, AnOpenWatchSurvivesACompaction) {
  run([&]() -> Awaitable<> {
    auto events = co_await watch();
    co_await make_config_map("a");
    co_await world().compact();
    co_await make_config_map("b");
    auto a = co_await events.next();
    auto b = co_await events.next();
    EXPECT_EQ(to_text(a), "ADDED a");
    EXPECT_EQ(to_text(b), "ADDED b");
  });
}

// Newer servers call it invalid, older ones an internal error: only success would be wrong.
TEST_P(KubeContract, AWatchFromAVersionThatIsNoneIsRefused) {
  run([&]() -> Awaitable<> {
    auto error = co_await watch_error(resources::config_maps, "garbage");
    EXPECT_TRUE(error.has_value());
  });
}

}  // namespace
}  // namespace hubferry::contract
