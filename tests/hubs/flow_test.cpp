#include <gmock/gmock.h>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubs/flow_api.hpp"
#include "support/coroutine_test.hpp"

/// How many requests a hub gets at once, and which ones come first.
namespace hubferry::hubs {
namespace {

using async::Awaitable;
using namespace std::chrono_literals;

async::TimePoint at(async::Duration since) {
  return async::TimePoint{} + 1h + since;
}

/// A hub that answers `rounds` rounds of 50 requests after `took`, all that are allowed at once.
void answer(FlowLimit& limit, async::Duration& now, int rounds, async::Duration took) {
  for (int i = 0; i < rounds * 50; ++i) limit.answered(at(now += 20ms), took, true);
}

TEST(FlowLimitTest, AQuickHubGetsAsManyAsThereAreConnections) {
  FlowLimit limit{32};
  async::Duration now{0};
  answer(limit, now, 20, 5ms);
  EXPECT_EQ(limit.limit(), 32U);
}

TEST(FlowLimitTest, ADistantHubIsNotSlowedDown) {
  FlowLimit limit{32};
  async::Duration now{0};
  answer(limit, now, 20, 200ms);
  EXPECT_EQ(limit.limit(), 32U) << "200 ms are the best that it can";
}

TEST(FlowLimitTest, AHubWhoseAnswersQueueGetsFewerAndMoreAgainAfterwards) {
  FlowLimit limit{32};
  async::Duration now{0};
  answer(limit, now, 5, 10ms);
  answer(limit, now, 5, 300ms);
  EXPECT_LT(limit.limit(), 15U);
  const auto reduced = limit.limit();
  answer(limit, now, 5, 10ms);
  EXPECT_EQ(limit.limit(), reduced + 5) << "one more with each round";
}

TEST(FlowLimitTest, ARefusalHalvesItOnceForAllThatWereSentBefore) {
  FlowLimit limit{32};
  for (int i = 0; i < 20; ++i) limit.refused(at(1ms * i));
  EXPECT_EQ(limit.limit(), 16U);
  limit.refused(at(1s));
  EXPECT_EQ(limit.limit(), 8U);
  for (int i = 2; i < 20; ++i) limit.refused(at(1s * i));
  EXPECT_EQ(limit.limit(), FlowLimit::least) << "never none";
}

TEST(FlowLimitTest, OneSlowAnswerAmongQuickOnesSaysNothing) {
  FlowLimit limit{32};
  async::Duration now{0};
  for (int i = 0; i < 500; ++i) limit.answered(at(now += 1ms), i % 10 == 0 ? 2s : 5ms, true);
  EXPECT_EQ(limit.limit(), 32U);
}

TEST(FlowLimitTest, AHubThatBecomesSlowerForGoodIsNotSlowedDownForEver) {
  FlowLimit limit{32};
  async::Duration now{0};
  answer(limit, now, 5, 10ms);
  answer(limit, now, 300, 100ms);
  EXPECT_EQ(limit.limit(), 32U);
}

/// Answers each request after `latency`, and remembers the order in which they came.
class SlowApi final : public kube::Api {
 public:
  explicit SlowApi(async::Clock& clock) : clock_(clock) {}

  Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    began.push_back(request.key.name);
    most = std::max(most, ++in_flight);
    struct Ends {
      std::size_t& count;
      ~Ends() { --count; }
    } const ends{in_flight};
    co_await clock_.sleep_for(latency);
    if (refuses) co_return kube::Error{kube::ErrorKind::retry_later, 429, {}, "too many requests", std::nullopt};
    co_return kube::Object{};
  }
  Awaitable<kube::Result<kube::ListPage>> list(kube::Resource, kube::ListOptions, const kube::Decoder&) override {
    co_return kube::ListPage{};
  }
  Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource, kube::WatchOptions,
                                                                    const kube::Decoder&) override {
    co_return kube::Error{kube::ErrorKind::unsupported, 0, {}, "none", std::nullopt};
  }
  Awaitable<kube::Result<kube::json::value>> get_path(std::string) override { co_return kube::json::value{}; }
  [[nodiscard]] std::string_view name() const override { return "slow"; }

  async::Duration latency = 100ms;
  bool refuses = false;
  std::vector<std::string> began;
  std::size_t in_flight = 0;
  std::size_t most = 0;

 private:
  async::Clock& clock_;
};

class FlowApiTest : public testing::Test {
 protected:
  Awaitable<> read(kube::Resource resource, std::string name) {
    kube::Request request;
    request.resource = std::move(resource);
    request.key = {{}, std::move(name)};
    (void)co_await flow_.call(std::move(request));
  }
  Awaitable<> read_many(async::TaskScope& scope, int count) {
    for (int i = 0; i < count; ++i) scope.spawn(read(kube::resources::secrets, "bulk"));
    co_return;
  }

  async::VirtualLoop loop_;
  async::Random random_{1};
  obs::Metrics metrics_;
  kube::Env env_{loop_.clock(), random_, metrics_, obs::Logger{}};
  std::shared_ptr<SlowApi> server_ = std::make_shared<SlowApi>(loop_.clock());
  FlowApi flow_{server_, "hub1", env_};
};

TEST_F(FlowApiTest, AHubGetsNoMoreAtOnceThanItsLimit) {
  auto body = [&](async::TaskScope& scope) { return read_many(scope, 200); };
  loop_.run(async::with_scope(body));
  EXPECT_EQ(server_->began.size(), 200U);
  EXPECT_EQ(server_->most, 32U);
}

TEST_F(FlowApiTest, AHubThatRefusesRequestsGetsFewerAtOnce) {
  server_->refuses = true;
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (int i = 0; i < 40; ++i) {
      scope.spawn(read_many(scope, 10));
      co_await loop_.clock().sleep_for(100ms);
    }
    server_->most = 0;
  };
  loop_.run(async::with_scope(body));
  EXPECT_EQ(server_->began.size(), 400U) << "all were sent";
  EXPECT_LE(server_->most, FlowLimit::least);
}

TEST_F(FlowApiTest, ACutOverComesBeforeBulkCopiesAndTheyStillGetTheirTurn) {
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    co_await read_many(scope, 100);
    co_await loop_.clock().sleep_for(50ms);
    for (int i = 0; i < 20; ++i) scope.spawn(read(ocm::managed_clusters, "urgent"));
  };
  loop_.run(async::with_scope(body));
  const auto& order = server_->began;
  ASSERT_EQ(order.size(), 120U);
  const std::vector<std::string> next{order.begin() + 32, order.begin() + 32 + 24};
  EXPECT_EQ(std::ranges::count(next, "urgent"), 20) << "though 68 others had come before";
  EXPECT_GE(std::ranges::count(next, "bulk"), 2);
}

TEST_F(FlowApiTest, ACallerThatIsCancelledWhileItWaitsLeavesTheQueue) {
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    co_await read_many(scope, 32);
    auto& clock = loop_.clock();
    const bool in_time =
        co_await async::before_deadline(clock, clock.now() + 10ms, read(kube::resources::secrets, "cancelled"));
    EXPECT_FALSE(in_time);
    scope.spawn(read(kube::resources::secrets, "last"));
  };
  loop_.run(async::with_scope(body));
  EXPECT_EQ(server_->began.size(), 33U);
  EXPECT_EQ(server_->began.back(), "last");
}

}  // namespace
}  // namespace hubferry::hubs
