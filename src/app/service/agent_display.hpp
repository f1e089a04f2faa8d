#pragma once

#include <atomic>
#include <memory>

#include "hubferry/async/clock.hpp"
#include "hubferry/klusterlet/agent.hpp"
#include "hubferry/obs/health.hpp"
#include "hubferry/obs/metrics.hpp"

namespace hubferry::app {

/// What `hubferry klusterlet` shows of its one agent: metrics, and health.
/// Lifetime: what it is given outlives it; its health checks may be asked after its end, as long as the clock lives.
class AgentDisplay {
 public:
  AgentDisplay(obs::Metrics& metrics, obs::Health& health, async::Clock& clock);

  /// Its settings and its identity are read: from here on it does all it can. Whether a hub can be reached is not for
  /// readiness to say: a rollout must not stop because a hub is down.
  void started() { started_.pass(); }
  void show(const klusterlet::AgentView& view);

 private:
  obs::Family<obs::Gauge>& hubs_;
  obs::Gauge& expiry_;
  obs::CheckState started_{"the agent has not started yet"};
  std::shared_ptr<std::atomic<async::WallTime>> expires_;  // read by the health server's thread
  std::string hub_;
};

}  // namespace hubferry::app
