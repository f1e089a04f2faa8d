#include "hubagent/clusters.hpp"

#include <algorithm>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <set>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// The progress of one operation over its clusters.
struct Round {
  ClusterNames clusters;
  std::vector<std::optional<Error>> failures;  // by position in `clusters`, as the next
  std::vector<bool> processed;
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
  round.processed[index] = true;
  if (result) co_return;
  if (!stops_all(result.error())) {
    round.failures[index] = result.error();
    co_return;
  }
  if (!round.hub_error) round.hub_error = result.error();
  scope.stop();
}

/// The permission that every cluster lacks, if that is what all failed with.
std::optional<Error> common_refusal(const Round& round) {
  if (round.failures.empty()) return std::nullopt;
  const auto is_refused = [](const std::optional<Error>& error) { return error && concerns_hub(*error); };
  return std::ranges::all_of(round.failures, is_refused) ? round.failures.front() : std::nullopt;
}

Awaitable<> wait_for_absence(Hub& hub, Object rest) {
  const Key key = rest.key();
  const std::string uid{rest.uid()};
  // The cache may not have seen our deletion yet, but then it still shows the object.
  co_await hub.clusters().wait_until_seen(key, std::string{rest.resource_version()}, async::never);
  auto is_gone = [uid](const ocm::ManagedCluster* seen) { return seen == nullptr || seen->uid() != uid; };
  co_await hub.clusters().wait_for(key, is_gone, async::never);
}

}  // namespace

namespace {

Awaitable<Result<Outcome>> process_until(Hub& hub, ClusterNames clusters, ProcessCluster process,
                                         async::TimePoint deadline) {
  Round round;
  round.clusters = without_duplicates(std::move(clusters));
  round.failures.resize(round.clusters.size());
  round.processed.resize(round.clusters.size());
  auto process_all = [&](async::TaskScope& scope) -> Awaitable<> {
    for (std::size_t index = 0; index < round.clusters.size(); ++index) {
      auto slot = co_await hub.slot();
      scope.spawn(process_one(round, process, index, std::move(slot), scope));
      // Where many slots are free at once, another operation may take the next one.
      co_await async::asio::post(async::asio::deferred);
    }
  };
  co_await async::before_deadline(hub.env().clock, deadline, async::with_scope(std::move(process_all)));
  for (std::size_t index = 0; index < round.clusters.size(); ++index)
    if (!round.processed[index])
      round.failures[index] =
          Error{FailureReason::unknown, "cluster " + round.clusters[index] + " was not finished on hub " + hub.name() +
                                            " in time: its operation is repeated"};
  if (round.hub_error) co_return *round.hub_error;
  if (auto refusal = common_refusal(round)) co_return *refusal;

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

}  // namespace

Awaitable<Result<Outcome>> for_each_cluster(Hub& hub, ClusterNames clusters, ProcessCluster process) {
  return process_until(hub, std::move(clusters), std::move(process), async::never);
}

Awaitable<Result<Outcome>> for_each_cluster_in_time(Hub& hub, ClusterNames clusters, ProcessCluster process) {
  const auto deadline = hub.env().clock.now() + hub.options().operation_timeout;
  return process_until(hub, std::move(clusters), std::move(process), deadline);
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

namespace {

/// ", and held by the finalizers a, b"
std::string what_holds(const Object& rest) {
  std::string finalizers;
  if (const auto* list = rest.find({"metadata", "finalizers"}); list != nullptr && list->is_array())
    for (const auto& finalizer : list->get_array())
      if (finalizer.is_string()) finalizers += (finalizers.empty() ? "" : ", ") + std::string{finalizer.get_string()};
  return finalizers.empty() ? finalizers : ", and held by the finalizers " + finalizers;
}

}  // namespace

Awaitable<Result<>> wait_until_deleted(Hub& hub, MigrationRef migration, Object rest) {
  const Waits::Entry waiting{*hub.waits(), migration.uid, std::string{rest.name()},
                             "ManagedCluster on hub " + hub.name() + " is being deleted" + what_holds(rest)};
  auto& clock = hub.env().clock;
  const bool gone =
      co_await async::before_deadline(clock, clock.now() + hub.options().deletion_timeout, wait_for_absence(hub, rest));
  if (gone) co_return Result<>{};
  co_return still_there(hub, ocm::managed_clusters, rest);
}

namespace {

/// Of a namespace that is being deleted: "; Some resources are remaining: ..."
std::string what_remains(const Object& space) {
  std::string text;
  const auto* conditions = space.find({"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return text;
  for (const auto& condition : conditions->get_array()) {
    const auto* fields = condition.if_object();
    if (fields == nullptr || kube::string_at(*fields, {"status"}) != "True") continue;
    if (kube::string_at(*fields, {"type"}).starts_with("Namespace"))
      text.append("; ").append(kube::string_at(*fields, {"message"}));
  }
  return text;
}

}  // namespace

Error still_there(const Hub& hub, const Resource& resource, const Object& rest) {
  return {FailureReason::unknown, described(resource, rest.key()) + " on hub " + hub.name() + " is being deleted" +
                                      what_holds(rest) +
                                      (resource == kube::resources::namespaces ? what_remains(rest) : "")};
}

bool stops_all(const Error& error) {
  return error.is(ErrorKind::unreachable) || error.is(ErrorKind::unauthorized);
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
