#include "hubferry/obs/log_sink.hpp"
#include "klusterlet_test.hpp"

namespace hubferry::klusterlet::test {
namespace {

using testing::HasSubstr;

/// Agents with an invalid credential, hub or setting.
class RecoveryTest : public KlusterletTest {
 protected:
  static sim::FaultTarget leases() {
    return {.verb = {}, .resource = "leases", .subresource = {}, .ns = {}, .name = {}};
  }

  BootstrapConfig reached_by(const std::string& server, bool unverified) {
    kube::ClientConfig config;
    config.name = "bootstrap";
    config.server = server;
    config.cluster_name = "hub";
    config.token = "bootstrap";
    config.insecure_skip_tls_verify = unverified;
    return {"odd", obs::Secret{kube::to_kubeconfig(config)}, std::nullopt};
  }
};

// A Secret that was edited by hand, or written in parts by another program.
TEST_F(RecoveryTest, AKeyThatDoesNotMatchItsCertificateIsReplacedByOneRequest) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  stop_agents();
  auto torn = *store_.secret();
  torn.key = make_signing_request({"cluster1", "agent"}).key;
  ASSERT_TRUE(loop_.run(store_.save(torn)));
  start();
  loop_.run_for(5min);
  EXPECT_EQ(hub1_.requests().size(), 2U);
  EXPECT_EQ(agents_.back()->view().phase, "Joined");
  EXPECT_TRUE(is_key_of(store_.secret()->certificate, store_.secret()->key));
}

TEST_F(RecoveryTest, AnUnusableCredentialDoesNotFloodTheHub) {
  unsigned refused = 0;
  const Connect picky = [&](const kube::ClientConfig& config) {
    if (config.client_certificate_pem.empty()) return hub1_.connect(config);
    ++refused;
    throw kube::ConfigError("this certificate is not for this client");
  };
  agents_.push_back(std::make_unique<Agent>(options(), store_, picky, env_));
  agent_scope_.emplace(loop_.executor());
  agent_scope_->spawn(agents_.back()->run());
  loop_.run_for(30min);
  EXPECT_GT(refused, 1U) << "it must keep retrying";
  EXPECT_LT(refused, 60U);
  EXPECT_LT(hub1_.server.requests().size(), 1000U);
}

// A hub with a new signer answers 401 to the certificates of the old one.
TEST_F(RecoveryTest, ANewCertificateIsRequestedBeforeAHubThatRejectsTheOldOneIsLeft) {
  auto& agent = start();
  ASSERT_TRUE(until_available(hub1_));
  hub1_.server.faults().on(leases()).always().fail(401);
  loop_.run_for(12min);
  EXPECT_EQ(switches("certificate_rejected"), 1);
  EXPECT_EQ(hub1_.requests().size(), 2U);
  EXPECT_EQ(agent.view().hub, hub1_.url());
  hub1_.server.faults().clear();
  loop_.run_for(20min);
  EXPECT_EQ(switches("connection_lost"), 0);
  EXPECT_EQ(agent.view().hub, hub1_.url());
}

TEST_F(RecoveryTest, AHubThatRejectsTheNewCertificateTooIsLeft) {
  auto& agent = start();
  ASSERT_TRUE(until_available(hub1_));
  hub1_.server.faults().on(leases()).always().fail(401);
  loop_.run_for(25min);
  EXPECT_EQ(switches("certificate_rejected"), 1);
  EXPECT_EQ(switches("connection_lost"), 1);
  EXPECT_EQ(agent.view().hub, hub2_.url());
}

TEST_F(RecoveryTest, WithOneHubOnlyANewCertificateIsRequestedToo) {
  auto alone = options();
  alone.multiple_hubs = false;
  start(alone);
  ASSERT_TRUE(until_available(hub1_));
  hub1_.server.faults().on(leases()).always().fail(401);
  loop_.run_for(12min);
  EXPECT_EQ(hub1_.requests().size(), 2U);
  hub1_.server.faults().clear();
  loop_.run_for(20min);
  EXPECT_EQ(switches("certificate_rejected"), 1);
  EXPECT_FALSE(hub2_.cluster("cluster1"));
}

TEST_F(RecoveryTest, AHubWithoutTlsIsRejectedWithAReason) {
  store_.set_bootstraps({reached_by("http://hub1.example:6443", false), hub2_.bootstrap()});
  auto& agent = start();
  ASSERT_TRUE(until_available(hub2_));
  EXPECT_EQ(agent.view().hub, hub2_.url());
  stop_agents();
  store_.set_bootstraps({reached_by("http://hub1.example:6443", false)});
  auto& stuck = start();
  loop_.run_for(1min);
  EXPECT_THAT(stuck.view().problem, HasSubstr("the credential would be sent in clear text"));
}

TEST_F(RecoveryTest, AnUnverifiedHubCertificateIsLoggedAsAWarning) {
  obs::LogCapture log;
  store_.set_bootstraps({reached_by(hub1_.url(), true), hub2_.bootstrap()});
  const kube::Env logging{env_.clock, env_.random, env_.metrics, log.logger()};
  agents_.push_back(std::make_unique<Agent>(options(), store_, connect(), logging));
  agent_scope_.emplace(loop_.executor());
  agent_scope_->spawn(agents_.back()->run());
  ASSERT_TRUE(until_available(hub1_));
  EXPECT_TRUE(log.contains("insecure-skip-tls-verify"));
}

// The timeout is shortened while an agent waits for its registration.
TEST_F(RecoveryTest, AShorterTimeoutFromAHubTakesEffectImmediately) {
  hub1_.approves = false;
  start();
  loop_.run_for(2min);
  auto shorten = [&]() -> Awaitable<> {
    std::vector<BootstrapConfig> same{hub1_.bootstrap(), hub2_.bootstrap()};
    auto put = co_await store_.put_bootstraps(std::move(same), 180s);
    EXPECT_TRUE(put);
  };
  loop_.run(shorten());
  loop_.run_for(90s);
  EXPECT_EQ(switches("bootstrap_timeout"), 1);
}

}  // namespace
}  // namespace hubferry::klusterlet::test
