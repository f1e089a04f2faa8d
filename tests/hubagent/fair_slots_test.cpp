#include "hubferry/hubagent/fair_slots.hpp"

#include <gmock/gmock.h>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"

namespace hubferry::hubagent {
namespace {

using async::Awaitable;
using namespace std::chrono_literals;

class FairSlotsTest : public testing::Test {
 protected:
  /// Has a slot for a minute.
  Awaitable<> watch(std::string migration, int number) {
    auto permit = co_await slots_.acquire(migration);
    order_.push_back(migration + std::to_string(number));
    co_await loop_.clock().sleep_for(1min);
  }

  async::VirtualLoop loop_;
  FairSlots slots_{2};
  std::vector<std::string> order_;
};

TEST_F(FairSlotsTest, AMigrationOfManyClustersDoesNotKeepOthersWaiting) {
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (int number = 1; number <= 6; ++number) scope.spawn(watch("many", number));
    co_await loop_.clock().sleep_for(1s);
    for (int number = 1; number <= 2; ++number) scope.spawn(watch("few", number));
  };
  loop_.run(async::with_scope(body));
  EXPECT_THAT(order_, testing::ElementsAre("many1", "many2", "many3", "few1", "many4", "few2", "many5", "many6"));
}

TEST_F(FairSlotsTest, ACancelledWaiterTakesNoSlot) {
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (int number = 1; number <= 2; ++number) scope.spawn(watch("first", number));
    auto cancelled = [&](async::TaskScope& waiters) -> Awaitable<> {
      for (int number = 1; number <= 3; ++number) waiters.spawn(watch("gone", number));
      co_await loop_.clock().sleep_for(1s);
      waiters.stop();
    };
    co_await async::with_scope(cancelled);
    for (int number = 1; number <= 2; ++number) scope.spawn(watch("last", number));
  };
  loop_.run(async::with_scope(body));
  EXPECT_THAT(order_, testing::ElementsAre("first1", "first2", "last1", "last2"));
  EXPECT_EQ(loop_.clock().now() - async::TimePoint{}, 2min);
}

TEST_F(FairSlotsTest, MoreSlotsWakeWaitersAndFewerWaitForThoseThatAreTaken) {
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (int number = 1; number <= 6; ++number) scope.spawn(watch("one", number));
    co_await loop_.clock().sleep_for(1s);
    EXPECT_EQ(order_.size(), 2u);
    slots_.resize(4);
    co_await loop_.clock().sleep_for(1s);
    EXPECT_EQ(order_.size(), 4u);
    slots_.resize(1);
    co_await loop_.clock().sleep_for(1min - 1s);
    EXPECT_EQ(order_.size(), 4u) << "of four that were taken, two were returned, and one is left over";
    co_await loop_.clock().sleep_for(1s);
    EXPECT_EQ(order_.size(), 5u);
  };
  loop_.run(async::with_scope(body));
  EXPECT_EQ(order_.size(), 6u);
}

}  // namespace
}  // namespace hubferry::hubagent
