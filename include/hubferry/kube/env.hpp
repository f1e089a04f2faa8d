#pragma once

#include "hubferry/async/clock.hpp"
#include "hubferry/async/random.hpp"
#include "hubferry/obs/log.hpp"
#include "hubferry/obs/metrics.hpp"

namespace hubferry::kube {

/// The dependencies that every long-lived component gets injected, so that a test can replace them.
/// Lifetime: the references outlive all components that use them.
struct Env {
  async::Clock& clock;
  async::Random& random;
  obs::Metrics& metrics;
  obs::Logger log;
};

}  // namespace hubferry::kube
