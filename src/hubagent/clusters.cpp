#include "hubagent/clusters.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <set>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// The progress of one operation over its clusters.
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

Awaitable<> process_one(Round& round, const ProcessCluster& process, std::size_t index, Slot slot,
                        async::TaskScope& scope) {
  auto result = co_await process(round.clusters[index], std::move(slot));
  if (result) co_return;
  if (!concerns_hub(result.error())) {
    round.failures[index] = result.error();
    co_return;
  }
  if (!round.hub_error) round.hub_error = result.error();
  scope.stop();
}

}  // namespace

Awaitable<Result<Outcome>> for_each_cluster(Hub& hub, ClusterNames clusters, ProcessCluster process) {
  Round round;
  round.clusters = without_duplicates(std::move(clusters));
  round.failures.resize(round.clusters.size());
  auto process_all = [&](async::TaskScope& scope) -> Awaitable<> {
    for (std::size_t index = 0; index < round.clusters.size(); ++index) {
      auto slot = co_await hub.slot();
      scope.spawn(process_one(round, process, index, std::move(slot), scope));
      // Where many slots are free at once, another operation may take the next one.
      co_await async::asio::post(async::asio::deferred);
    }
  };
  co_await async::with_scope(std::move(process_all));
  if (round.hub_error) co_return *round.hub_error;

  Outcome outcome;
  for (std::size_t index = 0; index < round.clusters.size(); ++index) {
    const auto& cluster = round.clusters[index];
    const auto& error = round.failures[index];
    if (!error) {
      outcome.done.push_back(cluster);
      continue;
    }
    outcome.failed.push_back({cluster, error->reason(), error->describe()});
    hub.env().log.warn("hub operation failed for a cluster",
                       {{"cluster", cluster}, {"reason", to_string(error->reason())}, {"error", error->describe()}});
  }
  co_return outcome;
}

Awaitable<Result<>> wait_for_cluster_cache(Hub& hub) {
  kube::ListOptions options;
  options.limit = 1;
  auto attempt = [&] { return hub.api().list(ocm::managed_clusters, options, ocm::managed_cluster_decoder()); };
  auto page = co_await with_retry(hub, attempt);
  if (!page) co_return Error{page.error()}.in_context("cannot list managed clusters on hub " + hub.name());
  co_await hub.clusters().wait_synced();
  co_return Result<>{};
}

Awaitable<> wait_until_deleted(Hub& hub, Object rest) {
  const Key key = rest.key();
  const std::string uid{rest.uid()};
  // The cache may not have seen our deletion yet, but then it still shows the object.
  co_await hub.clusters().wait_until_seen(key, std::string{rest.resource_version()}, async::never);
  auto is_gone = [uid](const ocm::ManagedCluster* seen) { return seen == nullptr || seen->uid() != uid; };
  co_await hub.clusters().wait_for(key, is_gone, async::never);
}

bool is_claimed_by(const MigrationRef& migration, const Object& cluster) {
  return cluster.annotation(ocm::names::migrating_annotation) == migration.uid;
}

Error no_such_cluster(const Hub& hub, const std::string& cluster) {
  return {FailureReason::cluster_not_found, "there is no managed cluster " + cluster + " on hub " + hub.name()};
}

Error not_claimed(const Hub& hub, const std::string& cluster, const Object& object) {
  const std::string holder{object.annotation(ocm::names::migrating_annotation)};
  return {FailureReason::cluster_conflict, "cluster " + cluster + " on hub " + hub.name() +
                                               " is not claimed by this migration, " +
                                               (holder.empty() ? "nor by any other" : "but by migration " + holder)};
}

}  // namespace hubferry::hubagent
