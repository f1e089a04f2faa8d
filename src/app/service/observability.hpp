#pragma once

#include "app/cli/command.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/obs/health.hpp"
#include "hubferry/obs/http_server.hpp"
#include "hubferry/obs/loop_pulse.hpp"
#include "hubferry/obs/metrics.hpp"

namespace hubferry::app {

/// --metrics-bind-address and --health-probe-bind-address.
struct ServingFlags {
  std::string metrics_address = ":8080";
  std::string health_address = ":8081";

  void add_to(Command& command);
};

/// What every command that runs for long shows of itself: metrics and health, each on its own address.
///
/// The servers have a loop and thread of their own: scrapes and probes take no time from the control loop, and a
/// control loop that is stuck is told so by /livez.
class Observability {
 public:
  Observability(async::Clock& clock, const obs::Logger& log, const ServingFlags& flags);

  obs::Metrics& metrics() { return metrics_; }
  obs::Health& health() { return health_; }

  /// Opens the ports. Throws std::runtime_error that names the flag and the address.
  void listen();

  /// Where they listen; after listen().
  [[nodiscard]] std::uint16_t metrics_port() const { return metrics_server_.port(); }
  [[nodiscard]] std::uint16_t health_port() const { return health_server_.port(); }

  /// Serves until cancelled. Runs on the control loop, whose pulse it is that /livez feels.
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

}  // namespace hubferry::app
