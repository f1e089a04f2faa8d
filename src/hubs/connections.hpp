#pragma once

#include <map>
#include <memory>
#include <string>

#include "hubferry/hubagent/hub.hpp"
#include "hubferry/hubs/hubs.hpp"
#include "hubs/observed_api.hpp"

namespace hubferry::hubs {

using async::Awaitable;
using hubagent::Error;
using hubagent::FailureReason;
using hubagent::Result;

/// A connection of which is known whether the hub answers.
struct WatchedConnection : Connection {
  bool answers = true;
  async::WaitList silent;  // woken when it does not
  std::shared_ptr<ObservedApi> api;
};

/// A connection whose operations run on `hub` directly; `reachable` shows whether the hub answered the last one.
std::shared_ptr<WatchedConnection> make_connection(const std::shared_ptr<hubagent::Hub>& hub, obs::Gauge& reachable,
                                                   std::shared_ptr<ObservedApi> api, Troubles& troubles);

/// Watches the hub's clusters until the connection is closed. A fault boundary: an exception is logged, the hub counts
/// as unreachable, and the watch is restarted after a backoff. One hub must not end the manager.
Awaitable<> watch_clusters(std::shared_ptr<hubagent::Hub> hub, std::shared_ptr<WatchedConnection> connection);

/// The current connection to each hub.
class Connections {
 public:
  /// Replaces the hub's connection, and closes the previous one.
  void put(const std::string& hub, std::shared_ptr<Connection> connection);
  /// Closes a hub's connection; from now on find() returns `why`.
  void drop(const std::string& hub, std::string why);
  void drop_all(const std::string& why);
  /// Errors: hub_unreachable, with the reason given to drop().
  [[nodiscard]] Result<std::shared_ptr<Connection>> find(const std::string& hub) const;
  [[nodiscard]] std::size_t open() const { return open_; }

 private:
  struct Entry {
    std::shared_ptr<Connection> connection;
    std::string why_not;
  };
  std::map<std::string, Entry, std::less<>> entries_;
  std::size_t open_ = 0;
};

}  // namespace hubferry::hubs
