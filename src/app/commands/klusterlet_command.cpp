#include <memory>

#include "app/commands/commands.hpp"
#include "app/commands/klusterlet_options.hpp"
#include "app/service/agent_display.hpp"
#include "app/service/service.hpp"
#include "hubferry/async/backoff.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/klusterlet/file_store.hpp"
#include "hubferry/klusterlet/klusterlet_store.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/obs/build_info.hpp"

namespace hubferry::app {

namespace {

using async::Awaitable;

kube::HttpApiOptions client_options(std::string name) {
  kube::HttpApiOptions client;
  client.name = std::move(name);
  client.user_agent = "hubferry-klusterlet/" + std::string{obs::build_info().version};
  // The agent has retries of its own, and a hub that does not answer must be noticed soon.
  client.request_timeout = std::chrono::seconds{15};
  client.max_retries = 1;
  client.max_connections = 4;
  return client;
}

/// Everything that the process holds while it runs.
struct Life {
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

/// Who we are from before, however often it takes to read it: to take a failure for "nobody yet" would make a second
/// identity for the same cluster.
Awaitable<klusterlet::HubSecret> load_identity(Life& life, klusterlet::LocalStore& store) {
  async::Backoff backoff{{}, life.env.clock, life.env.random};
  while (true) {
    auto loaded = co_await store.load();
    if (loaded) co_return loaded->value_or(klusterlet::HubSecret{});
    life.env.log.warn("the identity of before cannot be read, trying again", {{"error", loaded.error().describe()}});
    co_await backoff.pause();
  }
}

/// Runs the agent on a store, until cancelled.
Awaitable<> run_agent(Life& life, klusterlet::LocalStore& store, std::string stored_cluster) {
  auto options = life.options.agent_options();
  const auto known = co_await load_identity(life, store);
  auto& random = life.env.random;
  options.cluster_name = first_of({options.cluster_name, stored_cluster, known.cluster_name, random.uuid()});
  options.agent_name = first_of({options.agent_name, known.agent_name, random.suffix()});
  options.on_change = [&life](const klusterlet::AgentView& view) { life.display.show(view); };
  if (life.own_cluster != nullptr) options.probe = klusterlet::probe_of(life.own_cluster);
  const klusterlet::Connect connect = [&life](const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
    return kube::make_http_api(config, client_options(config.server), life.loop, life.env);
  };
  life.env.log.info("this is the agent", {{"cluster", options.cluster_name}, {"agent", options.agent_name}});
  klusterlet::Agent agent{std::move(options), store, connect, life.env};
  life.display.started();
  co_await agent.run();
}

/// Throws when no bootstrap kubeconfig can be used; complains of single ones.
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
      log.error("a bootstrap kubeconfig cannot be used", {{"error", error.what()}});
      problems += (problems.empty() ? "" : "; ") + std::string{error.what()};
    }
  }
  if (usable == 0) throw std::runtime_error("no bootstrap kubeconfig can be used: " + problems);
}

Awaitable<> work_with_files(Life& life) {
  klusterlet::FileStore store{life.options.hub_kubeconfig_dir, life.options.bootstrap_kubeconfigs, life.env};
  check_bootstraps(store, life.env.log);
  store.prepare();
  auto all = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(store.run());
    co_await run_agent(life, store, {});
  };
  co_await async::with_scope(all);
}

Awaitable<> work_with_klusterlet(Life& life) {
  klusterlet::KlusterletStoreOptions options;
  options.klusterlet = life.options.klusterlet_name;
  options.ns = life.options.own_namespace;
  klusterlet::KlusterletStore store{*life.own_cluster, std::move(options), life.env};
  auto all = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(store.run());
    co_await store.wait_ready();
    co_await run_agent(life, store, store.cluster_name());
  };
  co_await async::with_scope(all);
}

Awaitable<> live(const KlusterletOptions& options, Observability& observability, kube::Env env) {
  async::LoopPool loops{1};
  AgentDisplay display{observability.metrics(), observability.health(), env.clock};
  Life life{options, env, loops.next(), display, nullptr};
  if (!options.kubeconfig.empty() || !options.from_files())
    life.own_cluster =
        kube::make_http_api(kube::find_config(options.kubeconfig), client_options("own"), life.loop, env);
  if (options.from_files())
    co_await work_with_files(life);
  else
    co_await work_with_klusterlet(life);
}

int run_klusterlet(const KlusterletOptions& options) {
  const auto work = [&](Observability& observability, kube::Env env) { return live(options, observability, env); };
  return run_service({"klusterlet", options.log, options.serving, options.shutdown_grace_period}, work);
}

}  // namespace

void add_klusterlet_command(CommandLine& line) {
  auto& command = line.add("klusterlet", "run the agent of a managed cluster, which chooses its hub");
  command.describe(
      "Registers this cluster with the first of its hubs that takes it, stays in touch with that hub, and goes to the "
      "next one when it is denied or the hub is lost. A bootstrap kubeconfig that cannot be used is passed over; when "
      "none can, the command fails. Runs until SIGTERM, SIGINT or SIGHUP.");
  const auto options = std::make_shared<KlusterletOptions>();
  options->add_to(command);
  command.example(
      "hubferry klusterlet --cluster-name c1 --bootstrap-kubeconfig hub1.kubeconfig --bootstrap-kubeconfig "
      "hub2.kubeconfig --hub-kubeconfig-dir /var/lib/hubferry",
      "two hubs, the first one preferred");
  command.example("hubferry klusterlet --kubeconfig own.kubeconfig",
                  "hubs and credentials as Klusterlet and Secrets on this cluster say");
  command.on_check([options] { options->check(); });
  command.on_run([options] { return run_klusterlet(*options); });
}

}  // namespace hubferry::app
