// Leaders and candidates when servers, clocks and other people give them trouble.
#include "kube/control/leader_election_fixture.hpp"

namespace hubferry::kube {
namespace {

// Numbers that start over would let a write of an old term pass for one of the present.
TEST_F(LeaderElectionTest, ADeletedLeaseKeepsCountingItsTerms) {
  api_.put(resources::leases,
           json::object{{"metadata", json::object{{"namespace", lease_key.ns}, {"name", lease_key.name}}},
                        {"spec", json::object{{"holderIdentity", ""}, {"leaseTransitions", 7}}}});
  auto transitions = [&] { return api_.find(resources::leases, lease_key)->find({"spec", "leaseTransitions"}); };
  auto leaves_its_lease = candidate("first");
  leaves_its_lease.release_on_stop = false;
  LeaderElector first{api_, leaves_its_lease, env()};
  LeaderElector second{api_, candidate("second"), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    async::TaskScope leading{co_await async::asio::this_coro::executor};
    leading.spawn(first.run(work()));
    co_await clock_.sleep_for(10s);
    EXPECT_EQ(*transitions(), 8);

    api_.erase(resources::leases, lease_key);
    co_await clock_.sleep_for(1min);
    EXPECT_EQ(*transitions(), 8) << "the same term, in a new object";
    EXPECT_EQ(terms_.size(), 1U);

    scope.spawn(second.run(work()));
    co_await clock_.sleep_for(10s);
    leading.stop();
    co_await leading.join();
    api_.erase(resources::leases, lease_key);
    co_await clock_.sleep_for(1min);
    EXPECT_EQ(*transitions(), 9);
    EXPECT_EQ(terms_.size(), 2U);
    EXPECT_EQ(terms_.back().epoch, 9);
  });
}

// A server in trouble is not helped by a candidate that asks it without a pause.
TEST_F(LeaderElectionTest, AmbiguousWritesDoNotCauseABusyLoop) {
  for (int i = 0; i < 1000; ++i) api_.fail_next(Verb::create, ErrorKind::ambiguous);
  LeaderElector elector{api_, candidate("me"), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(elector.run(work()));
    co_await clock_.sleep_for(20s);
    EXPECT_LE(api_.requests(Verb::create), 22U) << "at most two in each retry period of two seconds";
    EXPECT_TRUE(terms_.empty());
  });
}

TEST_F(LeaderElectionTest, ALeaderThatCannotRenewStopsItsWorkBeforeAnotherStarts) {
  // Each has its own connection to the server; the first one's is cut.
  bool first_is_cut = false;
  class Connection final : public Api {
   public:
    Connection(test::StoreApi& server, const bool& cut, async::Clock& clock)
        : server_(server), cut_(cut), clock_(clock) {}
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
    [[nodiscard]] std::string_view name() const override { return "connection"; }

   private:
    test::StoreApi& server_;
    const bool& cut_;
    async::Clock& clock_;
  };
  Connection connection{api_, first_is_cut, clock_};
  LeaderElector isolated{connection, candidate("isolated"), env()};
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
    EXPECT_THAT(lost, testing::HasSubstr("not renewed for 10s"));
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

TEST_F(LeaderElectionTest, ADeletedLeaseIsCreatedAgainByItsLeader) {
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

TEST_F(LeaderElectionTest, WallClockJumpsDoNotMatter) {
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

}  // namespace
}  // namespace hubferry::kube
