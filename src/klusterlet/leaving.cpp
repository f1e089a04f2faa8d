#include "klusterlet/agent_core.hpp"

// The phase Leaving: what must be remembered of a hub when it is left. The hub itself is told nothing: it denied us, or
// cannot hear us.
namespace hubferry::klusterlet {

namespace {

/// Was it the hub that failed? Then others come first for a while.
bool is_the_hubs_fault(LeaveReason reason) {
  return reason == LeaveReason::denied || reason == LeaveReason::connection_lost ||
         reason == LeaveReason::bootstrap_timeout || reason == LeaveReason::bootstrap_refused;
}

}  // namespace

Awaitable<phase::ReconcileState> leave_hub(AgentContext& context, AgentRecord&, const phase::State&) {
  auto& agent = context.services();
  const auto leave = std::exchange(agent.leave, std::nullopt).value_or(Leave{});
  const auto now = agent.env.clock.now();
  agent.metrics.switches.with({to_string(leave.reason)}).increment();
  if (!agent.left_at) agent.left_at = now;
  if (agent.chosen) {
    context.log().warn(
        "leaving the hub",
        {{"server", agent.chosen->config.server}, {"reason", to_string(leave.reason)}, {"note", leave.note}});
    if (is_the_hubs_fault(leave.reason))
      agent.demoted_until[agent.chosen->config.server] = async::later(now, agent.connection_timeout());
  }
  agent.chosen.reset();
  agent.available = false;
  agent.failed_heartbeats = 0;
  agent.heartbeat_reason.clear();
  agent.heartbeat_problem.clear();
  // Whatever it was, it may well happen again at once: hubs must not be stormed because of it.
  if (leave.reason == LeaveReason::failed) co_await agent.failure_backoff.pause();
  co_return phase::done();
}

}  // namespace hubferry::klusterlet
