#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hubferry/async/clock.hpp"

namespace hubferry::app {

/// The network of one pod: everything that goes to its address passes here, and may be cut while the pod lives on.
/// Executor: one loop. Lifetime: run() may outlast it, and ends then.
class PodProxy {
 public:
  /// Forwards `ports` of `address` to the same ports of `server`. Throws boost::system::system_error.
  PodProxy(const async::Executor& executor, const std::string& address, const std::string& server,
           const std::vector<std::uint16_t>& ports, async::Clock& clock);
  PodProxy(const PodProxy&) = delete;
  PodProxy& operator=(const PodProxy&) = delete;
  /// Closes all connections.
  ~PodProxy();

  /// Serves until cancelled, or until the proxy is destroyed.
  [[nodiscard]] async::Awaitable<> run() const;
  /// From now on no byte passes; connections stay open.
  void cut();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hubferry::app
