#pragma once

#include <atomic>
#include <memory>

#include "hubferry/async/clock.hpp"
#include "hubferry/klusterlet/agent.hpp"
#include "hubferry/obs/health.hpp"
#include "hubferry/obs/metrics.hpp"

namespace hubferry::app {

/// Metrics and health of the agent in `hubferry klusterlet`.
/// Lifetime: the constructor's arguments outlive it; its health checks may run after its end, while the clock lives.
class AgentDisplay {
 public:
  AgentDisplay(obs::Metrics& metrics, obs::Health& health, async::Clock& clock);

  /// The agent has read its settings and its identity, and is ready. Readiness does not depend on a reachable hub: a
  /// rollout must not stop because a hub is down.
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
