#include "klusterlet/agent_core.hpp"

#include <stdexcept>

#include "hubferry/async/deadline.hpp"
#include "hubferry/phase/machine.hpp"

namespace hubferry::klusterlet {

namespace {

// Each agent probes a returning hub once in one to two minutes: 5,000 agents make some 60 probes a second.
const async::BackoffPolicy selection_policy{.first = std::chrono::seconds{1}, .most = std::chrono::seconds{60}};

}  // namespace

std::string_view to_string(LeaveReason reason) {
  switch (reason) {
    case LeaveReason::denied:
      return "denied";
    case LeaveReason::connection_lost:
      return "connection_lost";
    case LeaveReason::bootstrap_timeout:
      return "bootstrap_timeout";
    case LeaveReason::bootstrap_refused:
      return "bootstrap_refused";
    case LeaveReason::bootstrap_changed:
      return "bootstrap_changed";
    case LeaveReason::certificate_expired:
      return "certificate_expired";
    case LeaveReason::certificate_rejected:
      return "certificate_rejected";
    case LeaveReason::failed:
      return "failed";
  }
  return "failed";
}

AgentMetrics::AgentMetrics(obs::Metrics& metrics)
    : switches(metrics.counter_family("hubferry_klusterlet_switches_total", "Hubs that agents have left, by reason.",
                                      {"reason"})),
      time_to_available(metrics.histogram("hubferry_klusterlet_time_to_available_seconds",
                                          "From leaving a hub to being available on the next one.",
                                          obs::exponential_buckets(0.25, 2, 14))),
      heartbeats(metrics.counter_family("hubferry_klusterlet_heartbeats_total",
                                        "Renewals of the cluster's Lease, by result.", {"result"})) {
  for (const auto reason : {LeaveReason::denied, LeaveReason::connection_lost, LeaveReason::bootstrap_timeout,
                            LeaveReason::bootstrap_refused, LeaveReason::bootstrap_changed,
                            LeaveReason::certificate_expired, LeaveReason::certificate_rejected, LeaveReason::failed})
    switches.with({to_string(reason)});
  for (const auto* result : {"ok", "failed"}) heartbeats.with({result});
}

AgentCore::AgentCore(AgentOptions agent_options, LocalStore& local_store, Connect connect_to, kube::Env environment)
    : options(std::move(agent_options)),
      store(local_store),
      connect(std::move(connect_to)),
      env(std::move(environment)),
      metrics(env.metrics),
      selection_backoff(selection_policy, env.clock, env.random),
      failure_backoff(selection_policy, env.clock, env.random) {}

Awaitable<> AgentCore::run() {
  phase::Machine<AgentCore, AgentRecord> machine{
      agent_definition(), *this, env, {.name = "klusterlet", .on_transition = options.on_transition}};
  const kube::Key key{{}, options.cluster_name};
  while (true) {
    const auto result = co_await machine.reconcile(key);
    if (result.outcome == phase::Reconciled::Outcome::terminal)
      throw std::runtime_error("the agent of cluster " + options.cluster_name +
                               " failed: " + record.status.state[phases::selecting].error);
    const auto seen = store.version();
    const auto again = async::later(env.clock.now(), result.after);
    // An agent that waits for a hub retries immediately when the list of hubs changes.
    co_await async::before_deadline(env.clock, again, store.wait_for_change(seen));
  }
}

AgentView AgentCore::view() const {
  AgentView view;
  view.phase = record.status.phase;
  if (selected) {
    view.hub = selected->config.server;
    view.bootstrap = selected->bootstrap.name;
  }
  if (validity) {
    view.certificate_expires = validity->until;
    view.certificate_rotates = first_rotation_check(*validity);
  }
  view.available = available;
  view.problem = problem;
  return view;
}

void AgentCore::view_changed() {
  store.report({.phase = record.status.phase,
                .hub = selected ? selected->config.server : std::string{},
                .problem = problem,
                .heartbeat_reason = heartbeat_reason,
                .heartbeat_problem = heartbeat_problem});
  if (options.on_change) options.on_change(view());
}

void AgentCore::set_secret(HubSecret loaded) {
  validity = validity_of(read_certificates(loaded.certificate));
  if (validity && (!secret || secret->certificate != loaded.certificate))
    env.log.info("client certificate in use", {{"valid_from", async::format_time(validity->from)},
                                               {"valid_until", async::format_time(validity->until)},
                                               {"rotation_due", async::format_time(first_rotation_check(*validity))}});
  secret = std::move(loaded);
}

void AgentCore::heartbeat_succeeded() {
  failed_heartbeats = 0;
  renewed_after_rejection = false;
  if (heartbeat_problem.empty()) return;
  heartbeat_reason.clear();
  heartbeat_problem.clear();
  view_changed();
}

void AgentCore::heartbeat_failed(const kube::Error& error) {
  // A single failure is no news: the next heartbeat follows soon.
  if (++failed_heartbeats < 2) return;
  const bool refused = error.kind == kube::ErrorKind::unauthorized || error.kind == kube::ErrorKind::forbidden;
  std::string reason = refused ? "HubKubeConfigUnauthorized" : "HubLeaseUpdateFailed";
  if (reason == heartbeat_reason) return;
  heartbeat_reason = std::move(reason);
  heartbeat_problem = "heartbeats do not reach the hub " + (selected ? selected->config.server : std::string{}) + ": " +
                      error.describe();
  view_changed();
}

void AgentCore::became_available() {
  failure_backoff.reset();
  if (left_at) {
    const std::chrono::duration<double> elapsed = env.clock.now() - *left_at;
    metrics.time_to_available.observe(elapsed.count());
    left_at.reset();
  }
  if (available) return;
  available = true;
  view_changed();
}

bool AgentCore::bootstrap_changed() const {
  if (!selected) return false;
  for (const auto& candidate : store.bootstraps()) {
    if (candidate.kubeconfig == selected->bootstrap.kubeconfig) return false;
    if (!multiple_hubs()) break;
  }
  return true;
}

Awaitable<> AgentCore::save_secret(HubSecret obtained) {
  async::Backoff backoff{{}, env.clock, env.random};
  while (true) {
    auto saved = co_await store.save(obtained);
    if (saved) break;
    env.log.warn("saving the hub kubeconfig failed, retrying", {{"error", saved.error().describe()}});
    co_await backoff.pause();
  }
  set_secret(std::move(obtained));
  view_changed();
}

TimePoint monotonic(async::Clock& clock, WallTime when) {
  const auto wall = clock.wall_now();
  const auto now = clock.now();
  if (when <= wall) return now;
  // Not the difference of the two: the latest time minus a date before 1970 would overflow.
  if (wall.time_since_epoch().count() < 0) return async::never;
  return async::later(now, when - wall);
}

}  // namespace hubferry::klusterlet
