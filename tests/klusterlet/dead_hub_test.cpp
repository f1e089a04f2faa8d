// An agent never stays on a dead hub, nor without a hub that would take it; and it does not flood any.
#include "klusterlet_test.hpp"

namespace hubferry::klusterlet::test {
namespace {

class DeadHubTest : public KlusterletTest {
 protected:
  /// An agent whose wall clock is off by `skew`.
  Agent& start_skewed(Duration skew) { return start_skewed(skew, options()); }
  Agent& start_skewed(Duration skew, const AgentOptions& options) {
    clock_.emplace(loop_.clock(), skew);
    const kube::Env env{*clock_, random_, metrics_, obs::Logger{}};
    agents_.push_back(std::make_unique<Agent>(options, store_, connect(), env));
    agent_scope_.emplace(loop_.executor());
    agent_scope_->spawn(agents_.back()->run());
    return *agents_.back();
  }
  ~DeadHubTest() override { stop_all(); }

  std::optional<SkewedClock> clock_;
};

TEST_F(DeadHubTest, AClockThatIsSetBackDoesNotKeepAnAgentOnADeadHub) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  hub1_.server.outage(true);
  loop_.clock().skew_wall(-3h);
  EXPECT_TRUE(until_available(hub2_, 13min));
}

TEST_F(DeadHubTest, AStoredCertificateIsTriedAlthoughTheBootstrapTokenHasExpired) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  stop_agents();
  store_.set_bootstraps({hub1_.bootstrap("hub", "expired"), hub2_.bootstrap("hub", "expired")});
  const auto old = hub1_.renew_time("cluster1");
  loop_.run_for(1s);
  auto& agent = start();
  EXPECT_TRUE(until([&] { return hub1_.renew_time("cluster1") != old; }, 30s));
  EXPECT_EQ(agent.view().phase, "Joined");
  EXPECT_EQ(hub1_.requests().size(), 1U);
}

// The hub's authority for clients was wrong for a while, and is repaired.
TEST_F(DeadHubTest, ACertificateThatWasRejectedForAWhileIsTriedAgain) {
  auto alone = options();
  alone.multiple_hubs = false;
  auto& agent = start(alone);
  ASSERT_TRUE(until_available(hub1_));
  store_.set_bootstraps({hub1_.bootstrap("hub", "expired")});
  hub1_.server.faults().on({}).always().fail(401);
  loop_.run_for(15min);
  EXPECT_EQ(switches("certificate_rejected"), 1);
  const auto old = hub1_.renew_time("cluster1");
  hub1_.server.faults().clear();
  EXPECT_TRUE(until([&] { return hub1_.renew_time("cluster1") != old; }, 3min));
  EXPECT_EQ(agent.view().phase, "Joined");
}

// It could not be renewed in time, and the machine's clock is ahead.
TEST_F(DeadHubTest, ACertificateThatHasExpiredByOurClockOnlyIsUsedAsLongAsTheHubAcceptsIt) {
  auto short_lived = options();
  short_lived.certificate_lifetime = 3600s;
  auto& agent = start_skewed(50min, short_lived);
  ASSERT_TRUE(until_available(hub1_));
  hub1_.approves = false;
  store_.set_bootstraps({hub1_.bootstrap("hub", "expired"), hub2_.bootstrap("hub", "expired")});
  loop_.run_for(15min);
  EXPECT_EQ(switches("certificate_expired"), 1);
  const auto old = hub1_.renew_time("cluster1");
  loop_.run_for(5min);
  EXPECT_EQ(agent.view().phase, "Joined");
  EXPECT_NE(hub1_.renew_time("cluster1"), old);
  loop_.run(hub1_.approve_all());
  loop_.run_for(1h);
  EXPECT_EQ(agent.view().phase, "Joined") << "it is renewed as soon as the hub approves that";
}

TEST_F(DeadHubTest, ASingleHubAgentRegistersAgainWhenItsManagedClusterIsGone) {
  auto alone = options();
  alone.multiple_hubs = false;
  start(alone);
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(hub1_.must(hub1_.server.api().remove(ocm::managed_clusters, {{}, "cluster1"})));
  EXPECT_TRUE(until_available(hub1_, 12min)) << "deleted, or restored from a backup without it";
  EXPECT_EQ(hub1_.requests().size(), 1U) << "with the certificate that it has";
}

TEST_F(DeadHubTest, ARotatedAuthorityOfTheHubIsUsedWithoutANewRegistration) {
  std::vector<std::string> authorities;
  const auto to_hubs = connect();
  const Connect recorded = [&](const kube::ClientConfig& config) {
    if (config.server == hub1_.url() && !config.client_certificate_pem.empty()) authorities.push_back(config.ca_pem);
    return to_hubs(config);
  };
  const auto with_authority = [&](const std::string& pem) {
    auto config = hub1_.bootstrap().parse();
    config.ca_pem = pem;
    return BootstrapConfig{"hub1-bootstrap", obs::Secret{kube::to_kubeconfig(config)}, std::nullopt};
  };
  const std::string first = make_ca();
  const std::string second = make_ca();
  store_.set_bootstraps({with_authority(first), hub2_.bootstrap()});
  agents_.push_back(std::make_unique<Agent>(options(), store_, recorded, env_));
  agent_scope_.emplace(loop_.executor());
  agent_scope_->spawn(agents_.back()->run());
  ASSERT_TRUE(until_available(hub1_));
  EXPECT_EQ(authorities.back(), first);
  store_.set_bootstraps({with_authority(second), hub2_.bootstrap()});
  ASSERT_TRUE(until([&] { return authorities.back() == second; }, 30s));
  loop_.run_for(1min);
  EXPECT_EQ(hub1_.requests().size(), 1U);
  EXPECT_EQ(client_config(*store_.secret()).ca_pem, second) << "what is stored follows";
  EXPECT_EQ(switches("bootstrap_changed"), 0);
  stop_agents();
}

// Two who fight over a Secret, for example: each edit reconnects, and none of them is a sign of life.
TEST_F(DeadHubTest, AHubThatIsLostIsLeftInTimeHoweverOftenItsAuthorityIsEdited) {
  const auto with_authority = [&](const std::string& pem) {
    auto config = hub1_.bootstrap().parse();
    config.ca_pem = pem;
    return BootstrapConfig{"hub1-bootstrap", obs::Secret{kube::to_kubeconfig(config)}, std::nullopt};
  };
  const std::string one = make_ca();
  const std::string other = make_ca();
  store_.set_bootstraps({with_authority(one), hub2_.bootstrap()});
  start();
  ASSERT_TRUE(until_available(hub1_));
  hub1_.server.outage(true);
  for (int minute = 0; minute < 13; ++minute) {
    store_.set_bootstraps({with_authority(minute % 2 == 0 ? other : one), hub2_.bootstrap()});
    loop_.run_for(1min);
  }
  EXPECT_TRUE(hub2_.is_available("cluster1"));
}

// Seven calls in sequence would take 21 s.
TEST_F(DeadHubTest, AHubThatTakesThreeSecondsForEachAnswerCanBeSelected) {
  hub1_.server.faults().on({}).always().delay(sim::Latency::fixed(3s));
  hub2_.server.outage(true);
  start();
  EXPECT_TRUE(until_available(hub1_, 3min));
}

// An agent whose clock is ahead of the certificate's expiry.
TEST_F(DeadHubTest, ACertificateThatLooksExpiredIsUsedAndNotRequestedAgainAndAgain) {
  start_skewed(20 * 365 * 24h);
  EXPECT_TRUE(until_available(hub1_, 2min));
  loop_.run_for(30min);
  EXPECT_EQ(hub1_.requests().size(), 1U);
  EXPECT_EQ(switches("certificate_expired"), 0);
  stop_agents();
  start_skewed(20 * 365 * 24h);
  loop_.run_for(30min);
  EXPECT_EQ(agents_.back()->view().phase, "Joined");
  EXPECT_EQ(hub1_.requests().size(), 1U) << "what is stored is used, too";
  EXPECT_EQ(hub2_.requests().size(), 0U);
}

// Of thousands of agents, all of which it tells the same.
TEST_F(DeadHubTest, AHubThatAsksForAPauseGetsIt) {
  hub2_.server.outage(true);
  auto& faults = hub1_.server.faults();
  faults.on({"create", "certificatesigningrequests"}).always().fail(429, 60);
  start();
  loop_.run_for(5min);
  const auto tried = hub1_.count("create", "certificatesigningrequests");
  EXPECT_GE(tried, 4U);
  EXPECT_LE(tried, 6U);
  faults.clear();
  ASSERT_TRUE(until_available(hub1_, 3min));
  loop_.run_for(5min);
  faults.on({"update", "leases"}).always().fail(429, 40);
  const auto before = hub1_.count("update", "leases");
  loop_.run_for(5min);
  EXPECT_LE(hub1_.count("update", "leases") - before, 8U);
  EXPECT_EQ(switches("connection_lost"), 0);
}

}  // namespace
}  // namespace hubferry::klusterlet::test
