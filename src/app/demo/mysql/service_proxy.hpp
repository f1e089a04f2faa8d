#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hubferry/kube/cache.hpp"

namespace hubferry::app {

/// Stands in for kube-proxy: a local port that leads to the endpoints of a Service, as its EndpointSlice names them
/// now. A new connection goes to the first endpoint, and is closed at once if there is none. Connections that are open
/// stay where they are when the endpoints change, as they do in Kubernetes. Executor: one loop. Lifetime: outlives
/// run().
class ServiceProxy {
 public:
  ServiceProxy(kube::Api& api, kube::Key service, async::Executor executor, const kube::Env& env);
  ServiceProxy(const ServiceProxy&) = delete;
  ServiceProxy& operator=(const ServiceProxy&) = delete;
  ~ServiceProxy();

  /// On 127.0.0.1; known from the beginning.
  [[nodiscard]] std::uint16_t port() const;
  /// Serves until cancelled.
  async::Awaitable<> run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::app
