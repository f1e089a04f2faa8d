#include "hubferry/kube/leader_election.hpp"

#include "hubferry/kube/event_recorder.hpp"
#include "kube/control/control_test.hpp"

namespace hubferry::kube {
namespace {

const Key lease_key{"ns", "lease"};

LeaderElectionOptions candidate(std::string identity) {
  LeaderElectionOptions options;
  options.name = lease_key.name;
  options.ns = lease_key.ns;
  options.identity = std::move(identity);
  return options;
}

std::string complaint(const LeaderElectionOptions& options) {
  try {
    options.validate();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

TEST(LeaderElectionOptions, ValuesThatCannotWorkAreRefusedWithASentence) {
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

class LeaderElectionTest : public ControlTest {
 protected:
  struct Term {
    std::string identity;
    std::int64_t epoch;
    TimePoint from;
    TimePoint to = async::never;
  };

  /// Works until cancelled, and keeps book of it.
  std::function<Awaitable<>(LeaderEpoch)> work() {
    return [this](LeaderEpoch epoch) -> Awaitable<> { return lead(std::move(epoch)); };
  }
  Awaitable<> lead(LeaderEpoch epoch) {
    const std::size_t term = terms_.size();
    terms_.push_back({epoch.identity, epoch.number, clock_.now()});
    std::exception_ptr end;
    try {
      co_await clock_.sleep_until(async::never);
    } catch (...) {
      end = std::current_exception();
    }
    terms_[term].to = clock_.now();
    std::rethrow_exception(end);
  }
  [[nodiscard]] std::string_view holder() const {
    return api_.find(resources::leases, lease_key)->string_at({"spec", "holderIdentity"});
  }
  /// Runs a candidate until it ends; keeps the sentence of a lost leadership.
  Awaitable<> compete(LeaderElector& elector, std::string& lost) {
    try {
      co_await elector.run(work());
    } catch (const LeadershipLost& e) {
      lost = e.what();
    }
  }

  std::vector<Term> terms_;
};

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

TEST_F(LeaderElectionTest, ALeaderThatCannotRenewStopsItsWorkBeforeAnotherStarts) {
  // Each has its own way to the server; the first one's is cut.
  bool first_is_cut = false;
  class Door final : public Api {
   public:
    Door(test::StoreApi& server, const bool& cut, async::Clock& clock) : server_(server), cut_(cut), clock_(clock) {}
    Awaitable<Result<Object>> call(Request request) override {
      if (cut_) co_await clock_.sleep_until(async::never);
      co_return co_await server_.call(std::move(request));
    }
    Awaitable<Result<ListPage>> list(Resource r, ListOptions o, const Decoder& d) override {
      return server_.list(std::move(r), std::move(o), d);
    }
    Awaitable<Result<std::unique_ptr<WatchStream>>> watch(Resource r, WatchOptions o, const Decoder& d) override {
      return server_.watch(std::move(r), std::move(o), d);
    }
    Awaitable<Result<json::value>> get_path(std::string path) override { return server_.get_path(std::move(path)); }
    [[nodiscard]] std::string_view name() const override { return "door"; }

   private:
    test::StoreApi& server_;
    const bool& cut_;
    async::Clock& clock_;
  };
  Door door{api_, first_is_cut, clock_};
  LeaderElector isolated{door, candidate("isolated"), env()};
  LeaderElector other{api_, candidate("other"), env()};
  std::string lost;
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(compete(isolated, lost));
    co_await clock_.sleep_for(1s);
    scope.spawn(other.run(work()));
    co_await clock_.sleep_for(29s);
    first_is_cut = true;
    const auto cut_at = clock_.now();
    co_await clock_.sleep_for(1min);
    CO_ASSERT_EQ(terms_.size(), 2U);
    EXPECT_LE(terms_[0].to - cut_at, 10s);
    EXPECT_GE(terms_[1].from - terms_[0].to, 5s) << "lease duration minus renew deadline";
    EXPECT_LE(terms_[1].from - cut_at, 15s + 5s);
    EXPECT_EQ(terms_[1].epoch, terms_[0].epoch + 1);
    EXPECT_THAT(lost, testing::HasSubstr("could not be renewed for 10s"));
    EXPECT_FALSE(isolated.is_leader());
  });
}

// The renewal counts from the start of its request: others may have seen it that early.
TEST_F(LeaderElectionTest, TheDeadlineCountsFromTheStartOfTheLastGoodRenewal) {
  LeaderElector elector{api_, candidate("me"), env()};
  std::string lost;
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(compete(elector, lost));
    co_await clock_.sleep_for(1s);
    api_.set_latency(1s);  // the renewal of second 2 is answered in second 3
    co_await clock_.sleep_for(2500ms);
    api_.cut_off(true);
    co_await clock_.sleep_for(1min);
    CO_ASSERT_EQ(terms_.size(), 1U);
    EXPECT_EQ(terms_[0].to - TimePoint{}, 12s);
  });
}

TEST_F(LeaderElectionTest, ALeaderSurvivesShortTroubleOfEveryKind) {
  LeaderElector elector{api_, candidate("me"), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(elector.run(work()));
    co_await clock_.sleep_for(1s);
    for (const auto kind : {ErrorKind::unreachable, ErrorKind::retry_later, ErrorKind::unauthorized,
                            ErrorKind::conflict, ErrorKind::ambiguous, ErrorKind::bad_response}) {
      for (const bool carried_out : {false, true}) {
        api_.fail_next(Verb::update, kind, carried_out);
        co_await clock_.sleep_for(20s);
        EXPECT_TRUE(elector.is_leader()) << to_string(kind);
      }
    }
    EXPECT_EQ(terms_.size(), 1U);
  });
}

TEST_F(LeaderElectionTest, ALeaderOutlastsAPauseOfTheServerBelowTheDeadline) {
  LeaderElector elector{api_, candidate("me"), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(elector.run(work()));
    co_await clock_.sleep_for(2100ms);
    api_.cut_off(true);
    co_await clock_.sleep_for(6s);
    api_.cut_off(false);
    co_await clock_.sleep_for(1min);
    EXPECT_TRUE(elector.is_leader());
  });
}

TEST_F(LeaderElectionTest, ALeaseTakenByAnotherEndsTheTermAtOnce) {
  LeaderElector elector{api_, candidate("me"), env()};
  std::string lost;
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(compete(elector, lost));
    co_await clock_.sleep_for(1s);
    json::object stolen = api_.find(resources::leases, lease_key)->json();
    stolen["spec"].get_object()["holderIdentity"] = "thief";
    stolen["spec"].get_object()["leaseTransitions"] = 1;
    api_.put(resources::leases, stolen);
    co_await clock_.sleep_for(2s);
    CO_ASSERT_EQ(terms_.size(), 1U);
    EXPECT_EQ(terms_[0].to - TimePoint{}, 2s);
    EXPECT_THAT(lost, testing::HasSubstr("to thief"));
    EXPECT_EQ(holder(), "thief") << "what is not ours is not released";
  });
}

TEST_F(LeaderElectionTest, ADeletedLeaseIsMadeAgainByItsLeader) {
  LeaderElector elector{api_, candidate("me"), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(elector.run(work()));
    co_await clock_.sleep_for(1s);
    api_.erase(resources::leases, lease_key);
    co_await clock_.sleep_for(5s);
    EXPECT_TRUE(elector.is_leader());
    EXPECT_EQ(holder(), "me");
    EXPECT_EQ(terms_.size(), 1U);
  });
}

// renewTime lies decades ahead, or back: only changes that we saw ourselves count.
TEST_F(LeaderElectionTest, TimesWrittenByOtherMachinesAreNotTrusted) {
  for (const auto* time : {"2099-01-01T00:00:00.000000Z", "1999-01-01T00:00:00.000000Z"}) {
    terms_.clear();
    api_.put(resources::leases, json::object{{"metadata", json::object{{"namespace", "ns"}, {"name", "lease"}}},
                                             {"spec", json::object{{"holderIdentity", "ghost"},
                                                                   {"leaseDurationSeconds", 15},
                                                                   {"renewTime", time},
                                                                   {"acquireTime", time},
                                                                   {"leaseTransitions", 7}}}});
    LeaderElector elector{api_, candidate("me"), env()};
    const auto start = clock_.now();
    run([&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(elector.run(work()));
      co_await clock_.sleep_for(1min);
      CO_ASSERT_EQ(terms_.size(), 1U);
      EXPECT_EQ(terms_[0].from - start, 15s);
      EXPECT_EQ(terms_[0].epoch, 8);
    });
  }
}

TEST_F(LeaderElectionTest, ACalendarSetBackOrForthDisturbsNobody) {
  LeaderElector leader{api_, candidate("leader"), env()};
  LeaderElector follower{api_, candidate("follower"), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(leader.run(work()));
    co_await clock_.sleep_for(1s);
    scope.spawn(follower.run(work()));
    for (const auto skew : {Duration{1h}, Duration{-1h}}) {
      co_await clock_.sleep_for(30s);
      clock_.skew_wall(skew);
    }
    co_await clock_.sleep_for(1min);
    EXPECT_EQ(terms_.size(), 1U);
  });
}

TEST_F(LeaderElectionTest, AClaimWhoseAnswerWasLostLeadsInATermOfItsOwn) {
  api_.fail_next(Verb::create, ErrorKind::ambiguous, true);
  LeaderElector elector{api_, candidate("me"), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(elector.run(work()));
    co_await clock_.sleep_for(1s);
    CO_ASSERT_EQ(terms_.size(), 1U);
    EXPECT_EQ(terms_[0].epoch, 1);
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

TEST_F(LeaderElectionTest, MetricsLogsAndAnEventTellWhoLeads) {
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
    EXPECT_TRUE(log_.contains("leading"));
    EXPECT_EQ(events.waiting(), 1U);
  });
  EXPECT_THAT(metrics_.text(), testing::HasSubstr("leader_election_master_status{name=\"lease\"} 0"));
}

}  // namespace
}  // namespace hubferry::kube
