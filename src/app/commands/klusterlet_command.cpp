#include "app/commands/klusterlet_command.hpp"

#include <cstdlib>
#include <memory>

#include "app/commands/commands.hpp"
#include "app/service/service.hpp"
#include "hubferry/async/backoff.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/klusterlet/file_store.hpp"
#include "hubferry/klusterlet/hub_client.hpp"
#include "hubferry/klusterlet/klusterlet_store.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/obs/build_info.hpp"

namespace hubferry::app {

namespace {

double seconds_since_1970(async::WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

using async::Awaitable;

std::string user_agent() {
  return "hubferry-klusterlet/" + std::string{obs::build_info().version};
}

/// What the agent's process holds while it runs.
struct AgentProcess {
  const KlusterletOptions& options;
  kube::Env env;
  async::Executor loop;  // of the connections
  AgentDisplay& display;
  std::shared_ptr<kube::Api> own_cluster;  // null: not given
};

/// The first that is not empty; empty when all are.
std::string first_of(std::initializer_list<std::string> candidates) {
  for (const auto& candidate : candidates)
    if (!candidate.empty()) return candidate;
  return {};
}

/// The identity of the previous run. Retries without a limit: treating a failed read as "no identity" would register
/// the same cluster a second time.
Awaitable<klusterlet::HubSecret> load_identity(AgentProcess& process, klusterlet::LocalStore& store) {
  async::Backoff backoff{{}, process.env.clock, process.env.random};
  while (true) {
    auto loaded = co_await store.load();
    if (loaded) co_return loaded->value_or(klusterlet::HubSecret{});
    process.env.log.warn("cannot read the previous identity, retrying", {{"error", loaded.error().describe()}});
    co_await backoff.pause();
  }
}

/// Runs the agent with this store, until cancelled.
Awaitable<> run_agent(AgentProcess& process, klusterlet::LocalStore& store, std::string stored_cluster) {
  auto options = process.options.agent_options();
  const auto known = co_await load_identity(process, store);
  auto& random = process.env.random;
  options.cluster_name = first_of({options.cluster_name, stored_cluster, known.cluster_name, random.uuid()});
  options.agent_name = first_of({options.agent_name, known.agent_name, random.suffix()});
  options.on_change = [&process](const klusterlet::AgentView& view) { process.display.show(view); };
  std::optional<klusterlet::ClusterFactsWatch> facts;
  if (process.own_cluster != nullptr) {
    options.probe = klusterlet::probe_of(process.own_cluster);
    facts.emplace(*process.own_cluster, process.options.facts_options(), process.env);
    options.facts = &*facts;
  }
  options.has_api_server = process.own_cluster != nullptr;
  const klusterlet::Connect connect = [&process](const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
    return kube::make_http_api(config, klusterlet::client_options(config.server, user_agent()), process.loop,
                               process.env);
  };
  process.env.log.info("agent starting", {{"cluster", options.cluster_name}, {"agent", options.agent_name}});
  klusterlet::Agent agent{std::move(options), store, connect, process.env};
  process.display.started();
  auto all = [&](async::TaskScope& scope) -> Awaitable<> {
    if (facts) scope.spawn(facts->run());
    co_await agent.run();
  };
  co_await async::with_scope(all);
}

/// Logs each invalid bootstrap kubeconfig; throws if none is valid.
void check_bootstraps(const klusterlet::LocalStore& store, const obs::Logger& log) {
  std::string problems;
  std::size_t usable = 0;
  for (const auto& bootstrap : store.bootstraps()) {
    try {
      const auto config = bootstrap.parse();
      if (const auto problem = klusterlet::transport_problem(config))
        throw kube::ConfigError(bootstrap.name + ": " + *problem);
      ++usable;
    } catch (const kube::ConfigError& error) {
      log.error("bootstrap kubeconfig rejected", {{"error", error.what()}});
      problems += (problems.empty() ? "" : "; ") + std::string{error.what()};
    }
  }
  if (usable == 0) throw std::runtime_error("no valid bootstrap kubeconfig: " + problems);
}

Awaitable<> work_with_files(AgentProcess& process) {
  klusterlet::FileStore store{process.options.hub_kubeconfig_dir, process.options.bootstrap_kubeconfigs, process.env};
  check_bootstraps(store, process.env.log);
  store.prepare();
  auto all = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(store.run());
    co_await run_agent(process, store, {});
  };
  co_await async::with_scope(all);
}

Awaitable<> work_with_klusterlet(AgentProcess& process) {
  klusterlet::KlusterletStoreOptions options;
  options.klusterlet = process.options.klusterlet_name;
  options.ns = process.options.own_namespace;
  options.cluster_name = process.options.cluster_name;
  klusterlet::KlusterletStore store{*process.own_cluster, std::move(options), process.env};
  auto all = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(store.run());
    auto work = [&](std::string cluster) { return run_agent(process, store, std::move(cluster)); };
    co_await store.follow(work);
  };
  co_await async::with_scope(all);
}

/// One of several replicas works: two would overwrite each other's credential in the one Secret that both use.
Awaitable<> stand_by_and_work(AgentProcess& process, async::Executor loop) {
  auto election = process.options.election_options();
  election.identity = host_name() + "_" + process.env.random.uuid();
  // A client of its own: a renewal must not wait behind other requests.
  const auto api = kube::make_http_api(kube::find_config(process.options.kubeconfig),
                                       klusterlet::own_client_options(user_agent()), std::move(loop), process.env);
  async::Backoff backoff{{}, process.env.clock, process.env.random};
  while (!co_await api->get_path("/version")) {
    process.env.log.warn("cannot reach this cluster's API server, retrying");
    co_await backoff.pause();
  }
  process.display.started();
  kube::LeaderElector elector{*api, std::move(election), process.env};
  auto lead = [&process](kube::LeaderEpoch) { return work_with_klusterlet(process); };
  co_await elector.run(lead);
}

/// The API server of the managed cluster itself. With hubs in files it need not be known: then it is only looked for
/// where it certainly is our own, not in the user's kubeconfig.
std::optional<kube::ClientConfig> own_cluster_config(const KlusterletOptions& options) {
  if (!options.kubeconfig.empty() || !options.from_files()) return kube::find_config(options.kubeconfig);
  if (std::getenv("KUBERNETES_SERVICE_HOST") == nullptr) return std::nullopt;
  return kube::in_cluster_config();
}

Awaitable<> run_process(const KlusterletOptions& options, Observability& observability, kube::Env env) {
  async::LoopPool loops{1};
  AgentDisplay display{observability.metrics(), observability.health()};
  AgentProcess process{options, env, loops.next(), display, nullptr};
  if (auto config = own_cluster_config(options))
    process.own_cluster =
        kube::make_http_api(std::move(*config), klusterlet::own_client_options(user_agent()), process.loop, env);
  else
    env.log.warn("this cluster's API server is not known, so its availability is not reported: use --kubeconfig");
  if (options.from_files())
    co_await work_with_files(process);
  else if (options.leader_elect)
    co_await stand_by_and_work(process, loops.next());
  else
    co_await work_with_klusterlet(process);
}

int run_klusterlet(const KlusterletOptions& options) {
  const auto work = [&](Observability& observability, kube::Env env) {
    return run_process(options, observability, env);
  };
  return run_service({"klusterlet", options.log, options.serving, options.shutdown_grace_period}, work);
}

}  // namespace

AgentDisplay::AgentDisplay(obs::Metrics& metrics, obs::Health& health)
    : hubs_(
          metrics.gauge_family("hubferry_klusterlet_hub_info", "1 for the hub that the agent has joined.", {"server"})),
      expiry_(metrics.gauge("hubferry_klusterlet_certificate_expiry_timestamp_seconds",
                            "Expiry time of the client certificate for the current hub.")),
      rotation_(metrics.gauge("hubferry_klusterlet_certificate_rotation_timestamp_seconds",
                              "Time from which the client certificate for the current hub is renewed.")) {
  // An expired certificate is no reason to be restarted: the agent replaces it, and by a wrong clock each one looks
  // expired.
  health.add_readiness("agent", started_.check());
}

void AgentDisplay::show(const klusterlet::AgentView& view) {
  const bool joined = view.phase == "Joined";
  if (!hub_.empty() && (hub_ != view.hub || !joined)) hubs_.with({hub_}).set(0);
  hub_ = joined ? view.hub : std::string{};
  if (joined) hubs_.with({hub_}).set(1);
  if (!view.certificate_expires) return;
  expiry_.set(seconds_since_1970(*view.certificate_expires));
  if (view.certificate_rotates) rotation_.set(seconds_since_1970(*view.certificate_rotates));
}

void add_klusterlet_command(CommandLine& line) {
  auto& command = line.add("klusterlet", "run the agent of a managed cluster, which selects its hub");
  command.describe(
      "Registers this cluster with the first hub that accepts it, renews its lease there, and switches to the next hub "
      "if the current one denies the cluster or is unreachable. Invalid bootstrap kubeconfigs are skipped; if none is "
      "valid, the command fails. Runs until SIGTERM, SIGINT or SIGHUP.");
  const auto options = std::make_shared<KlusterletOptions>();
  options->add_to(command);
  command.example(
      "hubferry klusterlet --cluster-name c1 --bootstrap-kubeconfig hub1.kubeconfig --bootstrap-kubeconfig "
      "hub2.kubeconfig --hub-kubeconfig-dir /var/lib/hubferry",
      "two hubs, the first one preferred");
  command.example("hubferry klusterlet --kubeconfig own.kubeconfig",
                  "hubs and credentials from the Klusterlet and the Secrets on this cluster");
  command.on_check([options] { options->check(); });
  command.on_run([options] { return run_klusterlet(*options); });
}

}  // namespace hubferry::app
