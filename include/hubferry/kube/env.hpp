#pragma once

#include "hubferry/async/clock.hpp"
#include "hubferry/async/random.hpp"
#include "hubferry/obs/log.hpp"
#include "hubferry/obs/metrics.hpp"

namespace hubferry::kube {

/// What every long-lived part gets from outside, so that a test can give it another world.
/// Lifetime: the references outlive everybody who got them.
struct Env {
  async::Clock& clock;
  async::Random& random;
  obs::Metrics& metrics;
  obs::Logger log;
};

}  // namespace hubferry::kube
