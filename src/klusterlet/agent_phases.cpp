#include "hubferry/phase/render.hpp"
#include "klusterlet/agent_core.hpp"

// The phases of an agent and the edges between them; and the phase Leaving.
namespace hubferry::klusterlet {

namespace {

struct Row {
  const char* phase;
  const char* done;    // the next phase when it is done
  const char* failed;  // and after an unexpected error
  Awaitable<phase::ReconcileState> (*handler)(AgentContext&, AgentRecord&, const phase::State&);
  const char* description;
};

constexpr Row rows[] = {
    {phases::selecting, phases::bootstrapping, phases::failed, select_hub, "select a hub: stay, else the first valid"},
    {phases::bootstrapping, phases::joined, phases::leaving, bootstrap, "register with the selected hub"},
    {phases::joined, phases::leaving, phases::leaving, stay_joined, "send heartbeats and status to the hub"},
    {phases::leaving, phases::selecting, phases::failed, leave_hub, "record why the hub is left"},
};

phase::DefaultDefinition<AgentCore, AgentRecord> make_definition() {
  using Handler = phase::Handler<AgentCore, AgentRecord>;
  phase::DefaultDefinition<AgentCore, AgentRecord> definition;
  definition.fetch_resource = [](AgentCore& agent, phase::Key) -> Awaitable<phase::Result<std::optional<AgentRecord>>> {
    co_return agent.record;
  };
  definition.persist_status = [](AgentCore& agent, AgentRecord& record) -> Awaitable<phase::Written> {
    const bool moved = agent.record.status.phase != record.status.phase;
    agent.record = record;
    if (moved) agent.view_changed();
    co_return phase::Written::ok();
  };
  definition.initial = phases::selecting;
  definition.terminals = {{phases::failed, phase::Ending::failure}};
  for (const auto& row : rows) {
    definition.handlers.emplace(row.phase, Handler::leaf({.description = row.description}, row.handler));
    definition.normal.emplace(row.phase, row.done);
    definition.error.emplace(row.phase, row.failed);
  }
  definition.forced = {{phases::selecting, phases::joined, "already registered there, with a usable credential"},
                       {phases::bootstrapping, phases::leaving, "the hub refused, or did not answer in time"},
                       {phases::bootstrapping, phases::selecting, "no hub is selected"},
                       {phases::joined, phases::selecting, "no hub is selected"}};
  definition.normalize();
  return definition;
}

/// True if the hub was the cause. Other hubs are then preferred for a while.
bool is_hub_failure(LeaveReason reason) {
  return reason == LeaveReason::denied || reason == LeaveReason::connection_lost ||
         reason == LeaveReason::bootstrap_timeout || reason == LeaveReason::bootstrap_refused;
}

}  // namespace

phase::Definition<AgentCore, AgentRecord>& agent_definition() {
  static auto definition = make_definition();
  return definition;
}

std::string agent_diagram() {
  return phase::render_mermaid(agent_definition());
}

// Records what must be remembered about the hub. Nothing is sent to it: it denied us, or cannot be reached.
Awaitable<phase::ReconcileState> leave_hub(AgentContext& context, AgentRecord&, const phase::State&) {
  auto& agent = context.services();
  const auto leave = std::exchange(agent.leave, std::nullopt).value_or(Leave{});
  const auto now = agent.env.clock.now();
  agent.metrics.switches.with({to_string(leave.reason)}).increment();
  if (!agent.left_at) agent.left_at = now;
  if (agent.selected) {
    context.log().warn(
        "leaving hub",
        {{"server", agent.selected->config.server}, {"reason", to_string(leave.reason)}, {"message", leave.message}});
    if (is_hub_failure(leave.reason))
      agent.demoted_until[agent.selected->config.server] = async::later(now, agent.connection_timeout());
  }
  agent.selected.reset();
  agent.available = false;
  agent.connection.clear();
  agent.problem.clear();
  // It may well happen again immediately: that must not flood the hubs with requests.
  if (leave.reason == LeaveReason::failed || leave.reason == LeaveReason::certificate_expired)
    co_await agent.failure_backoff.pause();
  co_return phase::done();
}

}  // namespace hubferry::klusterlet
