#include <iostream>
#include <memory>

#include "app/cli/common_flags.hpp"
#include "app/commands/commands.hpp"
#include "app/manager/manager_controllers.hpp"
#include "app/manager/manager_options.hpp"
#include "app/service/service.hpp"
#include "app/status/migration_json.hpp"
#include "hubferry/async/backoff.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/kube/leader_election.hpp"
#include "hubferry/obs/build_info.hpp"
#include "hubferry/ui/console.hpp"
#include "hubferry/ui/feed.hpp"

namespace hubferry::app {

namespace {

kube::LeaderElectionOptions election_options(const ManagerOptions& options, async::Random& random) {
  kube::LeaderElectionOptions election;
  election.name = options.lease_name;
  election.ns = options.lease_namespace.empty() ? options.effective_namespace() : options.lease_namespace;
  // A restarted container keeps its host name, but is another process: the UUID tells them apart in the Lease.
  election.identity = host_name() + "_" + random.uuid();
  election.lease_duration = options.lease_duration;
  election.renew_deadline = options.renew_deadline;
  election.retry_period = options.retry_period;
  return election;
}

/// The Lease has a client of its own: renewals must not wait behind other requests, for the rate limit or a connection.
kube::HttpApiOptions lease_client_options(const ManagerOptions& options) {
  auto client = client_options(options, "global");
  client.qps = 0;
  client.max_connections = 2;
  return client;
}

/// Without --leader-elect the manager is meant to be the only one. It takes the Lease all the same, so that two of them
/// notice each other: the one that finds it renewed by another waits, and says so. It need not wait for long where its
/// predecessor crashed.
void expect_no_other(kube::LeaderElectionOptions& election, const kube::Env& env, obs::CheckState& alone) {
  // A live manager renews every period.
  election.takeover_after = 3 * election.retry_period;
  election.return_to_standby = true;
  auto& other = other_manager(env.metrics);
  const std::string lease = election.ns + "/" + election.name;
  election.on_leader_change = [&alone, &other, lease, log = env.log,
                               identity = election.identity](const std::string& leader) {
    const bool is_other = !leader.empty() && leader != identity;
    other.set(is_other ? 1 : 0);
    if (!is_other) {
      alone.pass();
      return;
    }
    alone.fail("another manager, " + leader + ", has the Lease " + lease);
    log.warn("another manager has the Lease, waiting: run several replicas with --leader-elect",
             {{"leader", leader}, {"lease", lease}});
  };
}

/// False, with a warning, if there can be no Lease: no right to it, or no such namespace. Only for a manager without
/// --leader-elect: it works without.
async::Awaitable<bool> can_have_lease(kube::Api& api, std::string ns, std::string name, kube::Env env) {
  async::Backoff backoff{{}, env.clock, env.random};
  while (true) {
    auto found = co_await api.get(kube::resources::leases, {ns, name});
    const bool missing = !found && found.error().kind == kube::ErrorKind::not_found;
    if (missing) found = co_await api.get(kube::resources::namespaces, {{}, ns});
    // An account that may read the Lease, but not the namespace, got that right in the namespace: it exists.
    const bool hidden = missing && !found && found.error().kind == kube::ErrorKind::forbidden;
    if (found || hidden) co_return true;
    if (!kube::is_transient(found.error().kind)) {
      env.log.warn("Lease cannot be used: another manager would not be noticed",
                   {{"lease", ns + "/" + name}, {"error", found.error().describe()}});
      co_return false;
    }
    co_await backoff.pause();
  }
}

std::string version_of(const kube::json::value& answer) {
  return answer.is_object() ? std::string{kube::string_at(answer.get_object(), {"gitVersion"})} : "unknown";
}

/// Waits until the global hub responds, without a timeout: a controller may start before its API server.
async::Awaitable<> wait_for_global_hub(kube::Api& api, kube::Env env) {
  async::Backoff backoff{{}, env.clock, env.random};
  while (true) {
    auto version = co_await api.get_path("/version");
    if (version) {
      env.log.info("connected to the global hub", {{"version", version_of(*version)}});
      co_return;
    }
    env.log.warn("cannot reach the global hub, retrying", {{"error", version.error().describe()}});
    co_await backoff.pause();
  }
}

struct Checks {
  Checks() { alone.pass(); }

  obs::CheckState reached{"the global hub has not responded yet"};
  obs::CheckState alone{"not checked yet"};
};

/// The manager's work, until cancelled. A standby is ready without synced caches; only the leader needs them.
async::Awaitable<> work(ControllerSurroundings around, Controllers& controllers, Checks& checks) {
  co_await wait_for_global_hub(around.global, around.env);
  checks.reached.pass();
  const auto lease_api =
      kube::make_http_api(around.global_config, lease_client_options(around.options), around.loops.next(), around.env);
  auto election = election_options(around.options, around.env.random);
  if (!around.options.leader_elect) {
    expect_no_other(election, around.env, checks.alone);
    const bool usable = co_await can_have_lease(*lease_api, election.ns, election.name, around.env);
    if (!usable) {
      co_await controllers.run(around);
      co_return;
    }
  }
  kube::LeaderElector elector{*lease_api, std::move(election), around.env};
  around.fence = &elector;
  auto lead = [&](kube::LeaderEpoch) { return controllers.run(around); };
  co_await elector.run(lead);
}

/// `config` and `loops`: of the global hub, which reviews tokens.
ui::ConsoleOptions console_options(const ManagerOptions& options, const kube::ClientConfig& config,
                                   async::LoopPool& loops, const kube::Env& env) {
  ui::ConsoleOptions console;
  console.address = options.ui.address;
  console.log = env.log.named("ui");
  console.describe = migration_json;
  console.version = obs::build_info().version;
  console.watch_namespace = options.watch_namespace;
  if (options.ui.auth == "token")
    console.access_api = kube::make_http_api(config, client_options(options, "global"), loops.next(), env);
  return console;
}

/// Runs `work` beside the page, if that is on. Every replica serves it, not only the leader.
async::Awaitable<> with_console(ui::Console& console, ControllerSurroundings& around, async::Awaitable<> work) {
  if (!console.enabled()) {
    co_await std::move(work);
    co_return;
  }
  try {
    console.listen();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string{error.what()} + " (--ui-bind-address)");
  }
  around.env.log.info("serving the page", {{"url", console.url()}, {"auth", around.options.ui.auth}});
  ui::Feed feed{around.global, console, around.options.watch_namespace, around.env};
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(console.run());
    scope.spawn(feed.run());
    co_await std::move(work);
    scope.stop();
  };
  co_await async::with_scope(body);
}

async::Awaitable<> manage(const ManagerOptions& options, Observability& observability, kube::Env env) {
  async::LoopPool loops{options.effective_threads()};
  const auto config = kube::find_config(options.kubeconfig);
  const auto api = kube::make_http_api(config, client_options(options, "global"), loops.next(), env);
  Checks checks;
  observability.health().add_readiness("global-hub", checks.reached.check());
  if (!options.leader_elect) observability.health().add_readiness("only-manager", checks.alone.check());
  Controllers controllers{options, observability.health()};
  ui::Console console{observability.loop(), env.clock, env.metrics, console_options(options, config, loops, env)};
  ControllerSurroundings around{options, *api, config, loops, env, read_carried_resources(options.carried_resources),
                                nullptr, {},   {}};
  if (console.enabled()) {
    console.put_hub_server("global", config.server);
    around.on_arrival = [&console](const kube::Key& migration, const std::string& cluster) {
      console.arrive(migration, cluster);
    };
    around.on_connect = [&console](const std::string& hub, const std::string& server) {
      console.put_hub_server(hub, server);
    };
  }
  co_await with_console(console, around, work(around, controllers, checks));
}

int run_manager(const ManagerOptions& options) {
  if (!options.print_phases.empty()) {
    std::cout << render_phases(options, options.print_phases);
    return 0;
  }
  const auto work = [&](Observability& observability, kube::Env env) { return manage(options, observability, env); };
  return run_service({"manager", options.log, options.serving, options.shutdown_grace_period}, work);
}

}  // namespace

void add_manager_command(CommandLine& line) {
  auto& command = line.add("manager", "run the controllers that migrate clusters between hubs");
  command.describe(
      "Watches ManagedClusterMigrations on the global hub and runs them. SIGTERM, SIGINT or SIGHUP starts a graceful "
      "shutdown; a second signal exits immediately.");
  const auto options = std::make_shared<ManagerOptions>();
  options->add_to(command);
  command.example("hubferry manager --leader-elect", "in a cluster, with several replicas");
  command.example("hubferry manager --kubeconfig global.kubeconfig --log-format text --log-level debug",
                  "from a shell, with a kubeconfig");
  command.example("HUBFERRY_METRICS_BIND_ADDRESS=127.0.0.1:9090 hubferry manager --health-probe-bind-address 0",
                  "metrics on the loopback interface only, no probes");
  command.example("hubferry manager --kubeconfig global.kubeconfig --ui-bind-address 127.0.0.1:8082",
                  "with the page that shows migrations live");
  command.on_check([options] { options->check(); });
  command.on_run([options] { return run_manager(*options); });
}

}  // namespace hubferry::app
