#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/hubagent/source_hub.hpp"
#include "hubferry/hubagent/target_hub.hpp"
#include "hubferry/hubagent/waits.hpp"
#include "hubferry/hubs/troubles.hpp"
#include "hubferry/kube/api.hpp"

namespace hubferry::hubs {

/// What the global hub knows of a hub.
struct HubInfo {
  std::string name;
  bool exists = false;     // there is a ManagedCluster of that name
  bool available = false;  // its condition ManagedClusterConditionAvailable is True; the global hub itself always is
  bool is_hub = false;     // it has the labels or annotations of a hub
  /// How clusters reach its API server: from its ManagedCluster's client configuration, else from its kubeconfig.
  std::string server_url;
  std::string ca_pem;
  /// The global hub could not be read: `ca_pem` may be missing, and must not be used.
  std::optional<kube::Error> ca_error;
};

/// The connection to one hub. When the hub's kubeconfig changes, another connection replaces it.
struct Connection {
  std::shared_ptr<hubagent::SourceHub> source;
  std::shared_ptr<hubagent::TargetHub> target;
  std::function<void(bool answered)> on_result;  // whether the hub answered, after each operation; may be empty
  async::Event closed;                           // replaced, or the hub is gone
  std::shared_ptr<const hubagent::Waits> waits;  // of the operations on it; may be null
};

/// The hubs that exist, and the connection to each. Operations run by on_source() and on_target().
/// Executor: the control loop. Lifetime: outlives the operations.
class Hubs {
 public:
  virtual ~Hubs() = default;

  /// Waits until the global hub's clusters are synced; then answers from the cache.
  virtual async::Awaitable<HubInfo> find(std::string hub) = 0;
  /// All hubs of the global hub, itself included if it is one; whether or not they can be reached. Waits as find()
  /// does.
  virtual async::Awaitable<std::vector<std::string>> names() = 0;
  /// The current connection. Errors: hub_not_found; hub_unreachable without a usable kubeconfig. The message says what
  /// is missing.
  virtual hubagent::Result<std::shared_ptr<Connection>> connection(const std::string& hub) = 0;

  /// What is wrong with which hub now.
  Troubles troubles;
};

namespace detail {

async::Awaitable<> stop_when_closed(std::shared_ptr<Connection> connection, async::TaskScope& scope);

template <typename Operation>
auto on_connection(Hubs& hubs, std::string hub, Operation operation) -> std::invoke_result_t<Operation&, Connection&> {
  using Answer = typename std::invoke_result_t<Operation&, Connection&>::value_type;
  while (true) {
    auto connection = hubs.connection(hub);
    if (!connection) co_return connection.error();
    std::optional<Answer> answer;
    auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
      scope.spawn(stop_when_closed(*connection, scope));
      answer.emplace(co_await operation(**connection));
      scope.stop();
    };
    co_await async::with_scope(std::move(body));
    if (!answer) continue;
    const auto& report = (*connection)->on_result;
    if (report) report(*answer || !answer->error().is(kube::ErrorKind::unreachable));
    co_return std::move(*answer);
  }
}

}  // namespace detail

/// True for a write that takes a cluster from a hub, or an object from a cluster: a deletion, or a denial
/// (`hubAcceptsClient: false`). A leader makes sure that it leads before each of them: see kube::make_fenced_api().
bool is_destructive(const kube::Request& request);

/// Runs `operation(source)` on a hub: a function of a hubagent::SourceHub& that returns an Awaitable of a result, whose
/// error can be made of a hubagent::Error. It is called once for each connection that it needs, so it must not move
/// from what it captures.
///
///   retried on    the hub's connection is replaced (its kubeconfig changed) before the operation has ended
///   how long      until the operation ends; without a connection it fails with hub_unreachable or hub_not_found
///   users see     the log line "hub kubeconfig changed, reconnecting"
///
/// Errors: those of Hubs::connection() and of the operation. Cancellation: terminal.
template <typename Operation>
auto on_source(Hubs& hubs, std::string hub, Operation operation)
    -> std::invoke_result_t<Operation&, hubagent::SourceHub&> {
  auto run = [&](Connection& to) { return operation(*to.source); };
  co_return co_await detail::on_connection(hubs, std::move(hub), run);
}

/// The same on the target.
template <typename Operation>
auto on_target(Hubs& hubs, std::string hub, Operation operation)
    -> std::invoke_result_t<Operation&, hubagent::TargetHub&> {
  auto run = [&](Connection& to) { return operation(*to.target); };
  co_return co_await detail::on_connection(hubs, std::move(hub), run);
}

}  // namespace hubferry::hubs
