#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "klusterlet/agent_core.hpp"
#include "klusterlet/client_configs.hpp"
#include "klusterlet/enrolment.hpp"
#include "klusterlet/hub_pause.hpp"

// The phase Bootstrapping: registers the cluster with the bootstrap kubeconfig and obtains a credential.
namespace hubferry::klusterlet {

namespace {

using kube::json::object;

// One request per check: rare enough for thousands of agents that wait for manual approval.
constexpr auto refusal_check_period = std::chrono::seconds{60};
constexpr auto cluster_check_period = std::chrono::minutes{60};
// Of two certificate requests to one hub the second one is not sent without counting what is there.
constexpr auto uncounted_request_interval = std::chrono::hours{1};

object cluster_object(const AgentCore& agent) {
  object metadata{{"name", agent.options.cluster_name}};
  object annotations;
  for (const auto& wanted : {agent.store.cluster_annotations(), agent.options.cluster_annotations})
    for (const auto& [name, value] : wanted)
      if (name.starts_with(ocm::names::agent_annotation_prefix)) annotations[name] = value;
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  return {{"metadata", std::move(metadata)}, {"spec", object{{"hubAcceptsClient", false}}}};
}

bool is_refusal(const kube::Error& error) {
  return error.kind == kube::ErrorKind::forbidden || error.kind == kube::ErrorKind::unauthorized;
}

/// What one attempt to register failed with; nullopt: it need not be repeated.
using Failure = std::optional<kube::Error>;

/// Reports why our ManagedCluster is not registered, once for each reason. If we are not allowed to register it, an
/// administrator has to.
Failure report_refusal(AgentCore& agent, const char* what, const kube::Error& error) {
  agent.registration_problem(std::string{what} + " ManagedCluster " + agent.options.cluster_name + " on " +
                             agent.selected->config.server + " failed: " + error.describe());
  if (is_refusal(error) && !error.denied_by_admission) return std::nullopt;
  return error;
}

Awaitable<kube::Result<kube::Object>> read_cluster(AgentCore& agent, kube::Api& api, kube::Key key) {
  auto probed = std::exchange(agent.probed, std::nullopt);
  if (!probed) co_return co_await api.get(ocm::managed_clusters, key);
  if (probed->object) co_return std::move(*probed->object);
  co_return kube::Error{kube::ErrorKind::not_found, 0, {}, "there is no ManagedCluster " + key.name, std::nullopt};
}

/// One attempt to create our ManagedCluster on the hub.
Awaitable<Failure> ensure_cluster(AgentCore& agent, kube::Api& api) {
  const kube::Key key{{}, agent.options.cluster_name};
  auto found = co_await read_cluster(agent, api, key);
  if (!found && found.error().kind == kube::ErrorKind::not_found) {
    auto wanted = cluster_object(agent);
    add_client_configs(wanted, agent.external_servers());
    auto created = co_await api.create(ocm::managed_clusters, std::move(wanted));
    if (!created && created.error().kind != kube::ErrorKind::already_exists)
      co_return report_refusal(agent, "creating", created.error());
    agent.registration_problem({});
    if (created) {
      agent.cluster_version = created->resource_version();
      agent.env.log.info("cluster registered", {{"event", "ManagedClusterCreated"}});
    }
    co_return std::nullopt;
  }
  if (!found) co_return report_refusal(agent, "reading", found.error());
  agent.registration_problem({});
  const auto servers = agent.external_servers();
  object copy = found->json();
  if (!add_client_configs(copy, servers)) co_return std::nullopt;
  const kube::Mutation mutate = [&servers](object& cluster) { return add_client_configs(cluster, servers); };
  auto edited = co_await kube::edit(api, ocm::managed_clusters, std::move(*found), mutate, kube::EditOptions{});
  if (edited || is_refusal(edited.error())) co_return std::nullopt;
  co_return edited.error();
}

/// Returns when the cluster is registered.
Awaitable<> register_cluster(AgentCore& agent, kube::Api& api) {
  async::Backoff backoff{registration_retry, agent.env.clock, agent.env.random};
  while (const auto failure = co_await ensure_cluster(agent, api))
    co_await agent.env.clock.sleep_for(pause_after(*failure, backoff, agent.env.random));
}

/// Registers the cluster again if it is deleted while we wait.
Awaitable<> keep_cluster(AgentCore& agent, kube::Api& api) {
  while (true) {
    co_await agent.env.clock.sleep_for(agent.env.random.between(cluster_check_period, 2 * cluster_check_period));
    co_await register_cluster(agent, api);
  }
}

/// Returns when the hub refuses us: the request that we wait for will not be approved.
Awaitable<> watch_refusal(AgentCore& agent, kube::Api& api) {
  auto& env = agent.env;
  const kube::Key key{{}, agent.options.cluster_name};
  while (true) {
    co_await env.clock.sleep_for(
        env.random.between(refusal_check_period, refusal_check_period + refusal_check_period / 4));
    if (!agent.multiple_hubs()) continue;
    auto found = co_await api.get(ocm::managed_clusters, key);
    std::string why;
    if (!found && is_refusal(found.error())) why = found.error().describe();
    if (found && acceptance_of_object(*found) == Acceptance::denied)
      why = "the hub denies the cluster: hubAcceptsClient is false";
    if (why.empty()) continue;
    agent.leave = Leave{LeaveReason::bootstrap_refused, std::move(why)};
    co_return;
  }
}

/// Returns when the bootstrap kubeconfig in use was removed or changed in any way: here its credential is in use.
Awaitable<> watch_bootstrap(AgentCore& agent) {
  const auto used = agent.selected->bootstrap;
  while (agent.follow_bootstraps() == BootstrapChange::none && agent.selected->bootstrap.is_same(used))
    co_await agent.store.wait_for_change(agent.store.version());
  agent.leave = Leave{LeaveReason::bootstrap_changed, "the bootstrap kubeconfig in use was changed"};
}

/// Returns when the connection timeout has expired. A changed timeout takes effect immediately.
Awaitable<> watch_deadline(AgentCore& agent) {
  const auto started = agent.env.clock.now();
  while (true) {
    const auto seen = agent.store.version();
    const auto deadline = agent.multiple_hubs() ? async::later(started, agent.connection_timeout()) : async::never;
    const bool changed = co_await async::before_deadline(agent.env.clock, deadline, agent.store.wait_for_change(seen));
    if (changed) continue;
    agent.leave = Leave{LeaveReason::bootstrap_timeout, "the hub did not complete the registration within " +
                                                            async::format_duration(agent.connection_timeout())};
    co_return;
  }
}

/// True if there may be many requests of ours on the hub: after a start, since the process may crash again and again,
/// and if the last one was not long ago.
bool may_have_many_requests(const AgentCore& agent) {
  const auto last = agent.requested.find(agent.selected->config.server);
  return !agent.was_joined || (last != agent.requested.end() &&
                               agent.env.clock.now() < async::later(last->second, uncounted_request_interval));
}

Awaitable<> obtain_credential(AgentCore& agent, kube::Api& api) {
  EnrolmentOptions options;
  options.count_first = may_have_many_requests(agent);
  agent.requested[agent.selected->config.server] = agent.env.clock.now();
  options.identity = agent.identity();
  options.keys = &agent.keys();
  options.lifetime = agent.certificate_lifetime();
  bool failing = false;
  options.report = [&](std::string_view reason, const std::string& message) {
    if (reason == "CSRCreated") {
      agent.env.log.info(message, {{"event", reason}});
      if (std::exchange(failing, false)) agent.registration_problem({});
      return;
    }
    failing = true;
    agent.registration_problem(std::string{reason} + " on " + agent.selected->config.server + ": " + message);
  };
  options.failed = [&](const std::string& what, const kube::Error& error) {
    failing = true;
    agent.registration_problem(what + " on " + agent.selected->config.server + " failed: " + error.describe());
  };
  auto enrolled = co_await enrol(api, std::move(options), agent.env);
  HubSecret secret{.kubeconfig = hub_kubeconfig(agent.selected->config),
                   .certificate = std::move(enrolled.certificate),
                   .key = std::move(enrolled.key),
                   .cluster_name = agent.options.cluster_name,
                   .agent_name = agent.options.agent_name};
  co_await agent.keep_secret(std::move(secret));
}

Awaitable<> register_with_hub(AgentCore& agent, kube::Api& api) {
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    auto unless_changed = [](AgentCore& core, async::TaskScope& all) -> Awaitable<> {
      co_await watch_bootstrap(core);
      all.stop();
    };
    auto unless_refused = [](AgentCore& core, kube::Api& hub, async::TaskScope& all) -> Awaitable<> {
      co_await watch_refusal(core, hub);
      all.stop();
    };
    auto unless_late = [](AgentCore& core, async::TaskScope& all) -> Awaitable<> {
      co_await watch_deadline(core);
      all.stop();
    };
    if (!agent.options.registers_until_restarted) {
      scope.spawn(unless_changed(agent, scope));
      scope.spawn(unless_refused(agent, api, scope));
      scope.spawn(unless_late(agent, scope));
    }
    // In this order: an agent that has its certificate does not come back here to register the cluster.
    co_await register_cluster(agent, api);
    if (agent.needs_certificate) {
      scope.spawn(keep_cluster(agent, api));
      co_await obtain_credential(agent, api);
    }
    agent.registration_problem({});
    scope.stop();
  };
  co_await async::with_scope(body);
}

}  // namespace

Awaitable<phase::ReconcileState> bootstrap(AgentContext& context, AgentRecord&, const phase::State&) {
  auto& agent = context.services();
  if (!agent.selected) co_return phase::go_to(phases::selecting);
  agent.leave.reset();
  // Only with the bootstrap credential: the credential for another hub must not be sent here.
  const auto api = agent.connect(agent.selected->config);
  co_await register_with_hub(agent, *api);
  co_return agent.leave ? phase::go_to(phases::leaving) : phase::done();
}

}  // namespace hubferry::klusterlet
