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
    Candidate candidate{.name = bootstrap.name, .server = {}, .unreadable = {}};
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

/// The client configuration of the stored credential; nullopt if there is none, or it is unusable.
std::optional<kube::ClientConfig> stored_config(const AgentCore& agent, const std::optional<HubSecret>& secret) {
  if (!secret || secret->kubeconfig.empty()) return std::nullopt;
  try {
    return client_config(*secret);
  } catch (const kube::ConfigError& error) {
    agent.env.log.warn("stored hub kubeconfig is invalid", {{"error", error.what()}});
    return std::nullopt;
  }
}

Awaitable<Verdict> probe_candidate(AgentCore& agent, const kube::ClientConfig& config) {
  std::shared_ptr<kube::Api> api;
  try {
    api = agent.connect(config);
  } catch (const kube::ConfigError& error) {
    co_return Verdict{false, error.what(), false};
  }
  const auto deadline = async::later(agent.env.clock.now(), probe_timeout);
  auto verdict = co_await async::before_deadline(agent.env.clock, deadline, probe(*api, agent.options.cluster_name));
  if (verdict) co_return std::move(*verdict);
  co_return Verdict{false, "no answer within " + async::format_duration(probe_timeout), false};
}

}  // namespace

Awaitable<phase::ReconcileState> select_hub(AgentContext& context, AgentRecord&, const phase::State&) {
  auto& agent = context.services();
  auto loaded = co_await agent.store.load();
  if (!loaded) {
    auto error = phase::Error::network("cannot read the stored hub kubeconfig: " + loaded.error().describe());
    error.retry_after = agent.selection_backoff.next();
    co_return phase::failed(std::move(error));
  }
  auto all = read_candidates(agent);
  const auto stored = stored_config(agent, *loaded);
  HubSelection selection{all.list, stored ? stored->server : std::string{}};
  while (const auto index = selection.next()) {
    auto verdict = co_await probe_candidate(agent, *all.configs[*index]);
    if (!verdict.valid)
      context.log().info("hub rejected", {{"bootstrap", all.list[*index].name}, {"reason", verdict.reason}});
    selection.report(*index, std::move(verdict));
  }
  if (!selection.selected()) {
    agent.problem = selection.explain(agent.options.cluster_name);
    agent.selected.reset();
    agent.view_changed();
    auto error = phase::Error::network(agent.problem);
    error.retry_after = agent.selection_backoff.next();
    co_return phase::failed(std::move(error));
  }

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
  if (!stored) co_return phase::done();
  auto unusable = why_unusable(**loaded, *stored, agent.selected->config, agent.identity(), agent.env.clock.wall_now());
  if (!unusable && (*loaded)->certificate == agent.rejected_certificate)
    unusable = "the hub no longer accepts its certificate";
  if (unusable) {
    context.log().info("new hub credential needed", {{"reason", *unusable}});
    co_return phase::done();
  }
  agent.needs_certificate = false;
  agent.set_secret(std::move(**loaded));
  // A credential alone does not prove a registration: the cluster may have been deleted there.
  co_return selection.registered() ? phase::go_to(phases::joined) : phase::done();
}

}  // namespace hubferry::klusterlet
