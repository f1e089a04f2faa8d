#include "hubferry/async/deadline.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "klusterlet/agent_core.hpp"

// The phase Selecting: which hub to go to.
namespace hubferry::klusterlet {

namespace {

struct Choice {
  std::vector<BootstrapConfig> bootstraps;
  std::vector<std::optional<kube::ClientConfig>> configs;  // nullopt: unreadable
  std::vector<Candidate> candidates;
};

Choice read_choice(AgentCore& agent) {
  Choice choice;
  choice.bootstraps = agent.store.bootstraps();
  if (!agent.multiple_hubs() && choice.bootstraps.size() > 1) choice.bootstraps.resize(1);
  const auto now = agent.env.clock.now();
  std::erase_if(agent.demoted_until, [&](const auto& entry) { return entry.second <= now; });
  for (const auto& bootstrap : choice.bootstraps) {
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
    choice.configs.push_back(std::move(config));
    choice.candidates.push_back(std::move(candidate));
  }
  return choice;
}

/// How the credential at hand would be used; nullopt when there is none, or none that can be.
std::optional<kube::ClientConfig> config_at_hand(const AgentCore& agent, const std::optional<HubSecret>& secret) {
  if (!secret || secret->kubeconfig.empty()) return std::nullopt;
  try {
    return client_config(*secret);
  } catch (const kube::ConfigError& error) {
    agent.env.log.warn("the hub kubeconfig at hand cannot be used", {{"error", error.what()}});
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
    auto error = phase::Error::network("the hub kubeconfig at hand cannot be read: " + loaded.error().describe());
    error.retry_after = agent.selection_backoff.next();
    co_return phase::failed(std::move(error));
  }
  auto choice = read_choice(agent);
  const auto at_hand = config_at_hand(agent, *loaded);
  HubSelection selection{choice.candidates, at_hand ? at_hand->server : std::string{}};
  while (const auto index = selection.next()) {
    auto verdict = co_await probe_candidate(agent, *choice.configs[*index]);
    if (!verdict.valid)
      context.log().info("this hub cannot be chosen",
                         {{"bootstrap", choice.candidates[*index].name}, {"reason", verdict.reason}});
    selection.report(*index, std::move(verdict));
  }
  if (!selection.chosen()) {
    agent.problem = selection.explain(agent.options.cluster_name);
    agent.chosen.reset();
    agent.view_changed();
    auto error = phase::Error::network(agent.problem);
    error.retry_after = agent.selection_backoff.next();
    co_return phase::failed(std::move(error));
  }

  const auto index = *selection.chosen();
  agent.problem.clear();
  agent.selection_backoff.reset();
  agent.chosen = ChosenHub{choice.bootstraps[index], std::move(*choice.configs[index])};
  context.log().info("a hub is chosen", {{"event", "BootstrapSelected"},
                                         {"index", index},
                                         {"bootstrap", agent.chosen->bootstrap.name},
                                         {"server", agent.chosen->config.server}});
  if (agent.chosen->config.insecure_skip_tls_verify)
    context.log().warn("this hub's identity is not verified: its kubeconfig says insecure-skip-tls-verify",
                       {{"bootstrap", agent.chosen->bootstrap.name}, {"server", agent.chosen->config.server}});
  agent.needs_certificate = true;
  if (!at_hand) co_return phase::done();
  auto unusable = why_unusable(**loaded, *at_hand, agent.chosen->config, agent.identity(), agent.env.clock.wall_now());
  if (!unusable && (*loaded)->certificate == agent.rejected_certificate)
    unusable = "the hub does not take its certificate any more";
  if (unusable) {
    context.log().info("a new credential is needed", {{"reason", *unusable}});
    co_return phase::done();
  }
  agent.needs_certificate = false;
  agent.set_secret(std::move(**loaded));
  // A credential alone is no registration: the cluster may have been deleted there.
  co_return selection.registered() ? phase::go_to(phases::joined) : phase::done();
}

}  // namespace hubferry::klusterlet
