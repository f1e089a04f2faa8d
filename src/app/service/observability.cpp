#include "app/service/observability.hpp"

#include "hubferry/async/task_scope.hpp"
#include "hubferry/obs/bind_address.hpp"
#include "hubferry/obs/metrics_page.hpp"

namespace hubferry::app {

namespace {

Flag address_flag(std::string& target, std::string name, std::string help) {
  return {.name = std::move(name),
          .placeholder = "ADDRESS",
          .help = std::move(help),
          .default_text = target,
          .apply =
              [&target](const std::string& text) {
                obs::parse_bind_address(text);
                target = text;
              },
          .short_name = ""};
}

obs::HttpServer::Options server_options(const std::string& address, const obs::Logger& log) {
  obs::HttpServer::Options options;
  options.address = address;
  options.log = log;
  return options;
}

}  // namespace

void ServingFlags::add_to(Command& command) {
  command.add(address_flag(metrics_address, "metrics-bind-address",
                           "Where /metrics is served: HOST:PORT, or 0 to switch it off."));
  command.add(address_flag(health_address, "health-probe-bind-address",
                           "Where /livez, /readyz and /healthz are served: HOST:PORT, or 0 to switch it off."));
}

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

}  // namespace hubferry::app
