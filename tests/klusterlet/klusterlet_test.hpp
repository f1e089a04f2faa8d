#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <map>

#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "klusterlet/agent_core.hpp"
#include "sim/apiserver/certificate_authority.hpp"
#include "test_hub.hpp"

namespace hubferry::klusterlet::test {

using namespace std::chrono_literals;
namespace names = ocm::names;

/// The wall clock of one machine, which may be off and may be set; its monotonic time is that of the others.
class SkewedClock final : public async::Clock {
 public:
  explicit SkewedClock(async::Clock& inner, Duration skew = 0s) : inner_(inner), skew_(skew) {}

  [[nodiscard]] TimePoint now() const override { return inner_.now(); }
  [[nodiscard]] WallTime wall_now() const override { return inner_.wall_now() + skew_; }
  Awaitable<> sleep_until(TimePoint when) override { return inner_.sleep_until(when); }
  void set(Duration skew) { skew_ = skew; }

 private:
  async::Clock& inner_;
  Duration skew_;
};

/// A certificate authority, in PEM.
inline std::string make_ca() {
  static const WallTime now = std::chrono::sys_days{std::chrono::year{2030} / 1 / 1};
  return sim::CertificateAuthority{"test", now}.certificate_pem();
}

/// Two hubs and agents on virtual time. All tasks are stopped when the test ends.
class KlusterletTest : public testing::Test {
 protected:
  KlusterletTest() {
    for (auto* hub : {&hub1_, &hub2_}) loop_.run(hub->set_up());
    loop_.run_ready();
    for (auto* hub : {&hub1_, &hub2_}) scope_.spawn(hub->react());
    loop_.run_ready();
  }

  ~KlusterletTest() override { stop_all(); }

  /// Derived classes with members that run must call this before those are destroyed.
  void stop_all() {
    stop_agents();
    scope_.stop();
    loop_.run(scope_.join());
  }

  static AgentOptions options(const std::string& cluster = "cluster1") {
    AgentOptions options;
    options.cluster_name = cluster;
    options.agent_name = "agent";
    return options;
  }

  Connect connect() {
    return [this](const kube::ClientConfig& config) {
      for (auto* hub : {&hub1_, &hub2_})
        if (hub->url() == config.server) return hub->connect(config);
      throw kube::ConfigError("unknown server " + config.server);
    };
  }

  Agent& start(const AgentOptions& options) {
    agents_.push_back(std::make_unique<Agent>(options, store_, connect(), env_));
    if (!agent_scope_) agent_scope_.emplace(loop_.executor());
    agent_scope_->spawn(agents_.back()->run());
    return *agents_.back();
  }
  Agent& start() { return start(options()); }

  void stop_agents() {
    if (!agent_scope_) return;
    agent_scope_->stop();
    loop_.run(agent_scope_->join());
    agent_scope_.reset();
  }

  /// Runs until the condition holds; false if it does not within `limit`.
  template <typename Condition>
  bool until(Condition condition, Duration limit = 2min) {
    const auto end = loop_.clock().now() + limit;
    while (!condition()) {
      if (loop_.clock().now() >= end) return false;
      loop_.run_for(100ms);
    }
    return true;
  }

  bool until_available(const Hub& hub, Duration limit = 2min) {
    return until([&] { return hub.is_available("cluster1"); }, limit);
  }

  [[nodiscard]] double switches(const char* reason) { return AgentMetrics{metrics_}.switches.with({reason}).value(); }

  async::VirtualLoop loop_;
  async::Random random_{7};
  obs::Metrics metrics_;
  kube::Env env_{loop_.clock(), random_, metrics_, obs::Logger{}};
  Hub hub1_{"hub1", env_};
  Hub hub2_{"hub2", env_};
  MemoryStore store_{{hub1_.bootstrap(), hub2_.bootstrap()}};
  async::TaskScope scope_{loop_.executor()};
  std::list<std::unique_ptr<Agent>> agents_;
  std::optional<async::TaskScope> agent_scope_;
};

}  // namespace hubferry::klusterlet::test
