#include "klusterlet_test.hpp"
#include "support/edge_coverage.hpp"

namespace hubferry::klusterlet::test {
namespace {

/// Throws where the test says so: nothing of a store should, so these are the unexpected errors of the phases.
class FaultyStore final : public LocalStore {
 public:
  explicit FaultyStore(std::vector<BootstrapConfig> bootstraps) : inner_(std::move(bootstraps)) {}

  [[nodiscard]] std::vector<BootstrapConfig> bootstraps() const override { return inner_.bootstraps(); }
  Awaitable<kube::Result<std::optional<HubSecret>>> load() override {
    if (fails_to_load) throw std::runtime_error("load failed");
    return inner_.load();
  }
  Awaitable<kube::Result<>> save(HubSecret secret) override { return inner_.save(std::move(secret)); }
  [[nodiscard]] std::optional<Duration> connection_timeout() const override {
    if (fails_to_say_timeout) throw std::runtime_error("there is no timeout");
    return inner_.connection_timeout();
  }

  bool fails_to_load = false;
  bool fails_to_say_timeout = false;

 private:
  MemoryStore inner_;
};

/// Takes every transition of the agent's phase machine, and holds what was taken against the definition.
class EdgesTest : public KlusterletTest {
 protected:
  AgentOptions recorded(const std::string& cluster) {
    auto made = options(cluster);
    made.on_transition = coverage_.recorder();
    return made;
  }

  FaultyStore& make_store() { return stores_.emplace_back(store_.bootstraps()); }

  /// Runs an agent to its end, which is an error, or for `limit`.
  void run_until_failure(AgentCore& core, Duration limit) {
    async::TaskScope scope{loop_.executor()};
    auto run = [](AgentCore& agent) -> Awaitable<> {
      try {
        co_await agent.run();
      } catch (const std::runtime_error&) {
        // The phase Failed.
      }
    };
    scope.spawn(run(core));
    loop_.run_for(limit);
    scope.stop();
    loop_.run(scope.join());
  }

  /// Selecting -> Bootstrapping -> Joined -> Leaving -> Selecting, then again with the stored credential.
  void join_be_denied_and_restart() {
    start(recorded("cluster1"));
    ASSERT_TRUE(until_available(hub1_));
    loop_.run(hub1_.accept("cluster1", false));
    ASSERT_TRUE(until_available(hub2_));
    stop_agents();
    start(recorded("cluster1"));  // registered there already: Selecting -> Joined
    ASSERT_TRUE(until([&] { return agents_.back()->view().phase == "Joined"; }));
    stop_agents();
  }

  /// A hub that never approves the request is left after the timeout.
  void wait_for_approval_in_vain() {
    hub1_.approves = false;
    AgentCore core{recorded("cluster2"), make_store(), connect(), env_};
    run_until_failure(core, 15min);
    hub1_.approves = true;
    EXPECT_EQ(switches("bootstrap_timeout"), 1);
  }

  /// No phase but Selecting expects to run without a selected hub, yet each can.
  void run_without_a_hub(const char* phase) {
    AgentCore core{recorded("cluster3"), make_store(), connect(), env_};
    core.record.status.phase = phase;
    run_until_failure(core, 1s);
  }

  /// An exception in the phase: the client cannot be created.
  void fail_to_connect(bool with_certificate) {
    bool selected = false;
    const Connect connect_or_fail = [&](const kube::ClientConfig& config) {
      if (with_certificate ? !config.client_certificate_pem.empty() : selected)
        throw std::runtime_error("no client for " + config.server);
      return hub1_.connect(config);
    };
    auto agent = recorded("cluster4");
    agent.on_change = [&](const AgentView& view) { selected = view.phase == "Bootstrapping"; };
    AgentCore core{agent, make_store(), connect_or_fail, env_};
    run_until_failure(core, 1min);
  }

  void fail_to_select() {
    auto& store = make_store();
    store.fails_to_load = true;
    AgentCore core{recorded("cluster5"), store, connect(), env_};
    run_until_failure(core, 1min);
    EXPECT_EQ(core.record.status.phase, "Failed");
  }

  void fail_to_leave() {
    auto& store = make_store();
    store.fails_to_say_timeout = true;
    AgentCore core{recorded("cluster6"), store, connect(), env_};
    const auto bootstrap = hub1_.bootstrap();
    core.selected = SelectedHub{bootstrap, bootstrap.parse()};
    core.leave = Leave{LeaveReason::denied, "denied"};
    core.record.status.phase = phases::leaving;
    run_until_failure(core, 1min);
    EXPECT_EQ(core.record.status.phase, "Failed");
  }

  phase::EdgeCoverage coverage_;
  std::list<FaultyStore> stores_;
};

TEST_F(EdgesTest, EveryTransitionOfTheDefinitionIsTaken) {
  join_be_denied_and_restart();
  wait_for_approval_in_vain();
  run_without_a_hub(phases::bootstrapping);
  run_without_a_hub(phases::joined);
  fail_to_connect(false);  // in Bootstrapping
  fail_to_connect(true);   // in Joined
  fail_to_select();
  fail_to_leave();
  EXPECT_EQ(coverage_.missing(agent_definition().tables()), "");
}

}  // namespace
}  // namespace hubferry::klusterlet::test
