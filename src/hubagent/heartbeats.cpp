#include "hubagent/heartbeats.hpp"

#include "hubferry/async/task_scope.hpp"

namespace hubferry::hubagent {

Awaitable<> await_renewals_of(Hub& hub, ClusterNames clusters, OnRenewal on_renewal) {
  Heartbeats heartbeats{hub};
  auto wait = [&](std::string cluster) -> Awaitable<> {
    co_await heartbeats.wait_for_renewal(cluster);
    on_renewal(cluster);
  };
  auto wait_for_all = [&](async::TaskScope& scope) -> Awaitable<> {
    for (const auto& cluster : clusters) scope.spawn(wait(cluster));
    co_return;
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(heartbeats.run());
    co_await async::with_scope(wait_for_all);
    scope.stop();
  };
  co_await async::with_scope(body);
}

}  // namespace hubferry::hubagent
