#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/hubagent/agents.hpp"

namespace hubferry::hubs {

using async::Awaitable;
using kube::Error;
using kube::ErrorKind;
using kube::Result;

/// One way to a hub, with the agents that use it. Whoever gives an order holds it until the order has ended.
struct Connection {
  Connection(std::shared_ptr<hubagent::Hub> to, obs::Gauge& answers)
      : hub(std::move(to)),
        source(hubagent::make_source_hub(hub)),
        target(hubagent::make_target_hub(hub)),
        reachable(answers) {}

  /// Notes what an order's end says about the hub.
  void note(bool answered) {
    if (!closed.is_set()) reachable.set(answered ? 1 : 0);
  }

  std::shared_ptr<hubagent::Hub> hub;
  std::shared_ptr<hubagent::SourceHub> source;
  std::shared_ptr<hubagent::TargetHub> target;
  obs::Gauge& reachable;  // did the hub answer when it was last asked?
  async::Event closed;    // another has taken its place, or none
};

/// Where orders find the connection of the moment.
class Connections {
 public:
  void put(const std::string& hub, std::shared_ptr<Connection> connection);
  /// Closes a hub's connection; from now on asking for it gives `why`.
  void drop(const std::string& hub, std::string why);
  void drop_all(const std::string& why);
  /// Errors: unreachable, with the reason that was given.
  [[nodiscard]] Result<std::shared_ptr<Connection>> find(const std::string& hub) const;
  [[nodiscard]] std::size_t open() const;

 private:
  struct Entry {
    std::shared_ptr<Connection> connection;
    std::string why_not;
  };
  std::map<std::string, Entry, std::less<>> entries_;
};

/// Follows the hub's clusters until the connection is closed.
Awaitable<> follow(std::shared_ptr<Connection> connection);

namespace detail {
Awaitable<> stop_when_closed(std::shared_ptr<Connection> connection, async::TaskScope& scope);
}

/// Gives an order to a hub; again, when its connection was replaced before the order had ended.
template <typename T>
Awaitable<Result<T>> on_hub(std::shared_ptr<const Connections> connections, std::string hub,
                            std::function<Awaitable<Result<T>>(Connection&)> give) {
  while (true) {
    auto connection = connections->find(hub);
    if (!connection) co_return connection.error();
    std::optional<Result<T>> answer;
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(detail::stop_when_closed(*connection, scope));
      answer.emplace(co_await give(**connection));
      scope.stop();
    };
    co_await async::with_scope(std::move(body));
    if (!answer) continue;
    (*connection)->note(*answer || answer->error().kind != ErrorKind::unreachable);
    co_return std::move(*answer);
  }
}

/// Agents that go by whatever connection there is at the time of each order.
std::shared_ptr<hubagent::SourceHub> make_connected_source(std::shared_ptr<const Connections> connections,
                                                           std::string hub);
std::shared_ptr<hubagent::TargetHub> make_connected_target(std::shared_ptr<const Connections> connections,
                                                           std::string hub);

}  // namespace hubferry::hubs
