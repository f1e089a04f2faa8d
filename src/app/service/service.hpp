#pragma once

#include <functional>

#include "app/cli/log_flags.hpp"
#include "app/service/observability.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::app {

/// How a command runs that goes on until it is told to stop.
struct ServiceOptions {
  std::string name;  // as it calls itself in its log
  const LogFlags& log;
  const ServingFlags& serving;
  async::Duration shutdown_grace_period;
};

/// What a service does, until it is cancelled. Health checks that it adds must be able to outlive it.
using ServiceWork = std::function<async::Awaitable<>(Observability&, kube::Env)>;

/// Runs `work`, with log, metrics and health, until SIGTERM, SIGINT or SIGHUP; returns the exit code. What is started
/// first is stopped last: probes and scrapes are answered while the rest winds down.
int run_service(const ServiceOptions& options, const ServiceWork& work);

}  // namespace hubferry::app
