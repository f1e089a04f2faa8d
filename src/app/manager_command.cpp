#include <memory>

#include "app/commands.hpp"
#include "app/manager_options.hpp"
#include "app/observability.hpp"
#include "hubferry/async/shutdown.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/obs/build_info.hpp"
#include "hubferry/obs/log.hpp"

namespace hubferry::app {

namespace {

// So that the words before an abrupt end get out; not so long that a blocked log delays that end.
constexpr auto last_words_wait = std::chrono::milliseconds(200);

/// The manager's life from start to stop. What is started first is stopped last: probes and scrapes are answered
/// while the rest winds down.
async::Awaitable<int> manage(const ManagerOptions& options, Observability& observability, obs::Logger log,
                             async::Event& stop) {
  auto life = [&](async::TaskScope& serving) -> async::Awaitable<> {
    serving.spawn(observability.serve());
    log.warn("this build contains no controllers: only metrics and health are served",
             {{"namespace", options.effective_namespace()}});
    co_await stop.wait();

    observability.health().set_stopping();
    log.info("stopping: no longer ready");
    serving.stop();
  };
  co_await async::with_scope(life);
  log.info("stopped");
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
    const auto body = [&](async::Event& stop) { return manage(options, observability, log, stop); };
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
