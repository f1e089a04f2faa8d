#pragma once

#include <functional>
#include <memory>

#include "hubferry/kube/api.hpp"
#include "hubferry/sim/faults.hpp"

namespace hubferry::worlds {

/// What is wrong between a group of clients and one server.
struct Wire {
  explicit Wire(async::Random random) : faults(random) {}

  sim::Faults faults;
  bool down = false;
  bool stalled = false;   // no event arrives; the watches break when it is over
  bool repeats = false;   // events arrive twice
  bool reorders = false;  // events of different objects arrive in another order
  int generation = 0;     // of breaks: watches of an older one are broken
  /// Somebody acts just before a request arrives. Empty: nobody.
  std::function<async::Awaitable<>(const kube::Request&)> before_arrival = {};
};

/// A connection with the faults of `wire`. `spawn` runs what is still on its way to the server when its sender has
/// given up. Lifetime: `wire` and `clock` outlive it.
std::shared_ptr<kube::Api> make_faulty_api(std::shared_ptr<kube::Api> inner, Wire& wire, async::Clock& clock,
                                           std::function<void(async::Awaitable<>)> spawn);

}  // namespace hubferry::worlds
