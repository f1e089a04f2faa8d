#include "hubferry/kube/fence.hpp"

#include "kube/control/leader_election_fixture.hpp"

namespace hubferry::kube {
namespace {

const Key secret_key{"ns", "secret"};

class FenceTest : public LeaderElectionTest {
 protected:
  std::shared_ptr<Api> fenced(Fence& fence) { return make_fenced_api({std::shared_ptr<void>{}, &api_}, fence, env()); }
  static json::object secret() {
    return {{"metadata", json::object{{"namespace", secret_key.ns}, {"name", secret_key.name}}}};
  }
  [[nodiscard]] const Request* last(const Resource& resource, Verb verb) const {
    for (auto request = api_.log.rbegin(); request != api_.log.rend(); ++request)
      if (request->resource.plural == resource.plural && request->verb == verb) return &*request;
    return nullptr;
  }
  /// Runs `script` while the elector leads.
  void leading(LeaderElector& elector, std::function<Awaitable<>()> script) {
    run([&](async::TaskScope& scope) -> Awaitable<> {
      std::string lost;
      scope.spawn(compete(elector, lost));
      co_await clock_.sleep_for(1s);
      EXPECT_TRUE(elector.is_leader());
      co_await script();
    });
  }
};

TEST_F(FenceTest, TheDeadlineOfAWriteIsCutToTheEndOfTheTerm) {
  LeaderElector elector{api_, candidate("me"), env()};
  leading(elector, [&]() -> Awaitable<> {
    const auto api = fenced(elector);
    auto made = co_await api->create(resources::secrets, secret());
    EXPECT_TRUE(made);
    EXPECT_EQ(last(resources::secrets, Verb::create)->deadline, elector.until());
    EXPECT_LE(elector.until(), clock_.now() + 10s);
    // An earlier one stays as it is.
    Request early;
    early.verb = Verb::update;
    early.resource = resources::secrets;
    early.key = secret_key;
    early.body = made->json();
    early.deadline = clock_.now() + 1s;
    co_await api->call(early);
    EXPECT_EQ(last(resources::secrets, Verb::update)->deadline, early.deadline);
    auto read = co_await api->get(resources::secrets, secret_key);
    EXPECT_TRUE(read);
    EXPECT_EQ(last(resources::secrets, Verb::get)->deadline, TimePoint{}) << "reads harm nobody";
  });
}

TEST_F(FenceTest, NoWriteIsSentWhenTheTermIsAboutToEnd) {
  LeaderElector elector{api_, candidate("me"), env()};
  leading(elector, [&]() -> Awaitable<> {
    const auto api = fenced(elector);
    api_.cut_off(true);
    co_await clock_.sleep_until(elector.until() - 500ms);
    api_.cut_off(false);
    auto made = co_await api->create(resources::secrets, secret());
    CO_ASSERT_TRUE(!made);
    EXPECT_EQ(made.error().kind, ErrorKind::retry_later);
    EXPECT_EQ(last(resources::secrets, Verb::create), nullptr);
  });
}

TEST_F(FenceTest, ADeposedLeaderSendsNothing) {
  LeaderElector elector{api_, candidate("me"), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    std::string lost;
    scope.spawn(compete(elector, lost));
    co_await clock_.sleep_for(1s);
    api_.cut_off(true);
    co_await clock_.sleep_for(1min);
    api_.cut_off(false);
    EXPECT_NE(lost, "");
    auto made = co_await fenced(elector)->create(resources::secrets, secret());
    EXPECT_FALSE(made);
    EXPECT_EQ(last(resources::secrets, Verb::create), nullptr);
  });
}

TEST_F(FenceTest, BeforeADeletionTheLeaseIsReadUnlessThatWasLessThanASecondAgo) {
  api_.put(resources::secrets, secret());
  LeaderElector elector{api_, candidate("me"), env()};
  leading(elector, [&]() -> Awaitable<> {
    const auto api = fenced(elector);
    co_await clock_.sleep_for(500ms);  // half way between two renewals
    const auto reads = api_.requests(Verb::get);
    auto removed = co_await api->remove(resources::secrets, secret_key);
    EXPECT_TRUE(removed);
    EXPECT_EQ(api_.requests(Verb::get), reads + 1);
    co_await api->remove(resources::secrets, secret_key);
    EXPECT_EQ(api_.requests(Verb::get), reads + 1);
  });
}

TEST_F(FenceTest, NothingIsDeletedWhenTheLeaseHasAnotherHolder) {
  api_.put(resources::secrets, secret());
  LeaderElector elector{api_, candidate("me"), env()};
  leading(elector, [&]() -> Awaitable<> {
    co_await clock_.sleep_for(500ms);
    auto lease = api_.find(resources::leases, lease_key)->json();
    lease["spec"].as_object()["holderIdentity"] = "other";
    api_.put(resources::leases, lease);
    auto removed = co_await fenced(elector)->remove(resources::secrets, secret_key);
    CO_ASSERT_TRUE(!removed);
    EXPECT_EQ(removed.error().kind, ErrorKind::retry_later);
    EXPECT_NE(api_.find(resources::secrets, secret_key), nullptr);
  });
}

TEST_F(FenceTest, ALeaderThatIsOutrankedTakesAHigherNumberIfItHoldsTheLease) {
  LeaderElector elector{api_, candidate("me"), env()};
  leading(elector, [&]() -> Awaitable<> {
    EXPECT_EQ(elector.epoch().number, 0);
    const bool leads = co_await elector.outrank(41);
    EXPECT_TRUE(leads);
    EXPECT_EQ(elector.epoch(), (LeaderEpoch{"me", 42}));
    EXPECT_EQ(api_.find(resources::leases, lease_key)->find({"spec", "leaseTransitions"})->as_int64(), 42);
    co_await clock_.sleep_for(1min);
    EXPECT_TRUE(elector.is_leader());
  });
}

// The renewal took effect, its answer got lost.
TEST_F(FenceTest, AHigherNumberWhoseAnswerGotLostIsStillOurs) {
  LeaderElector elector{api_, candidate("me"), env()};
  leading(elector, [&]() -> Awaitable<> {
    api_.fail_next(Verb::update, ErrorKind::ambiguous, true);
    const bool leads = co_await elector.outrank(6);
    EXPECT_TRUE(leads);
    EXPECT_EQ(elector.epoch().number, 7);
  });
}

TEST_F(FenceTest, ADeposedLeaderOutranksNobody) {
  LeaderElector elector{api_, candidate("me"), env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    std::string lost;
    scope.spawn(compete(elector, lost));
    co_await clock_.sleep_for(1s);
    auto lease = api_.find(resources::leases, lease_key)->json();
    lease["spec"].as_object()["holderIdentity"] = "other";
    lease["spec"].as_object()["leaseTransitions"] = 1;
    api_.put(resources::leases, lease);
    const bool leads = co_await elector.outrank(1);
    EXPECT_FALSE(leads);
  });
}

TEST_F(FenceTest, AProcessThatIsMeantToBeAloneTakesALeaseThatIsNotRenewed) {
  api_.put(resources::leases,
           json::object{{"metadata", json::object{{"namespace", "ns"}, {"name", "lease"}}},
                        {"spec", json::object{{"holderIdentity", "dead"}, {"leaseDurationSeconds", 3600}}}});
  auto options = candidate("me");
  options.takeover_after = 6s;
  LeaderElector elector{api_, options, env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    std::string lost;
    scope.spawn(compete(elector, lost));
    co_await clock_.sleep_for(5s);
    EXPECT_FALSE(elector.is_leader());
    co_await clock_.sleep_for(5s);
    EXPECT_TRUE(elector.is_leader());
  });
}

TEST_F(FenceTest, AProcessThatIsMeantToBeAloneWaitsForOneThatRenewsAndLeadsAfterIt) {
  std::vector<std::string> leaders;
  auto options = candidate("second");
  options.takeover_after = 6s;
  options.return_to_standby = true;
  options.on_leader_change = [&](const std::string& leader) { leaders.push_back(leader); };
  LeaderElector first{api_, candidate("first"), env()};
  LeaderElector second{api_, options, env()};
  run([&](async::TaskScope& scope) -> Awaitable<> {
    std::string lost;
    async::TaskScope leading{co_await async::asio::this_coro::executor};
    leading.spawn(compete(first, lost));
    co_await clock_.sleep_for(1s);
    scope.spawn(compete(second, lost));
    co_await clock_.sleep_for(1h);
    EXPECT_TRUE(first.is_leader());
    leading.stop();
    co_await leading.join();
    co_await clock_.sleep_for(10s);
    EXPECT_TRUE(second.is_leader());
    // It loses the Lease to a third, and is a candidate again.
    auto lease = api_.find(resources::leases, lease_key)->json();
    lease["spec"].as_object()["holderIdentity"] = "third";
    api_.put(resources::leases, lease);
    co_await clock_.sleep_for(5s);
    EXPECT_FALSE(second.is_leader());
    co_await clock_.sleep_for(10s);
    EXPECT_TRUE(second.is_leader());
    EXPECT_THAT(leaders, testing::ElementsAre("first", "", "second", "third", "second"));
  });
}

}  // namespace
}  // namespace hubferry::kube
