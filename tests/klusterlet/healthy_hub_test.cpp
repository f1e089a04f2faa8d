// An agent never leaves a healthy hub: not for an edit, a full disk, a clock or a setting of the hub.
#include "flaky_store.hpp"
#include "klusterlet_test.hpp"

namespace hubferry::klusterlet::test {
namespace {

/// The clock of a process that can be stopped (SIGSTOP, a paused virtual machine): what it waits for is late then.
class StoppableClock final : public async::Clock {
 public:
  explicit StoppableClock(async::Clock& inner) : inner_(inner) {}

  [[nodiscard]] TimePoint now() const override { return inner_.now(); }
  [[nodiscard]] WallTime wall_now() const override { return inner_.wall_now(); }
  Awaitable<> sleep_until(TimePoint when) override {
    co_await inner_.sleep_until(when);
    while (inner_.now() < stopped_until_) co_await inner_.sleep_until(stopped_until_);
  }
  void stop_until(TimePoint when) { stopped_until_ = when; }

 private:
  async::Clock& inner_;
  TimePoint stopped_until_{};
};

class HealthyHubTest : public KlusterletTest {
 protected:
  ~HealthyHubTest() override { stop_all(); }

  Agent& start_on_flaky() { return start_on_flaky(options()); }
  Agent& start_on_flaky(const AgentOptions& options) {
    agents_.push_back(std::make_unique<Agent>(options, flaky_, connect(), env_));
    agent_scope_.emplace(loop_.executor());
    agent_scope_->spawn(agents_.back()->run());
    return *agents_.back();
  }

  FlakyStore flaky_{{hub1_.bootstrap(), hub2_.bootstrap()}, loop_.clock()};
};

TEST_F(HealthyHubTest, AFreshTokenAloneIsNoReasonToLeave) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  store_.set_bootstraps({hub1_.bootstrap("hub", "bootstrap2"), hub2_.bootstrap()});
  loop_.run_for(1min);
  EXPECT_EQ(switches("bootstrap_changed"), 0);
  EXPECT_EQ(hub1_.requests().size(), 1U);
}

// As another tool writes it, or an administrator who tidies up.
TEST_F(HealthyHubTest, AnotherSpellingOfItsUrlIsNoOtherHub) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  auto config = hub1_.bootstrap().parse();
  config.server = "https://HUB1.Example:6443/";
  store_.set_bootstraps(
      {BootstrapConfig{"hub1-bootstrap", obs::Secret{kube::to_kubeconfig(config)}, std::nullopt}, hub2_.bootstrap()});
  loop_.run_for(1min);
  EXPECT_EQ(switches("bootstrap_changed"), 0);
  stop_agents();
  start();
  loop_.run_for(1min);
  EXPECT_EQ(agents_.back()->view().phase, "Joined");
  EXPECT_EQ(hub1_.requests().size(), 1U) << "its certificate is for this hub";
}

TEST_F(HealthyHubTest, AHubThatRaisesTheLeaseDurationIsNotLeft) {
  auto& agent = start();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(hub1_.set_lease_duration("cluster1", 3600));
  loop_.run_for(3h);
  EXPECT_EQ(switches("connection_lost"), 0);
  EXPECT_EQ(agent.view().hub, hub1_.url());
}

TEST_F(HealthyHubTest, AFullDiskDoesNotSendTheAgentFromHubToHub) {
  flaky_.full = true;
  start_on_flaky();
  ASSERT_TRUE(until_available(hub1_)) << "the certificate is used from memory";
  loop_.run_for(1h);
  EXPECT_EQ(hub1_.requests().size(), 1U);
  EXPECT_FALSE(hub2_.cluster("cluster1"));
  EXPECT_EQ(switches("bootstrap_timeout"), 0);
  EXPECT_NE(agents_.back()->view().store_problem, "") << "the store is named, not the hub";
  EXPECT_GT(flaky_.attempts, 10U) << "saving is retried";
  flaky_.full = false;
  loop_.run_for(2min);
  EXPECT_TRUE(flaky_.secret());
  EXPECT_EQ(agents_.back()->view().store_problem, "");
}

// The old certificate expires while the new one is being saved.
TEST_F(HealthyHubTest, ASlowStoreDoesNotCostARenewedCertificate) {
  auto short_lived = options();
  short_lived.certificate_lifetime = 3600s;
  start_on_flaky(short_lived);
  ASSERT_TRUE(until_available(hub1_));
  const auto joined = loop_.clock().now();
  hub1_.approves = false;
  loop_.run_for(59min);
  flaky_.slow_until = joined + 62min;
  loop_.run(hub1_.approve_all());
  loop_.run_for(15min);
  EXPECT_EQ(switches("certificate_expired"), 0);
  EXPECT_EQ(hub1_.requests().size(), 2U);
  EXPECT_EQ(agents_.back()->view().phase, "Joined");
}

// A disk that fails altogether: what is in memory counts.
TEST_F(HealthyHubTest, AnAgentThatCannotReadItsStoreAnyMoreStillSwitches) {
  flaky_.full = true;
  start_on_flaky();
  ASSERT_TRUE(until_available(hub1_));
  flaky_.unreadable = true;
  loop_.run(hub1_.accept("cluster1", false));
  EXPECT_TRUE(until_available(hub2_, 1min));
}

TEST_F(HealthyHubTest, AStepOfTheWallClockDoesNotLookLikeALostConnection) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(5min);
  loop_.clock().skew_wall(2h);
  store_.set_bootstraps({hub1_.bootstrap(), hub2_.bootstrap(), hub2_.bootstrap("other")});
  loop_.run_for(20min);
  EXPECT_EQ(switches("connection_lost"), 0);
}

class StoppedAgentTest : public KlusterletTest {
 protected:
  ~StoppedAgentTest() override { stop_all(); }

  void join_hub1() {
    agents_.push_back(std::make_unique<Agent>(options(), store_, connect(), stoppable_));
    agent_scope_.emplace(loop_.executor());
    agent_scope_->spawn(agents_.back()->run());
    ASSERT_TRUE(until_available(hub1_));
  }

  void stop_for(Duration time) {
    clock_.stop_until(loop_.clock().now() + time);
    loop_.run_for(time);
  }

  Awaitable<> shorten_timeout() {
    auto put = co_await store_.put_bootstraps(store_.bootstraps(), 180s);
    EXPECT_TRUE(put);
  }

  StoppableClock clock_{loop_.clock()};
  kube::Env stoppable_{clock_, random_, metrics_, obs::Logger{}};
};

// Its connections are gone by then, and its first heartbeat takes time.
TEST_F(StoppedAgentTest, AnAgentThatWasStoppedForLongerThanTheTimeoutStaysOnItsHub) {
  join_hub1();
  for (const Duration time : {Duration{11min}, Duration{1h}, Duration{10min - 1s}}) {
    auto& faults = hub1_.server.faults();
    faults.on({"update", "leases"}).times(1).reset_before();
    faults.on({"update", "leases"}).times(1).delay(sim::Latency::fixed(2s));
    stop_for(time);
    loop_.run_for(5min);
    EXPECT_TRUE(faults.script_exhausted()) << faults.unused();
    EXPECT_EQ(switches("connection_lost"), 0) << async::format_duration(time);
    EXPECT_EQ(agents_.back()->view().hub, hub1_.url());
  }
}

TEST_F(StoppedAgentTest, AnAgentThatWasStoppedLeavesAHubThatDiedMeanwhile) {
  join_hub1();
  hub1_.server.outage(true);
  stop_for(11min);
  EXPECT_TRUE(until_available(hub2_, 1min));
}

// A wait for a time that had passed before it began says nothing about a stop.
TEST_F(StoppedAgentTest, AnAgentThatWasNotStoppedGivesADeadHubNoGrace) {
  join_hub1();
  loop_.run_for(5min);
  hub1_.server.outage(true);
  loop_.run_for(4min);
  // Shorter than the time since the last heartbeat: the hub counts as lost now, and not in half a minute.
  loop_.run(shorten_timeout());
  loop_.run_for(1s);
  EXPECT_EQ(switches("connection_lost"), 1);
}

// A short stop that cost the hub nothing uses up no grace: a later one has it.
TEST_F(StoppedAgentTest, AShortStopLeavesTheGraceForALongOne) {
  join_hub1();
  hub1_.server.faults().on({"update", "leases"}).always().reset_before();
  loop_.run_for(2min);
  stop_for(1min);
  loop_.run_for(5s);
  stop_for(11min);
  hub1_.server.faults().clear();
  loop_.run_for(5min);
  EXPECT_EQ(switches("connection_lost"), 0);
  EXPECT_EQ(agents_.back()->view().hub, hub1_.url());
}

// As `kubectl replace --force` does it, with a manifest that does not accept.
TEST_F(HealthyHubTest, AManagedClusterThatIsCreatedAnewIsWaitedForAndNotTakenForADenial) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  hub1_.accepts = false;
  loop_.run(hub1_.must(hub1_.server.api().remove(ocm::managed_clusters, {{}, "cluster1"})));
  kube::json::object cluster{{"metadata", kube::json::object{{"name", "cluster1"}}},
                             {"spec", kube::json::object{{"hubAcceptsClient", false}}}};
  loop_.run(hub1_.must(hub1_.server.api().create(ocm::managed_clusters, std::move(cluster))));
  loop_.run_for(1min);
  EXPECT_EQ(switches("denied"), 0);
  loop_.run(hub1_.accept("cluster1", true));
  EXPECT_TRUE(until_available(hub1_));
  loop_.run(hub1_.accept("cluster1", false));
  loop_.run_for(1s);
  EXPECT_EQ(switches("denied"), 1) << "the new one is denied as any other";
}

// The last minute of the timeout: the administrator has found out that the CA is wrong.
TEST_F(HealthyHubTest, AHubWhoseKubeconfigIsRepairedInTheLastMomentIsNotLeft) {
  auto wrong = hub1_.bootstrap().parse();
  wrong.ca_pem = make_ca();
  start();
  ASSERT_TRUE(until_available(hub1_));
  hub1_.server.outage(true);
  const auto last = hub1_.renew_time("cluster1");
  loop_.run_for(options().connection_timeout - 10s);
  ASSERT_EQ(switches("connection_lost"), 0);
  hub1_.server.outage(false);
  hub1_.server.faults().on({}).always().delay(sim::Latency::fixed(8s));
  store_.set_bootstraps(
      {BootstrapConfig{"hub1-bootstrap", obs::Secret{kube::to_kubeconfig(wrong)}, std::nullopt}, hub2_.bootstrap()});
  EXPECT_TRUE(until([&] { return hub1_.renew_time("cluster1") != last; }, 1min));
  EXPECT_EQ(switches("connection_lost"), 0);
}

}  // namespace
}  // namespace hubferry::klusterlet::test
