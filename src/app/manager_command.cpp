#include <atomic>
#include <memory>

#include "app/commands.hpp"
#include "app/host_name.hpp"
#include "app/manager_controllers.hpp"
#include "app/manager_options.hpp"
#include "app/observability.hpp"
#include "hubferry/async/backoff.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/async/shutdown.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/kube/leader_election.hpp"
#include "hubferry/obs/build_info.hpp"
#include "hubferry/obs/log.hpp"

namespace hubferry::app {

namespace {

// So that the words before an abrupt end get out; not so long that a blocked log delays that end.
constexpr auto last_words_wait = std::chrono::milliseconds(200);

kube::LeaderElectionOptions election_options(const ManagerOptions& options, async::Random& random) {
  kube::LeaderElectionOptions election;
  election.name = options.lease_name;
  election.ns = options.lease_namespace.empty() ? options.effective_namespace() : options.lease_namespace;
  // A restarted container has its predecessor's host name; the lease must not take it for the same process.
  election.identity = host_name() + "_" + random.uuid();
  election.lease_duration = options.lease_duration;
  election.renew_deadline = options.renew_deadline;
  election.retry_period = options.retry_period;
  return election;
}

std::string version_of(const kube::json::value& answer) {
  return answer.is_object() ? std::string{kube::string_at(answer.get_object(), {"gitVersion"})} : "unknown";
}

/// Waits until the global hub answers, however long that takes: a controller may start before its server.
async::Awaitable<> reach(kube::Api& api, kube::Env env) {
  async::Backoff backoff{{}, env.clock, env.random};
  while (true) {
    auto version = co_await api.get_path("/version");
    if (version) {
      env.log.info("reached the global hub", {{"version", version_of(*version)}});
      co_return;
    }
    env.log.warn("cannot reach the global hub yet", {{"error", version.error().describe()}});
    co_await backoff.pause();
  }
}

/// The manager's work, until cancelled. Who does not lead is ready to: it needs to know nothing for that.
async::Awaitable<> work(ControllerSurroundings around, std::atomic<bool>& reached) {
  co_await reach(around.global, around.env);
  reached = true;
  if (!around.options.leader_elect) {
    co_await run_controllers(around);
    co_return;
  }
  kube::LeaderElector elector{around.global, election_options(around.options, around.env.random), around.env};
  auto in_office = [&](kube::LeaderEpoch) { return run_controllers(around); };
  co_await elector.run(in_office);
}

/// The manager's life from start to stop. What is started first is stopped last: probes and scrapes are answered
/// while the rest winds down.
async::Awaitable<int> manage(const ManagerOptions& options, Observability& observability, kube::Env env,
                             async::Event& stop) {
  async::LoopPool loops{options.effective_threads()};
  const auto config = kube::find_config(options.kubeconfig);
  const auto api = kube::make_http_api(config, client_options(options, "global"), loops.next(), env);
  std::atomic<bool> reached = false;
  observability.health().add_readiness("global-hub", [&reached]() -> std::optional<std::string> {
    if (reached) return std::nullopt;
    return "the global hub has not answered yet";
  });
  obs::CheckState caches{"nothing runs yet"};
  caches.pass();  // until there is something to wait for
  observability.health().add_readiness("caches", caches.check());
  const ControllerSurroundings around{options, *api, config, loops, env, caches};

  auto life = [&](async::TaskScope& serving) -> async::Awaitable<> {
    serving.spawn(observability.serve());
    auto working = [&](async::TaskScope& workers) -> async::Awaitable<> {
      workers.spawn(work(around, reached));
      co_await stop.wait();
      observability.health().set_stopping();
      env.log.info("stopping: no longer ready");
      workers.stop();
    };
    co_await async::with_scope(working);
    serving.stop();
  };
  co_await async::with_scope(life);
  env.log.info("stopped");
  co_return 0;
}

int run_manager(const ManagerOptions& options) {
  async::RealClock clock;
  obs::LogSink sink{options.log.sink_options()};
  const auto log = sink.logger().named("manager");
  const auto& build = obs::build_info();
  log.info("starting", {{"version", build.version}, {"revision", build.revision}});
  try {
    Observability observability{clock, log, options.serving};
    observability.listen();
    auto random = async::Random::from_entropy();
    const kube::Env env{clock, random, observability.metrics(), log};
    const auto body = [&](async::Event& stop) { return manage(options, observability, env, stop); };
    const auto say = [&](const std::string& sentence) {
      log.info(sentence);
      sink.flush(last_words_wait);
    };
    async::ShutdownPolicy policy;
    policy.grace = options.shutdown_grace_period;
    policy.say = say;
    return async::run_main(body, policy);
  } catch (...) {
    log.error("the manager failed", {{"error", std::current_exception()}});
    return 1;
  }
}

}  // namespace

void add_manager_command(CommandLine& line) {
  auto& command = line.add("manager", "run the controllers that move clusters between hubs");
  command.describe(
      "Watches migrations on the global hub and carries them out. Runs until SIGTERM or SIGINT, then finishes in "
      "order; a second signal ends it at once.");
  const auto options = std::make_shared<ManagerOptions>();
  options->add_to(command);
  command.example("hubferry manager --leader-elect", "in a cluster, with several replicas");
  command.example("hubferry manager --kubeconfig global.kubeconfig --log-format text --log-level debug",
                  "from a shell, against the cluster of a kubeconfig");
  command.example("HUBFERRY_METRICS_BIND_ADDRESS=127.0.0.1:9090 hubferry manager --health-probe-bind-address 0",
                  "metrics on the loopback interface only, no probes");
  command.on_check([options] { options->check(); });
  command.on_run([options] { return run_manager(*options); });
}

}  // namespace hubferry::app
