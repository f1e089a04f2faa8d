#include "hubferry/kube/event_recorder.hpp"

#include "kube/control/control_test.hpp"

namespace hubferry::kube {
namespace {

EventRecorderOptions reporter() {
  EventRecorderOptions options;
  options.controller = "example.io/test";
  options.instance = "pod-1";
  return options;
}

ObjectReference about(std::string name, std::string ns = "ns") {
  ObjectReference reference;
  reference.api_version = "v1";
  reference.kind = "ConfigMap";
  reference.ns = std::move(ns);
  reference.name = std::move(name);
  reference.uid = "uid-" + reference.name;
  return reference;
}

class EventRecorderTest : public ControlTest {
 protected:
  void record(EventRecorder& recorder, const std::string& note, const std::string& name = "a") {
    recorder.event(about(name), EventType::warning, "Failed", "Move", note);
  }
  [[nodiscard]] std::vector<Object> events() const { return api_.all(resources::events); }
  double dropped(const std::string& reason) {
    return metrics_.counter_family("event_recorder_dropped_total", "Events that nobody will see, by reason", {"reason"})
        .with({reason})
        .value();
  }
  static std::int64_t count(const Object& event) {
    const auto* found = event.find({"series", "count"});
    return found == nullptr ? 1 : found->get_int64();
  }
};

TEST_F(EventRecorderTest, AnEventCarriesEverythingThatTheServerWants) {
  EventRecorder recorder{api_, reporter(), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(recorder.run());
    record(recorder, "it broke");
    EXPECT_EQ(api_.log.size(), 0U) << "event() itself sends nothing";
    co_await recorder.flushed();
    CO_ASSERT_EQ(events().size(), 1U);
    const auto event = events()[0];
    EXPECT_EQ(event.ns(), "ns");
    EXPECT_TRUE(event.name().starts_with("a."));
    EXPECT_EQ(event.string_at({"type"}), "Warning");
    EXPECT_EQ(event.string_at({"reason"}), "Failed");
    EXPECT_EQ(event.string_at({"action"}), "Move");
    EXPECT_EQ(event.string_at({"note"}), "it broke");
    EXPECT_EQ(event.string_at({"reportingController"}), "example.io/test");
    EXPECT_EQ(event.string_at({"reportingInstance"}), "pod-1");
    EXPECT_EQ(event.string_at({"regarding", "uid"}), "uid-a");
    EXPECT_EQ(event.string_at({"eventTime"}), "2030-01-01T00:00:00.000000Z");
    EXPECT_EQ(event.find({"series"}), nullptr);
  });
}

TEST_F(EventRecorderTest, EventsAboutClusterScopedObjectsGoToTheDefaultNamespace) {
  EventRecorder recorder{api_, reporter(), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(recorder.run());
    recorder.event(about("system:odd/Name", ""), EventType::normal, "R", "A", "n");
    co_await recorder.flushed();
    CO_ASSERT_EQ(events().size(), 1U);
    EXPECT_EQ(events()[0].ns(), "default");
    EXPECT_TRUE(events()[0].name().starts_with("system-odd--ame.")) << events()[0].name();
  });
}

TEST_F(EventRecorderTest, WhereTheServerRefusesThatTheyGoToKubeSystem) {
  EventRecorder recorder{api_, reporter(), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(recorder.run());
    api_.fail_next(Verb::create, ErrorKind::invalid);
    for (int i = 0; i < 3; ++i) {
      recorder.event(about("node", ""), EventType::normal, "R", "A", "n");
      co_await recorder.flushed();
    }
    recorder.event(about("node", ""), EventType::normal, "Other", "A", "n");
    co_await recorder.flushed();
    CO_ASSERT_EQ(events().size(), 2U);
    for (const auto& event : events()) {
      EXPECT_EQ(event.ns(), "kube-system");
      EXPECT_EQ(count(event), event.string_at({"reason"}) == "R" ? 3 : 1);
    }
    EXPECT_EQ(api_.requests(Verb::create), 3U) << "the second event goes there at once";
    EXPECT_EQ(dropped("rejected"), 0);
  });
}

TEST_F(EventRecorderTest, AnEventThatIsRefusedInBothNamespacesIsDropped) {
  EventRecorder recorder{api_, reporter(), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(recorder.run());
    api_.fail_next(Verb::create, ErrorKind::invalid);
    api_.fail_next(Verb::create, ErrorKind::invalid);
    recorder.event(about("node", ""), EventType::normal, "R", "A", "n");
    recorder.event(about("node", ""), EventType::normal, "Other", "A", "n");
    co_await recorder.flushed();
    EXPECT_EQ(dropped("rejected"), 1);
    CO_ASSERT_EQ(events().size(), 1U);
    EXPECT_EQ(events()[0].ns(), "default") << "the event was wrong, not its namespace";
  });
}

TEST_F(EventRecorderTest, ARepetitionRaisesTheCountOfTheSeries) {
  EventRecorder recorder{api_, reporter(), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(recorder.run());
    for (int i = 0; i < 3; ++i) {
      record(recorder, "again");
      co_await clock_.sleep_for(5min);
    }
    CO_ASSERT_EQ(events().size(), 1U);
    EXPECT_EQ(count(events()[0]), 3);
    EXPECT_EQ(events()[0].string_at({"series", "lastObservedTime"}), "2030-01-01T00:10:00.000000Z");
    co_await clock_.sleep_for(7min);
    record(recorder, "again");
    co_await recorder.flushed();
    EXPECT_EQ(events().size(), 2U) << "after six quiet minutes it is a new event";
  });
}

// Counting must cost the server nothing, and still end in the right number.
TEST_F(EventRecorderTest, AFloodOfRepetitionsIsCountedWithFewWrites) {
  EventRecorder recorder{api_, reporter(), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(recorder.run());
    for (int i = 0; i < 1000; ++i) {
      record(recorder, "again");
      co_await clock_.sleep_for(100ms);
    }
    co_await clock_.sleep_for(15min);
    CO_ASSERT_EQ(events().size(), 1U);
    EXPECT_EQ(count(events()[0]), 1000);
    EXPECT_LE(api_.log.size(), 27U) << "the burst, and the last word";
    EXPECT_EQ(dropped("rate"), 0);
  });
}

TEST_F(EventRecorderTest, EventsThatDifferInTheirNotesOnlyBecomeOneAboveALimit) {
  EventRecorder recorder{api_, reporter(), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(recorder.run());
    for (int i = 0; i < 20; ++i) {
      record(recorder, "try " + std::to_string(i));
      co_await recorder.flushed();
    }
    CO_ASSERT_EQ(events().size(), 11U);
    std::vector<std::int64_t> combined;
    for (const auto& event : events())
      if (event.string_at({"note"}).starts_with("(combined from similar events): ")) combined.push_back(count(event));
    EXPECT_THAT(combined, testing::ElementsAre(10)) << "the rest in one series";
  });
}

TEST_F(EventRecorderTest, AnObjectThatIsTooLoudIsLimitedAndOthersAreNot) {
  auto options = reporter();
  options.similar_limit = 1000;
  EventRecorder recorder{api_, options, env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(recorder.run());
    for (int i = 0; i < 40; ++i) record(recorder, "note " + std::to_string(i));
    record(recorder, "hello", "quiet");
    co_await recorder.flushed();
    EXPECT_EQ(events().size(), 26U);
    EXPECT_EQ(dropped("rate"), 15);
    co_await clock_.sleep_for(5min);
    record(recorder, "one more token");
    co_await recorder.flushed();
    EXPECT_EQ(events().size(), 27U);
  });
}

TEST_F(EventRecorderTest, AFullBufferDropsAndCounts) {
  auto options = reporter();
  options.most_waiting = 3;
  EventRecorder recorder{api_, options, env()};
  for (int i = 0; i < 5; ++i) record(recorder, "n", "object-" + std::to_string(i));
  EXPECT_EQ(recorder.waiting(), 3U);
  EXPECT_EQ(dropped("full"), 2);
}

TEST_F(EventRecorderTest, ANoteIsCutBetweenCharacters) {
  EventRecorder recorder{api_, reporter(), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(recorder.run());
    std::string note = "x";
    while (note.size() < 1100) note += "ü";
    record(recorder, note);
    co_await recorder.flushed();
    CO_ASSERT_EQ(events().size(), 1U);
    EXPECT_EQ(events()[0].string_at({"note"}).size(), 1023U);
  });
}

TEST(TruncateUtf8, NeverCutsASequence) {
  EXPECT_EQ(truncate_utf8("abc", 3), "abc");
  EXPECT_EQ(truncate_utf8("abcd", 3), "abc");
  EXPECT_EQ(truncate_utf8("a\xE2\x82\xAC", 3), "a");
  EXPECT_EQ(truncate_utf8("a\xE2\x82\xAC", 4), "a\xE2\x82\xAC");
  EXPECT_EQ(truncate_utf8("\xF0\x9F\x9A\xA2", 3), "");
  EXPECT_EQ(truncate_utf8("", 0), "");
  // No UTF-8 at all: cut to nothing rather than looped over.
  EXPECT_EQ(truncate_utf8("\x80\x80\x80\x80", 2), "");
}

TEST_F(EventRecorderTest, ATroubledServerGetsTheEventLater) {
  EventRecorder recorder{api_, reporter(), env()};
  api_.fail_next(Verb::create, ErrorKind::unreachable);
  api_.fail_next(Verb::create, ErrorKind::retry_later);
  api_.fail_next(Verb::create, ErrorKind::ambiguous, true);
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(recorder.run());
    record(recorder, "it broke");
    co_await recorder.flushed();
    EXPECT_EQ(events().size(), 1U);
    EXPECT_EQ(api_.requests(Verb::create), 4U);
    EXPECT_GT(elapsed(), 3s);
    EXPECT_EQ(dropped("unreachable"), 0);
  });
}

TEST_F(EventRecorderTest, AnUnreachableServerCostsTheEventNotTheRecorder) {
  EventRecorder recorder{api_, reporter(), env()};
  for (int i = 0; i < 8; ++i) api_.fail_next(Verb::create, ErrorKind::unreachable);
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(recorder.run());
    record(recorder, "lost");
    record(recorder, "kept", "b");
    co_await recorder.flushed();
    EXPECT_EQ(dropped("unreachable"), 1);
    CO_ASSERT_EQ(events().size(), 1U);
    EXPECT_EQ(events()[0].string_at({"note"}), "kept");
  });
}

TEST_F(EventRecorderTest, ARefusedEventIsDroppedAtOnce) {
  EventRecorder recorder{api_, reporter(), env()};
  api_.fail_next(Verb::create, ErrorKind::forbidden);
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(recorder.run());
    record(recorder, "lost");
    co_await recorder.flushed();
    EXPECT_EQ(api_.log.size(), 1U);
    EXPECT_EQ(dropped("rejected"), 1);
    EXPECT_TRUE(log_.contains("event dropped"));
  });
}

TEST_F(EventRecorderTest, AnEventThatExpiredOnTheServerIsCreatedAgain) {
  EventRecorder recorder{api_, reporter(), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(recorder.run());
    record(recorder, "again");
    co_await recorder.flushed();
    api_.erase(resources::events, events()[0].key());
    record(recorder, "again");
    co_await recorder.flushed();
    CO_ASSERT_EQ(events().size(), 1U);
    EXPECT_EQ(count(events()[0]), 2);
  });
}

}  // namespace
}  // namespace hubferry::kube
