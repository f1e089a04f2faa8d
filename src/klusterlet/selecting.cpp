#include "hubferry/async/deadline.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "klusterlet/agent_core.hpp"

// The phase Selecting: selects the hub to join.
namespace hubferry::klusterlet {

namespace {

struct Candidates {
  std::vector<BootstrapConfig> bootstraps;
  std::vector<std::optional<kube::ClientConfig>> configs;  // nullopt: unreadable
  std::vector<Candidate> list;
};

Candidates read_candidates(AgentCore& agent) {
  Candidates all;
  all.bootstraps = agent.store.bootstraps();
  if (!agent.multiple_hubs() && all.bootstraps.size() > 1) all.bootstraps.resize(1);
  const auto now = agent.env.clock.now();
  std::erase_if(agent.demoted_until, [&](const auto& entry) { return entry.second <= now; });
  for (const auto& bootstrap : all.bootstraps) {
    Candidate candidate{.name = bootstrap.name, .server = {}, .unreadable = {}, .fallback = bootstrap.fallback};
    std::optional<kube::ClientConfig> config;
    try {
      config = bootstrap.parse();
      candidate.server = config->server;
      if (!agent.options.allow_plain_http)
        if (const auto problem = transport_problem(*config)) candidate.unreadable = *problem;
      candidate.demoted = agent.demoted_until.contains(config->server);
    } catch (const kube::ConfigError& error) {
      candidate.unreadable = error.what();
    }
    all.configs.push_back(std::move(config));
    all.list.push_back(std::move(candidate));
  }
  return all;
}

/// The stored credential, parsed; nullopt if there is none. Parsed once: this is repeated every minute while no hub
/// answers, by thousands of agents, and decoding keys is slow.
const StoredCredential* parse_stored(AgentCore& agent, const std::optional<HubSecret>& secret) {
  if (!secret || secret->kubeconfig.empty()) return nullptr;
  if (agent.stored && agent.stored->secret == *secret) return &*agent.stored;
  agent.stored.reset();
  try {
    StoredCredential stored{.secret = *secret, .config = client_config(*secret), .flaw = {}, .until = {}};
    // With itself: whether it is usable at all.
    stored.flaw = why_unusable(*secret, stored.config, stored.config, agent.identity(), agent.keys());
    if (const auto validity = validity_of(agent.keys().read(secret->certificate).certificates))
      stored.until = validity->until;
    agent.stored = std::move(stored);
    return &*agent.stored;
  } catch (const kube::ConfigError& error) {
    agent.env.log.warn("stored hub kubeconfig is invalid", {{"error", error.what()}});
    return nullptr;
  }
}

/// What we hold for a hub: its bootstrap kubeconfig, and the stored credential if it can be tried there.
struct Means {
  const kube::ClientConfig& bootstrap;
  const StoredCredential* credential = nullptr;
  /// The hub has rejected it for a while, or it has expired by our clock: the bootstrap credential is tried first. But
  /// that may have expired long ago, and the hub's authority been repaired, or our clock be wrong.
  bool doubted = false;
};

/// True if the hub's answer means that our certificate is of no use there. Some servers just close the connection if it
/// has expired.
bool is_rejection(const kube::Error& error, const StoredCredential& credential, WallTime now) {
  return error.kind == kube::ErrorKind::unauthorized ||
         (error.kind == kube::ErrorKind::unreachable && now >= credential.until);
}

Awaitable<Verdict> probe_by(AgentCore& agent, Means means, TimePoint deadline) {
  const auto& cluster = agent.options.cluster_name;
  bool rejected = means.doubted;
  try {
    // The certificate first: the bootstrap credential may have expired long ago, and a joined agent does not need it.
    if (means.credential != nullptr && !means.doubted) {
      const auto api = agent.connect(client_config(means.credential->secret, means.bootstrap));
      auto verdict = co_await probe_with_certificate(*api, cluster, agent.env, deadline);
      if (verdict) co_return std::move(*verdict);
      const auto& error = verdict.error();
      rejected = is_rejection(error, *means.credential, agent.env.clock.wall_now());
      if (error.kind == kube::ErrorKind::unreachable && !rejected) co_return Verdict{.reason = error.describe()};
    }
    const auto api = agent.connect(means.bootstrap);
    auto verdict = co_await probe(*api, cluster, agent.env, deadline);
    verdict.rejects_certificate = rejected;
    if (verdict.valid || means.credential == nullptr || !means.doubted) co_return verdict;
    const auto by_certificate = agent.connect(client_config(means.credential->secret, means.bootstrap));
    auto second = co_await probe_with_certificate(*by_certificate, cluster, agent.env, deadline);
    if (second && second->valid) {
      second->accepts_certificate = true;
      co_return std::move(*second);
    }
    co_return verdict;
  } catch (const kube::ConfigError& error) {
    co_return Verdict{.reason = error.what()};
  }
}

Awaitable<Verdict> probe_candidate(AgentCore& agent, Means means) {
  const auto deadline = async::later(agent.env.clock.now(), probe_timeout);
  auto verdict = co_await async::before_deadline(agent.env.clock, deadline, probe_by(agent, means, deadline));
  if (verdict) co_return std::move(*verdict);
  co_return Verdict{.reason = "no answer within " + async::format_duration(probe_timeout)};
}

/// Why the stored credential cannot be tried with this hub; nullopt if it can.
std::optional<std::string> why_not_to_try(const StoredCredential& stored, const kube::ClientConfig& bootstrap) {
  if (stored.flaw) return stored.flaw;
  if (!is_same_hub(stored.config, bootstrap)) return "it is for another hub: " + stored.config.server;
  return std::nullopt;
}

phase::ReconcileState without_hub(AgentCore& agent, std::string why) {
  if (agent.problem.empty()) agent.metrics.problems.with({"BootstrapSecretError"}).increment();
  agent.problem = std::move(why);
  agent.selected.reset();
  agent.view_changed();
  auto error = phase::Error::network(agent.problem);
  error.retry_after = agent.selection_backoff.next();
  return phase::failed(std::move(error));
}

}  // namespace

Awaitable<phase::ReconcileState> select_hub(AgentContext& context, AgentRecord&, const phase::State&) {
  auto& agent = context.services();
  auto loaded = co_await agent.load_secret();
  if (!loaded) co_return without_hub(agent, "cannot read the stored hub kubeconfig: " + loaded.error().describe());
  auto all = read_candidates(agent);
  const auto* stored = parse_stored(agent, *loaded);
  HubSelection selection{all.list, stored != nullptr ? stored->config.server : std::string{}};
  while (const auto index = selection.next()) {
    Means means{.bootstrap = *all.configs[*index]};
    if (stored != nullptr && !why_not_to_try(*stored, means.bootstrap)) means.credential = stored;
    means.doubted = stored != nullptr && stored->secret.certificate == agent.rejected_certificate;
    auto verdict = co_await probe_candidate(agent, means);
    if (!verdict.valid)
      context.log().info("hub rejected", {{"bootstrap", all.list[*index].name}, {"reason", verdict.reason}});
    selection.report(*index, std::move(verdict));
  }
  if (!selection.selected()) co_return without_hub(agent, selection.explain(agent.options.cluster_name));

  const auto index = *selection.selected();
  agent.problem.clear();
  agent.selection_backoff.reset();
  agent.selected = SelectedHub{all.bootstraps[index], std::move(*all.configs[index])};
  context.log().info("hub selected", {{"event", "BootstrapSelected"},
                                      {"index", index},
                                      {"bootstrap", agent.selected->bootstrap.name},
                                      {"server", agent.selected->config.server}});
  if (agent.selected->config.insecure_skip_tls_verify)
    context.log().warn("hub certificate is not verified: its kubeconfig has insecure-skip-tls-verify",
                       {{"bootstrap", agent.selected->bootstrap.name}, {"server", agent.selected->config.server}});
  agent.needs_certificate = true;
  const auto& verdict = selection.verdict();
  agent.probed = ProbedCluster{verdict.cluster};
  agent.cluster_version = verdict.cluster ? verdict.cluster->resource_version() : std::string_view{};
  if (stored == nullptr) co_return phase::done();
  const auto& hub = agent.selected->config;
  auto unusable = why_not_to_try(*stored, hub);
  if (!unusable && verdict.rejects_certificate) unusable = "the hub does not accept its certificate";
  if (unusable) {
    context.log().info("new hub credential needed", {{"reason", *unusable}});
    co_return phase::done();
  }
  agent.needs_certificate = false;
  auto secret = std::move(**loaded);
  if (!is_reached_alike(stored->config, hub)) {
    // The CA was rotated: what is stored follows.
    secret.kubeconfig = hub_kubeconfig(hub);
    agent.unsaved = true;
  }
  agent.set_secret(std::move(secret));
  if (verdict.accepts_certificate) agent.trust_certificate_again();
  if (verdict.registered) agent.probed.reset();
  // A credential alone does not prove a registration: the cluster may have been deleted there.
  co_return verdict.registered ? phase::go_to(phases::joined) : phase::done();
}

}  // namespace hubferry::klusterlet
