#include "app/service/service.hpp"

#include <unistd.h>

#include <array>

#include "hubferry/async/shutdown.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/obs/build_info.hpp"
#include "hubferry/obs/log.hpp"
#include "hubferry/obs/metrics_page.hpp"

namespace hubferry::app {

namespace {

// Lets the last log lines out before an abrupt exit, without a blocked log delaying it.
constexpr auto last_flush_timeout = std::chrono::milliseconds(200);

async::Awaitable<int> serve_until_stopped(const ServiceWork& work, Observability& observability, kube::Env env,
                                          async::Event& stop) {
  auto life = [&](async::TaskScope& serving) -> async::Awaitable<> {
    serving.spawn(observability.serve());
    auto working = [&](async::TaskScope& workers) -> async::Awaitable<> {
      workers.spawn(work(observability, env));
      co_await stop.wait();
      observability.health().set_stopping();
      env.log.info("stopping, no longer ready");
      workers.stop();
    };
    co_await async::with_scope(working);
    serving.stop();
  };
  co_await async::with_scope(life);
  env.log.info("stopped");
  co_return 0;
}

obs::HttpServer::Options server_options(const std::string& address, const obs::Logger& log) {
  obs::HttpServer::Options options;
  options.address = address;
  options.log = log;
  return options;
}

}  // namespace

Observability::Observability(async::Clock& clock, const obs::Logger& log, const ServingFlags& flags)
    : log_(log),
      flags_(flags),
      pulse_(clock),
      loops_(1),
      loop_(loops_.next()),
      metrics_server_(loop_, clock, server_options(flags.metrics_address, log.named("metrics")),
                      obs::metrics_handler(metrics_)),
      health_server_(loop_, clock, server_options(flags.health_address, log.named("health")), health_.handler()) {
  obs::add_process_metrics(metrics_);
  obs::add_build_info(metrics_);
  health_.add_liveness("loop", pulse_.check());
}

void Observability::listen() {
  listen_one(metrics_server_, "metrics", "--metrics-bind-address", flags_.metrics_address);
  listen_one(health_server_, "health probes", "--health-probe-bind-address", flags_.health_address);
}

void Observability::listen_one(obs::HttpServer& server, const std::string& what, const std::string& flag,
                               const std::string& address) {
  if (!server.enabled()) {
    log_.info("not serving " + what, {{"flag", flag}});
    return;
  }
  try {
    server.listen();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string(error.what()) + " (" + flag + ")");
  }
  log_.info("serving " + what, {{"address", address}, {"port", server.port()}});
}

async::Awaitable<> Observability::serve() {
  auto all = [this](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(serve_one(metrics_server_));
    scope.spawn(serve_one(health_server_));
    co_await pulse_.run();
  };
  co_await async::with_scope(all);
}

async::Awaitable<> Observability::serve_one(obs::HttpServer& server) {
  auto run = [&server] { return server.run(); };
  co_await async::run_on(loop_, run);
}

int run_service(const ServiceOptions& options, const ServiceWork& work) {
  async::RealClock clock;
  obs::LogSink sink{options.log.sink_options()};
  const auto log = sink.logger().named(options.name);
  const auto& build = obs::build_info();
  log.info("starting", {{"version", build.version}, {"revision", build.revision}});
  try {
    Observability observability{clock, log, options.serving};
    observability.listen();
    auto random = async::Random::from_entropy();
    const kube::Env env{clock, random, observability.metrics(), log};
    const auto body = [&](async::Event& stop) { return serve_until_stopped(work, observability, env, stop); };
    async::ShutdownPolicy policy;
    policy.grace = options.shutdown_grace_period;
    policy.say = [&](const std::string& message) {
      log.info(message);
      sink.flush(last_flush_timeout);
    };
    return async::run_main(body, policy);
  } catch (...) {
    log.error(options.name + " failed", {{"error", std::current_exception()}});
    return 1;
  }
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace hubferry::app
