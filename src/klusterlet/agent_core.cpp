#include "klusterlet/agent_core.hpp"

#include <stdexcept>

#include "hubferry/async/deadline.hpp"
#include "hubferry/phase/machine.hpp"

namespace hubferry::klusterlet {

namespace {

// Each agent probes a returning hub once in one to two minutes: 5,000 agents make some 60 probes a second.
const async::BackoffPolicy selection_policy{.first = std::chrono::seconds{1}, .most = std::chrono::seconds{60}};

struct FailureNames {
  const char* reason;
  const char* what;
};

const FailureNames& names_of(ConnectionPart part) {
  static constexpr FailureNames heartbeat{"HubLeaseUpdateFailed", "heartbeats do not reach the hub "};
  static constexpr FailureNames cluster{"HubUnreachable", "cannot watch the hub "};
  static constexpr FailureNames status{"HubStatusUpdateFailed", "cannot write the ManagedCluster's status on the hub "};
  switch (part) {
    case ConnectionPart::heartbeat:
      return heartbeat;
    case ConnectionPart::cluster:
      return cluster;
    case ConnectionPart::status:
      return status;
  }
  return cluster;
}

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
                                        "Renewals of the cluster's Lease, by result.", {"result"})),
      problems(metrics.counter_family("hubferry_klusterlet_problems_total",
                                      "Problems of agents when they began, by the reason that the conditions have.",
                                      {"reason"})) {
  for (const auto reason : {LeaveReason::denied, LeaveReason::connection_lost, LeaveReason::bootstrap_timeout,
                            LeaveReason::bootstrap_refused, LeaveReason::bootstrap_changed,
                            LeaveReason::certificate_expired, LeaveReason::certificate_rejected, LeaveReason::failed})
    switches.with({to_string(reason)});
  for (const auto* result : {"ok", "failed"}) heartbeats.with({result});
  for (const auto* reason :
       {"HubKubeConfigUnauthorized", "HubLeaseUpdateFailed", "HubUnreachable", "HubStatusUpdateFailed",
        "ManagedClusterMissing", "RegistrationFailed", "BootstrapSecretError", "CredentialNotSaved"})
    problems.with({reason});
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
    // Before hubs are probed, which takes a while: a list that comes meanwhile is a reason to do so again.
    const auto seen = store.version();
    const auto result = co_await machine.reconcile(key);
    if (result.outcome == phase::Reconciled::Outcome::terminal)
      throw std::runtime_error("the agent of cluster " + options.cluster_name +
                               " failed: " + record.status.state[phases::selecting].error);
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
  if (!connection.empty()) view.connection_problem = connection.begin()->second.message;
  view.store_problem = store_problem;
  return view;
}

std::vector<ExternalServer> AgentCore::external_servers() const {
  std::vector<ExternalServer> servers;
  for (const auto& url : options.external_server_urls) servers.push_back({url, options.external_ca_pem});
  for (auto& server : store.external_servers()) {
    if (server.ca_pem.empty()) server.ca_pem = options.external_ca_pem;
    servers.push_back(std::move(server));
  }
  return servers;
}

void AgentCore::view_changed() {
  AgentReport report;
  report.phase = record.status.phase;
  report.hub = selected ? selected->config.server : std::string{};
  report.problem = problem;
  if (!connection.empty()) {
    report.connection_reason = connection.begin()->second.reason;
    report.connection_problem = connection.begin()->second.message;
  }
  report.store_problem = store_problem;
  store.report(report);
  if (options.on_change) options.on_change(view());
}

TimePoint AgentCore::end_of(const Validity& certificate) const {
  const auto wall = env.clock.wall_now();
  if (certificate.from <= wall && wall < certificate.until) return monotonic(env.clock, certificate.until);
  // The hub accepts it, or has just issued it, so our clock is wrong. What remains is not known; its whole lifetime is
  // the most, and if the hub rejects it earlier it is replaced then.
  env.log.warn("this machine's clock is outside of the certificate's validity",
               {{"valid_from", async::format_time(certificate.from)},
                {"valid_until", async::format_time(certificate.until)},
                {"clock", async::format_time(wall)}});
  return async::later(env.clock.now(), std::max(certificate.until - certificate.from, Duration{0}));
}

void AgentCore::set_secret(HubSecret loaded) {
  if (!secret || secret->certificate != loaded.certificate) {
    validity = validity_of(keys().read(loaded.certificate).certificates);
    if (validity) {
      certificate_until = end_of(*validity);
      env.log.info("client certificate in use",
                   {{"valid_from", async::format_time(validity->from)},
                    {"valid_until", async::format_time(validity->until)},
                    {"rotation_due", async::format_time(first_rotation_check(*validity))}});
    }
  }
  secret = std::move(loaded);
}

void AgentCore::trust_certificate_again() {
  rejected_certificate.clear();
  env.log.info("the hub accepts the certificate that it had rejected, or that had expired by this machine's clock");
  if (!validity) return;
  const auto left = std::chrono::duration_cast<Duration>((validity->until - validity->from) * least_remaining);
  certificate_until = std::max(certificate_until, async::later(env.clock.now(), left));
}

void AgentCore::connection_failed(ConnectionPart part, std::string reason, std::string message) {
  auto& known = connection[part];
  if (known.reason == reason) return;
  known = {std::move(reason), std::move(message)};
  metrics.problems.with({known.reason}).increment();
  env.log.warn("connection to the hub is failing", {{"reason", known.reason}, {"message", known.message}});
  view_changed();
}

void AgentCore::connection_failed(ConnectionPart part, const kube::Error& error) {
  // One that may not write its status may still be welcome: heartbeats tell.
  const bool refused = error.kind == kube::ErrorKind::unauthorized ||
                       (error.kind == kube::ErrorKind::forbidden && part != ConnectionPart::status);
  const auto& names = names_of(part);
  connection_failed(part, refused ? "HubKubeConfigUnauthorized" : names.reason,
                    names.what + (selected ? selected->config.server : std::string{}) + ": " + error.describe());
}

void AgentCore::connection_works(ConnectionPart part) {
  if (connection.erase(part) == 0) return;
  if (connection.empty()) env.log.info("connection to the hub restored");
  view_changed();
}

void AgentCore::registration_problem(std::string message) {
  if (problem == message) return;
  problem = std::move(message);
  if (!problem.empty()) {
    metrics.problems.with({"RegistrationFailed"}).increment();
    env.log.warn("registering the cluster failed", {{"error", problem}});
  }
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

BootstrapChange AgentCore::follow_bootstraps() {
  if (!selected) return BootstrapChange::none;
  auto list = store.bootstraps();
  if (!multiple_hubs() && list.size() > 1) list.resize(1);
  // Texts first: most of the time one is equal, and parsing is slow.
  for (const auto& candidate : list)
    if (candidate.is_same(selected->bootstrap)) return BootstrapChange::none;
  bool any = false;
  for (const auto& candidate : list) {
    if (why_unparsable(candidate)) continue;
    any = true;
    auto config = candidate.parse();
    if (!is_same_hub(config, selected->config)) continue;
    const bool alike = is_reached_alike(config, selected->config);
    selected = SelectedHub{candidate, std::move(config)};
    return alike ? BootstrapChange::none : BootstrapChange::reconnect;
  }
  // A list of which nothing can be read says nothing about the hub in use.
  return any ? BootstrapChange::gone : BootstrapChange::none;
}

Awaitable<kube::Result<std::optional<HubSecret>>> AgentCore::load_secret() {
  if (unsaved) co_return secret;
  auto loaded = co_await store.load();
  if (loaded || !secret) co_return loaded;
  env.log.warn("cannot read the stored hub kubeconfig, using the one in memory",
               {{"error", loaded.error().describe()}});
  co_return secret;
}

Awaitable<bool> AgentCore::try_to_save() {
  const auto saving = *secret;
  auto saved = co_await store.save(saving);
  auto message = saved ? std::string{} : saved.error().describe();
  if (saved && saving == *secret) unsaved = false;
  if (message == store_problem) co_return saved.has_value();
  if (store_problem.empty()) {
    metrics.problems.with({"CredentialNotSaved"}).increment();
    env.log.warn("saving the hub kubeconfig failed, using it from memory", {{"error", message}});
  } else if (saved) {
    env.log.info("hub kubeconfig saved");
  }
  store_problem = std::move(message);
  view_changed();
  co_return saved.has_value();
}

void AgentCore::use_secret(HubSecret obtained) {
  unsaved = true;
  set_secret(std::move(obtained));
  view_changed();
}

Awaitable<> AgentCore::keep_secret(HubSecret obtained) {
  use_secret(std::move(obtained));
  co_await try_to_save();
}

Awaitable<> AgentCore::save_unsaved() {
  async::Backoff backoff{{}, env.clock, env.random};
  while (unsaved) {
    if (!co_await try_to_save()) co_await backoff.pause();
  }
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
