#include "hubferry/kube/watch_machine.hpp"

#include <gmock/gmock.h>

namespace hubferry::kube {
namespace {

using namespace std::chrono_literals;
using async::Duration;
using async::TimePoint;
using enum WatchInput;
using enum WatchState;

/// Adds up what all tests of this file have taken: the last test looks at it.
std::bitset<WatchMachine::most_transitions>& coverage() {
  static std::bitset<WatchMachine::most_transitions> taken;
  return taken;
}

class WatchMachineTest : public testing::Test {
 protected:
  ~WatchMachineTest() override { coverage() |= machine_.taken(); }

  static WatchPolicy listing_policy() {
    WatchPolicy policy;
    policy.stream_initial = false;
    return policy;
  }

  void use(WatchPolicy policy) {
    coverage() |= machine_.taken();
    machine_ = WatchMachine{policy};
  }

  WatchStep feed(WatchInput input, WatchMachine::Facts facts = {}) {
    return machine_.resume(input, std::move(facts), now_, random_);
  }
  WatchStep feed_version(WatchInput input, std::string version) {
    WatchMachine::Facts facts;
    facts.resource_version = std::move(version);
    return feed(input, std::move(facts));
  }
  WatchStep feed_page(std::string token) {
    WatchMachine::Facts facts;
    facts.continue_token = std::move(token);
    return feed(page, std::move(facts));
  }

  /// Up to an open watch at version 10.
  void reach_reading() {
    feed(start);
    feed_version(last_page, "10");
    feed(opened);
    ASSERT_EQ(machine_.state(), reading);
  }

  template <typename Action>
  static const Action& as(const WatchStep& step) {
    return std::get<Action>(step.action);
  }
  static Duration delay(const WatchStep& step) { return as<Pause>(step).delay; }

  TimePoint now_ = TimePoint{} + 1h;
  async::Random random_{7};
  WatchMachine machine_{listing_policy()};
};

TEST_F(WatchMachineTest, ListsFromTheCacheThenWatchesFromTheListsVersion) {
  auto step = feed(start);
  EXPECT_EQ(as<ListNext>(step).resource_version, "0");
  EXPECT_EQ(as<ListNext>(step).limit, 500);
  EXPECT_TRUE(step.begin);
  step = feed_version(last_page, "10");
  EXPECT_TRUE(step.complete);
  EXPECT_EQ(as<OpenWatch>(step).resource_version, "10");
  EXPECT_FALSE(as<OpenWatch>(step).send_initial_events);
  step = feed(opened);
  EXPECT_EQ(as<ReadWatch>(step).silence, 0s);
  EXPECT_EQ(step.restart, "");
}

TEST_F(WatchMachineTest, PagesAreFollowedWithoutNamingAVersionAgain) {
  feed(start);
  const auto second = feed_page("t1");
  EXPECT_EQ(as<ListNext>(second).continue_token, "t1");
  EXPECT_EQ(as<ListNext>(second).resource_version, std::nullopt);
  EXPECT_FALSE(second.begin);
  EXPECT_FALSE(second.complete);
  EXPECT_TRUE(feed_version(last_page, "10").complete);
}

TEST_F(WatchMachineTest, AListThatExpiresBetweenPagesIsTakenInOnePiece) {
  feed(start);
  feed_page("t1");
  const auto again = feed(gone);
  EXPECT_TRUE(again.begin) << "what the first pages brought must be forgotten";
  EXPECT_EQ(again.restart, "gone");
  EXPECT_EQ(as<ListNext>(again).limit, 0);
  EXPECT_EQ(as<ListNext>(again).continue_token, "");
  EXPECT_EQ(as<ListNext>(again).resource_version, std::nullopt);
  EXPECT_EQ(delay(feed(gone)) >= 800ms, true) << "even that is gone: no busy loop";
}

// An answer over the limit: at version 0, or without a limit, the server sends everything at once.
TEST_F(WatchMachineTest, AListThatCannotBeReadIsAskedForAgainInPagesOfTheNewest) {
  feed(start);
  feed(garbled);
  const auto again = as<ListNext>(feed(pause_over));
  EXPECT_EQ(again.resource_version, std::nullopt);
  EXPECT_GT(again.limit, 0);
}

TEST_F(WatchMachineTest, AVersionTheServerDoesNotKnowIsGivenUpForTheNewest) {
  feed(start);
  const auto again = feed(gone);
  EXPECT_EQ(as<ListNext>(again).resource_version, std::nullopt);
  EXPECT_EQ(as<ListNext>(again).limit, 500);
  feed_version(last_page, "10");
  feed(opened);
  const auto fresh = feed(gone);
  EXPECT_EQ(as<ListNext>(fresh).resource_version, std::nullopt);
  EXPECT_TRUE(fresh.begin);
  EXPECT_TRUE(fresh.drop_stream);
}

TEST_F(WatchMachineTest, A410OnOpeningLeadsToAFreshList) {
  feed(start);
  feed_version(last_page, "10");
  const auto fresh = feed(gone);
  EXPECT_EQ(as<ListNext>(fresh).resource_version, std::nullopt);
  EXPECT_EQ(fresh.restart, "gone");
}

TEST_F(WatchMachineTest, AListAfterAFailureMustNotBeOlderThanWhatWasSeen) {
  reach_reading();
  feed_version(events, "12");
  EXPECT_GE(delay(feed(garbled)), 800ms);
  const auto again = feed(pause_over);
  EXPECT_EQ(as<ListNext>(again).resource_version, "12");
}

TEST_F(WatchMachineTest, AResumedRunDoesNotListAnythingOlder) {
  machine_ = WatchMachine{listing_policy(), "33"};
  EXPECT_EQ(as<ListNext>(feed(start)).resource_version, "33");
}

TEST_F(WatchMachineTest, ALostConnectionResumesFromTheLastVersionIncludingBookmarks) {
  reach_reading();
  feed_version(events, "11");
  WatchMachine::Facts bookmark;
  bookmark.resource_version = "15";
  bookmark.bookmarks_only = true;
  feed(events, bookmark);
  const auto lost = feed(failed);
  EXPECT_TRUE(lost.drop_stream);
  EXPECT_GE(delay(lost), 800ms);
  EXPECT_EQ(as<OpenWatch>(feed(pause_over)).resource_version, "15");
}

TEST_F(WatchMachineTest, ANormalCloseIsFollowedByANewWatchAtOnce) {
  reach_reading();
  now_ += 6min;
  const auto next = feed(closed);
  EXPECT_EQ(as<OpenWatch>(next).resource_version, "10");
  EXPECT_EQ(next.restart, "closed");
}

TEST_F(WatchMachineTest, AWatchThatClosesWithinASecondWithoutItemsCountsAsAFailure) {
  reach_reading();
  now_ += 900ms;
  const auto next = feed(closed);
  EXPECT_GE(delay(next), 800ms);
  EXPECT_EQ(next.restart, "too_short");
}

// Else a server that ends each watch after one event is asked 1,500 times a second.
TEST_F(WatchMachineTest, AShortWatchWithItemsIsPausedOverToo) {
  reach_reading();
  feed_version(events, "11");
  EXPECT_GE(delay(feed(closed)), 800ms);
  EXPECT_EQ(as<OpenWatch>(feed(pause_over)).resource_version, "11");
  feed(opened);
  feed_version(events, "12");
  EXPECT_GE(delay(feed(closed)), 1600ms) << "and longer each time";
  feed(pause_over);
  feed(opened);
  feed_version(events, "13");
  now_ += 2s;
  EXPECT_EQ(as<OpenWatch>(feed(closed)).resource_version, "13") << "it lived for a while";
}

// Else each 410 after a good list is followed by the next list at once.
TEST_F(WatchMachineTest, A410ThatComesAgainSoonIsPausedOver) {
  reach_reading();
  EXPECT_TRUE(std::holds_alternative<ListNext>(feed(gone).action));
  feed_version(last_page, "20");
  EXPECT_GE(delay(feed(gone)), 800ms);
  EXPECT_EQ(as<ListNext>(feed(pause_over)).resource_version, std::nullopt);
  feed_version(last_page, "30");
  feed(opened);
  EXPECT_GE(delay(feed(gone)), 1600ms);
  feed(pause_over);
  feed_version(last_page, "40");
  feed(opened);
  now_ += 10min;
  EXPECT_TRUE(std::holds_alternative<ListNext>(feed(gone).action)) << "after calm, at once again";
}

TEST_F(WatchMachineTest, WatchTimeoutsAreSpreadOverFiveToTenMinutes) {
  reach_reading();
  Duration least = 1h;
  Duration most = 0s;
  for (int i = 0; i < 200; ++i) {
    now_ += 5min;
    const auto step = feed(closed);
    least = std::min(least, as<OpenWatch>(step).timeout);
    most = std::max(most, as<OpenWatch>(step).timeout);
    feed(opened);
  }
  EXPECT_GE(least, 5min);
  EXPECT_LT(least, 6min);
  EXPECT_GT(most, 9min);
  EXPECT_LT(most, 10min);
}

TEST_F(WatchMachineTest, PausesGrowWithJitterUpToAMostAndStartOverAfterCalm) {
  feed(start);
  Duration floor = 800ms;
  for (int i = 0; i < 10; ++i) {
    const auto pause = delay(feed(failed));
    EXPECT_GE(pause, floor);
    EXPECT_LE(pause, 2 * floor);
    now_ += pause;
    feed(pause_over);
    floor = std::min<Duration>(2 * floor, 30s);
  }
  now_ += 2min;
  EXPECT_LE(delay(feed(failed)), 1600ms);
}

TEST_F(WatchMachineTest, TheServersRetryAfterIsHonoured) {
  feed(start);
  WatchMachine::Facts facts;
  facts.retry_after = 90s;
  EXPECT_EQ(delay(feed(failed, facts)), 90s);
}

TEST_F(WatchMachineTest, RefusalsOfAPlainListOrWatchArePausedOver) {
  feed(start);
  EXPECT_GE(delay(feed(refused)), 800ms);
  feed(pause_over);
  EXPECT_GE(delay(feed(garbled)), 800ms);
  feed(pause_over);
  feed_version(last_page, "10");
  for (const auto input : {refused, failed, garbled}) {
    EXPECT_GE(delay(feed(input)), 800ms);
    EXPECT_EQ(as<OpenWatch>(feed(pause_over)).resource_version, "10");
  }
  feed(opened);
  EXPECT_GE(delay(feed(refused)), 800ms);
  EXPECT_EQ(machine_.state(), watch_pause);
}

class WatchListTest : public WatchMachineTest {
 protected:
  WatchListTest() { use(WatchPolicy{}); }
};

TEST_F(WatchListTest, AsksForTheInitialObjectsAsAStream) {
  const auto open = feed(start);
  EXPECT_TRUE(as<OpenWatch>(open).send_initial_events);
  EXPECT_EQ(as<OpenWatch>(open).resource_version, "");
  EXPECT_TRUE(open.begin);
  EXPECT_GT(as<ReadWatch>(feed(opened)).silence, 0s);
  EXPECT_FALSE(feed_version(events, "3").complete);
  EXPECT_EQ(machine_.resource_version(), "") << "versions of initial events are in no order";
  const auto done = feed_version(filled, "10");
  EXPECT_TRUE(done.complete);
  EXPECT_EQ(as<ReadWatch>(done).silence, 0s);
  EXPECT_EQ(machine_.resource_version(), "10");
}

TEST_F(WatchListTest, AServerThatCannotIsAskedForAListFromThenOn) {
  feed(start);
  const auto list = feed(refused);
  EXPECT_TRUE(list.begin);
  EXPECT_EQ(as<ListNext>(list).resource_version, "0");
  feed_version(last_page, "10");
  EXPECT_TRUE(std::holds_alternative<ListNext>(feed(gone).action));
}

TEST_F(WatchListTest, AServerThatIgnoresSendInitialEventsIsListed) {
  for (const auto input : {events, closed, refused, gone}) {
    use(WatchPolicy{});
    feed(start);
    feed(opened);
    WatchMachine::Facts plain_bookmark;
    plain_bookmark.bookmarks_only = input == events;
    const auto list = feed(input, plain_bookmark);
    EXPECT_TRUE(std::holds_alternative<ListNext>(list.action)) << to_string(input);
    EXPECT_TRUE(list.begin && list.drop_stream);
  }
  use(WatchPolicy{});
  feed(start);
  EXPECT_EQ(as<ListNext>(feed(gone)).resource_version, std::nullopt);
}

TEST_F(WatchListTest, FailuresLeadToAnotherTry) {
  for (const auto input : {failed, garbled}) {
    use(WatchPolicy{});
    feed(start);
    EXPECT_GE(delay(feed(input)), 800ms);
    EXPECT_TRUE(as<OpenWatch>(feed(pause_over)).send_initial_events);
    feed(opened);
    EXPECT_GE(delay(feed(input)), 800ms);
    EXPECT_TRUE(feed(pause_over).begin);
  }
}

TEST_F(WatchListTest, A410LeadsToANewStreamOfTheNewest) {
  feed(start);
  feed(opened);
  feed_version(filled, "10");
  const auto again = feed(gone);
  EXPECT_TRUE(as<OpenWatch>(again).send_initial_events);
  EXPECT_EQ(as<OpenWatch>(again).resource_version, "");
  feed(opened);
  feed_version(filled, "20");
  feed(failed);
  feed(pause_over);
  now_ += 10min;
  EXPECT_TRUE(as<OpenWatch>(feed(gone)).send_initial_events) << "also when the resumed watch is refused";
}

TEST(WatchErrors, AreWhatTheMachineMakesOfThem) {
  const auto cause = [](int status, std::string_view body) { return cause_of(error_from_status(status, body)); };
  EXPECT_EQ(cause(410, ""), gone);
  EXPECT_EQ(cause(504, R"({"kind":"Status","reason":"Timeout","message":"Too large resource version: 9, current: 8"})"),
            gone);
  EXPECT_EQ(cause(504, ""), failed);
  EXPECT_EQ(cause(422, ""), refused);
  EXPECT_EQ(cause(400, ""), refused);
  EXPECT_EQ(cause(405, ""), refused);
  EXPECT_EQ(cause(403, ""), failed);
  EXPECT_EQ(cause(404, ""), failed);
  EXPECT_EQ(cause(200, "<html>"), garbled);
}

TEST(WatchInputs, ThatAStateDoesNotKnowAreBugs) {
  async::Random random{1};
  WatchMachine machine{WatchPolicy{}};
  EXPECT_THROW(machine.resume(events, {}, TimePoint{}, random), std::logic_error);
  machine.resume(start, {}, TimePoint{}, random);
  EXPECT_THROW(machine.resume(filled, {}, TimePoint{}, random), std::logic_error);
}

// Named so that it runs after the others: gtest keeps the order of definition within a file.
TEST(WatchTransitions, AreAllTakenByTheTestsAbove) {
  if (testing::UnitTest::GetInstance()->test_to_run_count() != testing::UnitTest::GetInstance()->total_test_count())
    return;  // with a filter the others did not run
  std::string missing;
  const auto rows = WatchMachine::transitions();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (coverage().test(i)) continue;
    missing += std::string{to_string(rows[i].from)} + " --" + std::string{to_string(rows[i].input)} + "--> " +
               std::string{to_string(rows[i].to)} + "\n";
  }
  EXPECT_EQ(missing, "");
}

}  // namespace
}  // namespace hubferry::kube
