#include "sim/sim_test.hpp"

namespace hubferry::sim {
namespace {

const kube::Resource old_events{"", "v1", "events", "Event", true};

/// One store, served under two API groups.
class EventsTest : public SimTest {
 protected:
  static json::object event(std::string_view name) {
    return {{"metadata", json::object{{"name", name}, {"namespace", "default"}}},
            {"regarding", json::object{{"kind", "Widget"}, {"name", "a"}, {"namespace", "default"}}},
            {"reason", "Painted"},
            {"note", "it is red now"},
            {"type", "Normal"},
            {"reportingController", "painter"}};
  }
  static json::object old_event(std::string_view name) {
    return {{"metadata", json::object{{"name", name}, {"namespace", "default"}}},
            {"involvedObject", json::object{{"kind", "Widget"}, {"name", "b"}, {"namespace", "default"}}},
            {"reason", "Broken"},
            {"message", "it fell down"},
            {"type", "Warning"},
            {"count", 3},
            {"source", json::object{{"component", "hand"}}}};
  }
};

TEST_F(EventsTest, AnEventWrittenThroughEitherApiIsSeenThroughTheOther) {
  auto test = [&]() -> Awaitable<> {
    auto made = co_await api_.create(kube::resources::events, event("new"));
    CO_ASSERT_TRUE(made);
    auto seen = co_await api_.get(old_events, {"default", "new"});
    CO_ASSERT_TRUE(seen);
    EXPECT_EQ(seen->string_at({"apiVersion"}), "v1");
    EXPECT_EQ(seen->string_at({"message"}), "it is red now");
    EXPECT_EQ(seen->string_at({"involvedObject", "name"}), "a");
    EXPECT_EQ(seen->string_at({"reportingComponent"}), "painter");
    EXPECT_EQ(seen->find({"note"}), nullptr);
    EXPECT_EQ(seen->uid(), made->uid());

    auto written = co_await api_.create(old_events, old_event("old"));
    CO_ASSERT_TRUE(written);
    EXPECT_EQ(written->string_at({"message"}), "it fell down");
    auto translated = co_await api_.get(kube::resources::events, {"default", "old"});
    CO_ASSERT_TRUE(translated);
    EXPECT_EQ(translated->string_at({"apiVersion"}), "events.k8s.io/v1");
    EXPECT_EQ(translated->string_at({"note"}), "it fell down");
    EXPECT_EQ(translated->string_at({"regarding", "name"}), "b");
    EXPECT_EQ(translated->string_at({"deprecatedSource", "component"}), "hand");
    EXPECT_EQ(translated->find({"deprecatedCount"})->to_number<int>(), 3);
    EXPECT_EQ(translated->find({"message"}), nullptr);
  };
  loop_.run(test());
  EXPECT_EQ(server_.count(old_events), 2U);
  EXPECT_EQ(server_.count(kube::resources::events), 2U);
}

// As requested by `kubectl describe`.
TEST_F(EventsTest, OldFieldNamesSelectNewEvents) {
  auto test = [&]() -> Awaitable<> {
    co_await api_.create(kube::resources::events, event("new"));
    co_await api_.create(old_events, old_event("old"));
    kube::ListOptions options;
    options.ns = "default";
    options.field_selector = "involvedObject.kind=Widget,involvedObject.name=a,involvedObject.namespace=default";
    auto listed = co_await api_.list(old_events, options, kube::object_decoder());
    CO_ASSERT_TRUE(listed && listed->items.size() == 1);
    EXPECT_EQ(listed->items.front().key.name, "new");
    options.field_selector = "regarding.name=b";
    auto others = co_await api_.list(kube::resources::events, options, kube::object_decoder());
    CO_ASSERT_TRUE(others && others->items.size() == 1);
    EXPECT_EQ(others->items.front().key.name, "old");
  };
  loop_.run(test());
}

TEST_F(EventsTest, AWatchOfEitherVersionDeliversBothInItsOwnFieldNames) {
  auto test = [&]() -> Awaitable<> {
    kube::WatchOptions options;
    options.bookmarks = false;
    auto stream = co_await api_.watch(old_events, options, kube::object_decoder());
    CO_ASSERT_TRUE(stream);
    co_await api_.create(kube::resources::events, event("new"));
    auto added = co_await (*stream)->next();
    CO_ASSERT_TRUE(added && added->size() == 1);
    const auto* seen = static_cast<const kube::Object*>(added->front().decoded.object.get());
    EXPECT_EQ(seen->string_at({"message"}), "it is red now");
    const json::object patch{{"message", "it is green now"}};
    auto patched = co_await api_.merge_patch(old_events, {"default", "new"}, patch);
    CO_ASSERT_TRUE(patched);
    EXPECT_EQ(patched->string_at({"message"}), "it is green now");
    auto read = co_await api_.get(kube::resources::events, {"default", "new"});
    CO_ASSERT_TRUE(read);
    EXPECT_EQ(read->string_at({"note"}), "it is green now");
  };
  loop_.run(test());
}

}  // namespace
}  // namespace hubferry::sim
