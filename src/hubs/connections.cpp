#include "hubs/connections.hpp"

#include "hubferry/async/backoff.hpp"

namespace hubferry::hubs {

namespace {

Awaitable<> report_first_answer(std::shared_ptr<hubagent::Hub> hub, std::shared_ptr<Connection> connection) {
  co_await hub->clusters().wait_synced();
  connection->on_result(true);
}

/// Once the hub did not answer, any answer shows that it is back: not only that to the next operation, which may come
/// hours later.
Awaitable<> report_recovery(std::shared_ptr<hubagent::Hub> hub, std::shared_ptr<WatchedConnection> connection) {
  const auto& env = hub->env();
  while (true) {
    while (connection->answers) co_await connection->silent.wait();
    async::Backoff backoff{{}, env.clock, env.random};
    while (!connection->answers) {
      co_await backoff.pause();
      auto version = co_await hub->api().get_path("/version");
      if (version || version.error().kind != kube::ErrorKind::unreachable) connection->on_result(true);
    }
  }
}

/// Never returns by itself.
Awaitable<> run_with_restarts(std::shared_ptr<hubagent::Hub> hub, std::shared_ptr<Connection> connection) {
  const auto& env = hub->env();
  async::Backoff backoff{{}, env.clock, env.random};
  while (true) {
    try {
      co_await hub->run();
    } catch (...) {
      const auto error = std::current_exception();
      if (async::is_cancellation(error)) throw;
      env.log.error("hub connection failed, restarting", {{"hub", hub->name()}, {"error", async::describe(error)}});
    }
    connection->on_result(false);
    co_await backoff.pause();
  }
}

}  // namespace

std::shared_ptr<WatchedConnection> make_connection(const std::shared_ptr<hubagent::Hub>& hub, obs::Gauge& reachable,
                                                   std::shared_ptr<ObservedApi> api, Troubles& troubles) {
  auto connection = std::make_shared<WatchedConnection>();
  connection->api = std::move(api);
  connection->waits = hub->waits();
  connection->source = hubagent::make_source_hub(hub);
  connection->target = hubagent::make_target_hub(hub);
  connection->on_result = [&reachable, &troubles, to = connection.get()](bool answered) {
    const bool is_back = answered && !std::exchange(to->answers, answered);
    to->answers = answered;
    if (is_back) troubles.report_recovery();
    if (!answered) to->silent.wake_all();
    if (!to->closed.is_set()) reachable.set(answered ? 1 : 0);
  };
  return connection;
}

Awaitable<> watch_clusters(std::shared_ptr<hubagent::Hub> hub, std::shared_ptr<WatchedConnection> connection) {
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(run_with_restarts(hub, connection));
    scope.spawn(report_first_answer(hub, connection));
    scope.spawn(report_recovery(hub, connection));
    scope.spawn(connection->api->watch_silence());
    co_await connection->closed.wait();
    connection->api->retire();
    scope.stop();
  };
  co_await async::with_scope(std::move(body));
}

void Connections::put(const std::string& hub, std::shared_ptr<Connection> connection) {
  auto& entry = entries_[hub];
  auto old = std::exchange(entry.connection, std::move(connection));
  if (old == nullptr) ++open_;
  entry.why_not.clear();
  if (old != nullptr) old->closed.set();
}

void Connections::drop(const std::string& hub, std::string why) {
  auto& entry = entries_[hub];
  auto old = std::exchange(entry.connection, nullptr);
  entry.why_not = std::move(why);
  if (old == nullptr) return;
  --open_;
  old->on_result(false);
  old->closed.set();
}

void Connections::drop_all(const std::string& why) {
  for (auto& [hub, entry] : entries_) drop(hub, why);
}

Result<std::shared_ptr<Connection>> Connections::find(const std::string& hub) const {
  const auto found = entries_.find(hub);
  if (found != entries_.end() && found->second.connection != nullptr) return found->second.connection;
  const bool known = found != entries_.end() && !found->second.why_not.empty();
  return Error{FailureReason::hub_unreachable, known ? found->second.why_not : "there is no connection to hub " + hub};
}

bool is_destructive(const kube::Request& request) {
  if (request.verb == kube::Verb::remove) return true;
  const auto* body = request.body.if_object();
  const auto* accepts = body != nullptr ? kube::find(*body, {"spec", "hubAcceptsClient"}) : nullptr;
  return accepts != nullptr && *accepts == false;
}

Awaitable<> detail::stop_when_closed(std::shared_ptr<Connection> connection, async::TaskScope& scope) {
  co_await connection->closed.wait();
  scope.stop();
}

}  // namespace hubferry::hubs
