#include "hubferry/kube/event_recorder.hpp"
#include "kube/control/leader_election_fixture.hpp"
#include "kube/control/lease_machine.hpp"

namespace hubferry::kube {
namespace {

std::string complaint(const LeaderElectionOptions& options) {
  try {
    options.validate();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

TEST(LeaderElectionOptions, ValuesThatCannotWorkAreRefusedWithAMessage) {
  EXPECT_EQ(complaint(candidate("a")), "");
  auto options = candidate("a");
  options.renew_deadline = options.lease_duration;
  EXPECT_THAT(complaint(options), testing::HasSubstr("must be below the lease duration (15s)"));
  options = candidate("a");
  options.retry_period = 9s;
  EXPECT_THAT(complaint(options), testing::HasSubstr("a single failed renewal"));
  options = candidate("a");
  options.lease_duration = 900ms;
  EXPECT_THAT(complaint(options), testing::HasSubstr("at least 1s"));
  options = candidate("");
  EXPECT_THAT(complaint(options), testing::HasSubstr("identity"));
}

// The answer of another request once arrived on the same connection: the manager led without holding the Lease.
TEST(LeaseMachineTest, AnAnswerThatNamesAnotherHolderIsNoClaimAndNoRenewal) {
  async::Random random{1};
  const auto lease = [](std::string_view holder) {
    json::object spec{{"holderIdentity", holder}, {"leaseDurationSeconds", 15}, {"leaseTransitions", 1}};
    return Object{json::object{{"spec", spec}}};
  };
  LeaseMachine machine{candidate("us"), random};
  TimePoint now = TimePoint{} + 1h;
  EXPECT_TRUE(std::holds_alternative<LeaseMachine::Read>(machine.next(now, {})));
  machine.on_read(std::nullopt, now);
  EXPECT_TRUE(std::holds_alternative<LeaseMachine::Create>(machine.next(now, {})));
  machine.on_written(lease("them"), now, now);
  EXPECT_FALSE(machine.is_leading(now));
  EXPECT_TRUE(std::holds_alternative<LeaseMachine::Read>(machine.next(now, {})));
  machine.on_read(lease("us"), now);
  machine.on_written(lease("us"), now, now);
  EXPECT_TRUE(machine.is_leading(now));
  const auto until = machine.leads_until();
  now += 2s;
  machine.on_written(Object{}, now, now);
  EXPECT_EQ(machine.leads_until(), until);
}

TEST_F(LeaderElectionTest, TheFirstCandidateLeadsAndTheSecondWaits) {
  LeaderElector first{api_, candidate("first"), env()};
  LeaderElector second{api_, candidate("second"), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(first.run(work()));
    co_await clock_.sleep_for(1s);
    scope.spawn(second.run(work()));
    co_await clock_.sleep_for(10min);
    CO_ASSERT_EQ(terms_.size(), 1U);
    EXPECT_EQ(terms_[0].identity, "first");
    EXPECT_TRUE(first.is_leader());
    EXPECT_FALSE(second.is_leader());
    EXPECT_EQ(second.leader(), "first");
  });
}

TEST_F(LeaderElectionTest, TheLeaseLooksAsOthersExpectIt) {
  LeaderElector elector{api_, candidate("me"), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(elector.run(work()));
    co_await clock_.sleep_for(3s);
    const auto* lease = api_.find(resources::leases, lease_key);
    CO_ASSERT_TRUE(lease != nullptr);
    EXPECT_EQ(lease->string_at({"spec", "holderIdentity"}), "me");
    EXPECT_EQ(*lease->find({"spec", "leaseDurationSeconds"}), 15);
    EXPECT_EQ(*lease->find({"spec", "leaseTransitions"}), 0);
    EXPECT_EQ(lease->string_at({"spec", "acquireTime"}), "2030-01-01T00:00:00.000000Z");
    EXPECT_EQ(lease->string_at({"spec", "renewTime"}), "2030-01-01T00:00:02.000000Z");
  });
}

// A leader that stops working must not keep the others waiting.
TEST_F(LeaderElectionTest, StoppingReleasesTheLeaseAfterTheWorkHasEnded) {
  LeaderElector elector{api_, candidate("me"), env()};
  run([&](async::TaskScope&) -> Awaitable<> {
    async::TaskScope leading{co_await async::asio::this_coro::executor};
    leading.spawn(elector.run(work()));
    co_await clock_.sleep_for(5s);
    api_.before = [&](const Request& request) {
      const Object sent{request.body.get_object()};
      EXPECT_EQ(sent.string_at({"spec", "holderIdentity"}), "");
      EXPECT_NE(terms_[0].to, async::never) << "released while the work still ran";
    };
    leading.stop();
    co_await leading.join();
    EXPECT_EQ(holder(), "");
    EXPECT_EQ(*api_.find(resources::leases, lease_key)->find({"spec", "leaseDurationSeconds"}), 1);
    EXPECT_FALSE(elector.is_leader());
    EXPECT_THAT(log_.lines(), testing::Contains(testing::AllOf(testing::HasSubstr("stopped leading"),
                                                               testing::Not(testing::HasSubstr("error")))));
  });
}

TEST_F(LeaderElectionTest, WithoutReleaseTheLeaseIsLeftToExpire) {
  auto options = candidate("me");
  options.release_on_stop = false;
  LeaderElector elector{api_, options, env()};
  run([&](async::TaskScope&) -> Awaitable<> {
    async::TaskScope leading{co_await async::asio::this_coro::executor};
    leading.spawn(elector.run(work()));
    co_await clock_.sleep_for(5s);
    leading.stop();
    co_await leading.join();
    EXPECT_EQ(holder(), "me");
  });
}

TEST_F(LeaderElectionTest, WorkThatEndsGivesTheLeaseBackAndRunReturns) {
  LeaderElector elector{api_, candidate("me"), env()};
  run([&](async::TaskScope&) -> Awaitable<> {
    std::int64_t epoch = -1;
    auto brief = [&](LeaderEpoch term) -> Awaitable<> {
      epoch = term.number;
      co_await clock_.sleep_for(1min);
    };
    co_await elector.run(brief);
    EXPECT_EQ(elapsed(), 1min);
    EXPECT_EQ(epoch, 0);
    EXPECT_EQ(holder(), "");
    co_await elector.run(brief);
    EXPECT_EQ(epoch, 1) << "each term has a number of its own";
  });
}

TEST_F(LeaderElectionTest, WorkThatFailsReleasesTheLeaseAndItsErrorComesOut) {
  LeaderElector elector{api_, candidate("me"), env()};
  run([&](async::TaskScope&) -> Awaitable<> {
    auto failing = [&](LeaderEpoch) -> Awaitable<> {
      co_await clock_.sleep_for(1s);
      throw std::runtime_error("the work broke");
    };
    std::string error;
    try {
      co_await elector.run(failing);
    } catch (const std::exception& e) {
      error = e.what();
    }
    EXPECT_EQ(error, "the work broke");
    EXPECT_EQ(holder(), "");
  });
}

TEST_F(LeaderElectionTest, ManyCandidatesOneLeaderAtATime) {
  std::vector<std::unique_ptr<LeaderElector>> electors;
  for (int i = 0; i < 5; ++i)
    electors.push_back(std::make_unique<LeaderElector>(api_, candidate("c" + std::to_string(i)), env()));
  run([&](async::TaskScope& scope) -> Awaitable<> {
    // Each works for a while, gives the Lease back, and is a candidate again.
    int at_once = 0;
    std::vector<std::int64_t> epochs;
    auto shift = [&](LeaderEpoch epoch) -> Awaitable<> {
      epochs.push_back(epoch.number);
      EXPECT_EQ(++at_once, 1);
      co_await clock_.sleep_for(random_.between(1s, 20s));
      --at_once;
    };
    auto candidate_forever = [&](LeaderElector& elector) -> Awaitable<> {
      while (true) co_await elector.run(shift);
    };
    for (auto& elector : electors) scope.spawn(candidate_forever(*elector));
    co_await clock_.sleep_for(30min);
    EXPECT_GT(epochs.size(), 50U);
    EXPECT_TRUE(std::ranges::adjacent_find(epochs, std::greater_equal{}) == epochs.end()) << "epochs only grow";
  });
}

TEST_F(LeaderElectionTest, CancelledWhileWaitingItLeavesTheLeaseAlone) {
  api_.put(resources::leases,
           json::object{{"metadata", json::object{{"namespace", "ns"}, {"name", "lease"}}},
                        {"spec", json::object{{"holderIdentity", "other"}, {"leaseDurationSeconds", 3600}}}});
  LeaderElector elector{api_, candidate("me"), env()};
  run([&](async::TaskScope&) -> Awaitable<> {
    async::TaskScope waiting{co_await async::asio::this_coro::executor};
    waiting.spawn(elector.run(work()));
    co_await clock_.sleep_for(1min);
    waiting.stop();
    co_await waiting.join();
    EXPECT_EQ(holder(), "other");
    EXPECT_EQ(api_.requests(Verb::update), 0U);
  });
}

// The release must not hold up a process that has to end.
TEST_F(LeaderElectionTest, AReleaseThatHangsIsGivenUp) {
  LeaderElector elector{api_, candidate("me"), env()};
  run([&](async::TaskScope&) -> Awaitable<> {
    async::TaskScope leading{co_await async::asio::this_coro::executor};
    leading.spawn(elector.run(work()));
    co_await clock_.sleep_for(1s);
    api_.cut_off(true);
    leading.stop();
    co_await leading.join();
    EXPECT_EQ(elapsed(), 1s + 3s);
  });
}

TEST_F(LeaderElectionTest, MetricsLogsAndAnEventReportWhoLeads) {
  EventRecorderOptions reporter;
  reporter.controller = "example.io/test";
  reporter.instance = "pod";
  EventRecorder events{api_, reporter, env()};
  LeaderElector elector{api_, candidate("me"), env(), &events};
  EXPECT_THAT(metrics_.text(), testing::HasSubstr("leader_election_master_status{name=\"lease\"} 0"));
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(elector.run(work()));
    co_await clock_.sleep_for(1s);
    EXPECT_THAT(metrics_.text(), testing::HasSubstr("leader_election_master_status{name=\"lease\"} 1"));
    EXPECT_TRUE(log_.contains("started leading"));
    EXPECT_EQ(events.waiting(), 1U);
  });
  EXPECT_THAT(metrics_.text(), testing::HasSubstr("leader_election_master_status{name=\"lease\"} 0"));
}

}  // namespace
}  // namespace hubferry::kube
