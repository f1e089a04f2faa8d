#include "hubagent/each_cluster.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <set>

#include "hubferry/async/task_scope.hpp"

namespace hubferry::hubagent {

namespace {

/// One order's way through its clusters.
struct Round {
  ClusterNames clusters;
  std::vector<std::optional<Error>> failures;  // by position in `clusters`
  std::optional<Error> hub_error;
};

ClusterNames without_duplicates(ClusterNames clusters) {
  std::set<std::string> seen;
  std::erase_if(clusters, [&](const std::string& cluster) { return !seen.insert(cluster).second; });
  return clusters;
}

Awaitable<> treat_one(Round& round, const Treatment& treat, std::size_t index, Slot slot, async::TaskScope& scope) {
  auto result = co_await treat(round.clusters[index], std::move(slot));
  if (result) co_return;
  if (!is_hub_error(result.error())) {
    round.failures[index] = result.error();
    co_return;
  }
  if (!round.hub_error) round.hub_error = result.error();
  scope.stop();
}

}  // namespace

Awaitable<Result<Outcome>> for_each_cluster(Hub& hub, ClusterNames clusters, Treatment treat) {
  Round round;
  round.clusters = without_duplicates(std::move(clusters));
  round.failures.resize(round.clusters.size());
  auto hand_out = [&](async::TaskScope& scope) -> Awaitable<> {
    for (std::size_t index = 0; index < round.clusters.size(); ++index) {
      auto slot = co_await hub.slot();
      scope.spawn(treat_one(round, treat, index, std::move(slot), scope));
      // Where many slots are free at once, another order takes the next.
      co_await async::asio::post(async::asio::deferred);
    }
  };
  co_await async::with_scope(std::move(hand_out));
  if (round.hub_error) co_return *round.hub_error;

  Outcome outcome;
  for (std::size_t index = 0; index < round.clusters.size(); ++index) {
    if (!round.failures[index]) {
      outcome.done.push_back(round.clusters[index]);
      continue;
    }
    const auto& failed = outcome.failed.emplace_back(failure_of(round.clusters[index], *round.failures[index]));
    hub.env().log.warn("a cluster failed",
                       {{"cluster", failed.cluster}, {"reason", failed.reason}, {"error", failed.message}});
  }
  co_return outcome;
}

}  // namespace hubferry::hubagent
