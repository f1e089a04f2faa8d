#pragma once

#include <functional>
#include <string>

#include "app/cli/common_flags.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/obs/health.hpp"
#include "hubferry/obs/http_server.hpp"
#include "hubferry/obs/loop_pulse.hpp"
#include "hubferry/obs/metrics.hpp"

namespace hubferry::app {

/// Metrics and health of a long-running command, each served on its own address.
///
/// The servers have their own loop and thread: scrapes and probes take no time from the control loop, and /livez fails
/// if the control loop is stuck.
class Observability {
 public:
  Observability(async::Clock& clock, const obs::Logger& log, const ServingFlags& flags);

  obs::Metrics& metrics() { return metrics_; }
  obs::Health& health() { return health_; }

  /// Opens the ports. Throws std::runtime_error, which names the flag and the address.
  void listen();

  /// The servers' loop, for others of the kind.
  [[nodiscard]] const async::Executor& loop() const { return loop_; }

  /// The ports, after listen().
  [[nodiscard]] std::uint16_t metrics_port() const { return metrics_server_.port(); }
  [[nodiscard]] std::uint16_t health_port() const { return health_server_.port(); }

  /// Serves until cancelled. Must run on the control loop: its pulse is the liveness check.
  async::Awaitable<> serve();

 private:
  async::Awaitable<> serve_one(obs::HttpServer& server);
  void listen_one(obs::HttpServer& server, const std::string& what, const std::string& flag,
                  const std::string& address);

  obs::Logger log_;
  ServingFlags flags_;
  obs::Metrics metrics_;
  obs::Health health_;
  obs::LoopPulse pulse_;
  async::LoopPool loops_;
  async::Executor loop_;
  obs::HttpServer metrics_server_;
  obs::HttpServer health_server_;
};

/// Options of a long-running command.
struct ServiceOptions {
  std::string name;  // of its logger
  const LogFlags& log;
  const ServingFlags& serving;
  async::Duration shutdown_grace_period;
};

/// The work of a service, until it is cancelled. The health checks that it adds must be able to outlive it.
using ServiceWork = std::function<async::Awaitable<>(Observability&, kube::Env)>;

/// Runs `work` with logs, metrics and health until SIGTERM, SIGINT or SIGHUP, and returns the exit code. Shutdown is in
/// reverse order of startup: probes and scrapes are answered until the work has stopped.
int run_service(const ServiceOptions& options, const ServiceWork& work);

/// The host's name: in a cluster, that of the pod.
std::string host_name();

}  // namespace hubferry::app
