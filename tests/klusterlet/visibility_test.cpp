// What an operator sees in the log when a hub refuses, fails or vanishes.
#include "hubferry/obs/log_sink.hpp"
#include "klusterlet_test.hpp"

namespace hubferry::klusterlet::test {
namespace {

class VisibilityTest : public KlusterletTest {
 protected:
  Agent& start_logged(const AgentOptions& options) {
    log_.set_level(obs::Level::info);
    const kube::Env env{loop_.clock(), random_, metrics_, log_.logger()};
    agents_.push_back(std::make_unique<Agent>(options, store_, connect(), env));
    agent_scope_.emplace(loop_.executor());
    agent_scope_->spawn(agents_.back()->run());
    return *agents_.back();
  }
  std::size_t warnings_with(std::string_view text) {
    std::size_t count = 0;
    for (const auto& line : log_.lines())
      if (line.find("\"warn") != std::string::npos && line.find(text) != std::string::npos) ++count;
    return count;
  }

  double problems(const char* reason) { return AgentMetrics{metrics_}.problems.with({reason}).value(); }

  obs::LogCapture log_;
};

TEST_F(VisibilityTest, AHubThatRefusesTheManagedClusterIsNamedInAWarning) {
  int refusals = 0;
  for (const int status : {500, 422, 403}) {
    hub1_.server.faults().clear();
    hub1_.server.faults().on({"create", "managedclusters"}).always().fail(status);
    hub1_.approves = false;
    log_.clear();
    auto& agent = start_logged(options("cluster" + std::to_string(status)));
    loop_.run_for(2min);
    EXPECT_EQ(warnings_with("registering the cluster failed"), 1U) << status << ": once, not at each attempt";
    EXPECT_TRUE(log_.contains(std::to_string(status))) << status;
    EXPECT_NE(agent.view().problem.find("ManagedCluster"), std::string::npos) << agent.view().problem;
    EXPECT_EQ(problems("RegistrationFailed"), ++refusals) << status;
    stop_agents();
  }
}

TEST_F(VisibilityTest, ALostHubIsReportedWithinSeconds) {
  start_logged(options());
  ASSERT_TRUE(until_available(hub1_));
  log_.clear();
  hub1_.server.outage(true);
  loop_.run_for(5s);
  EXPECT_EQ(warnings_with("connection to the hub is failing"), 1U);
  EXPECT_EQ(problems("HubUnreachable"), 1);
  loop_.run_for(3min);
  EXPECT_EQ(problems("HubLeaseUpdateFailed"), 1);
  EXPECT_LE(warnings_with("connection to the hub is failing"), 2U) << "once per reason, not per attempt";
  hub1_.server.outage(false);
  loop_.run_for(2min);
  EXPECT_TRUE(log_.contains("connection to the hub restored"));
}

// It shows the cluster as it was before, although heartbeats arrive.
TEST_F(VisibilityTest, AHubThatTakesNoStatusIsNamedInAWarning) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  stop_agents();
  hub1_.server.faults().on({"write", "managedclusters", "status"}).always().fail(500);
  auto upgraded = options();
  upgraded.probe = []() -> Awaitable<SpokeHealth> {
    co_return SpokeHealth{.healthy = true, .message = {}, .kubernetes_version = "v1.31.0"};
  };
  auto& agent = start_logged(upgraded);
  loop_.run_for(5min);
  EXPECT_EQ(warnings_with("HubStatusUpdateFailed"), 1U) << "once, not at each attempt";
  EXPECT_EQ(problems("HubStatusUpdateFailed"), 1);
  EXPECT_NE(agent.view().connection_problem, "");
  hub1_.server.faults().clear();
  loop_.run_for(2min);
  EXPECT_EQ(agent.view().connection_problem, "");
}

// By an administrator, or by an approver that does not know the cluster: it will wait for long.
TEST_F(VisibilityTest, ADeniedCertificateRequestIsNamedInAWarning) {
  hub1_.approves = false;
  auto& agent = start_logged(options());
  ASSERT_TRUE(until([&] { return hub1_.requests().size() == 1; }, 10s));
  EXPECT_EQ(agent.view().problem, "");
  const auto request = hub1_.requests().front();
  loop_.run(hub1_.deny(request, "not one of ours"));
  loop_.run_for(1min);
  EXPECT_EQ(warnings_with("not one of ours"), 1U);
  EXPECT_NE(agent.view().problem.find("was denied"), std::string::npos) << agent.view().problem;
  EXPECT_EQ(hub1_.requests().size(), 1U) << "another one would be denied, too";
  hub1_.approves = true;
  loop_.run(hub1_.must(hub1_.server.api().remove(kube::resources::certificate_signing_requests, request.key())));
  ASSERT_TRUE(until_available(hub1_));
  EXPECT_EQ(agent.view().problem, "");
}

// The worst that can happen to an agent: it must be in the metrics too, not only in a condition of its own cluster.
TEST_F(VisibilityTest, AnAgentThatFindsNoHubIsCountedAndNamesEach) {
  for (auto* hub : {&hub1_, &hub2_}) hub->server.outage(true);
  start_logged(options());
  loop_.run_for(10min);
  EXPECT_GT(warnings_with("no hub can be selected for cluster cluster1"), 0U);
  EXPECT_TRUE(log_.contains("hub2-bootstrap"));
  EXPECT_EQ(problems("BootstrapSecretError"), 1) << "once, not at each attempt";
  for (auto* hub : {&hub1_, &hub2_}) hub->server.outage(false);
  ASSERT_TRUE(until_available(hub1_, 3min));
  EXPECT_EQ(agents_.back()->view().problem, "");
  for (auto* hub : {&hub1_, &hub2_}) hub->server.outage(true);
  loop_.run_for(20min);
  EXPECT_EQ(problems("BootstrapSecretError"), 2);
}

}  // namespace
}  // namespace hubferry::klusterlet::test
