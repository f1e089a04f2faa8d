#include "migration/attempts.hpp"

#include "hubferry/async/semaphore.hpp"
#include "hubferry/async/task_scope.hpp"

namespace hubferry::migration {

namespace {

/// Small enough that a batch ends within one attempt, and that what was found about a cluster is recent when it is
/// used.
constexpr std::size_t clusters_in_batch = 100;
/// So that a batch that only waits does not hold up the others.
constexpr std::size_t batches_in_flight = 4;

bool is_unanswered(const OperationError& error) {
  return error.kind() == OperationError::Kind::timed_out || error.is(kube::ErrorKind::unreachable) ||
         error.is(hubagent::FailureReason::hub_unreachable);
}

Results results_of(const Step& step, const std::string& hub, const ClusterNames& clusters,
                   const OperationResult<Outcome>& outcome) {
  if (!outcome) return {{}, {}, clusters, operation_failed(hub, outcome.error()), is_unanswered(outcome.error())};
  return {outcome->done, failures_of(step, *outcome), {}, {}};
}

}  // namespace

void Results::add(Results more) {
  done.insert(done.end(), more.done.begin(), more.done.end());
  failed.merge(more.failed);
  unknown.insert(unknown.end(), more.unknown.begin(), more.unknown.end());
  if (unknown_message.empty()) unknown_message = std::move(more.unknown_message);
  unanswered = unanswered || more.unanswered;
}

Failures Results::not_done() const {
  Failures all = failed;
  for (const auto& name : unknown) all.try_emplace(name, Failure{{}, reasons::error, unknown_message});
  return all;
}

Awaitable<Results> in_batches(ClusterNames clusters, ClusterOperation operation) {
  Results all;
  async::Semaphore in_flight{batches_in_flight};
  auto run = [&](ClusterNames batch, async::Semaphore::Permit permit) -> Awaitable<> {
    auto results = co_await operation(std::move(batch));
    permit.release();
    all.add(std::move(results));
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (std::size_t at = 0; at < clusters.size(); at += clusters_in_batch) {
      auto permit = co_await in_flight.acquire();
      const auto end = std::min(clusters.size(), at + clusters_in_batch);
      ClusterNames batch{clusters.begin() + static_cast<std::ptrdiff_t>(at),
                         clusters.begin() + static_cast<std::ptrdiff_t>(end)};
      // A hub that does not answer for one batch is not asked for the next one before the next round.
      if (!all.unanswered)
        scope.spawn(run(std::move(batch), std::move(permit)));
      else
        all.unknown.insert(all.unknown.end(), batch.begin(), batch.end());
    }
  };
  co_await async::with_scope(body);
  co_return all;
}

Awaitable<Results> each_on_source(Step& step, ClusterNames clusters, SourceOperation operation) {
  ClusterOperation attempt = [&](ClusterNames batch) -> Awaitable<Results> {
    auto run = [&](hubagent::SourceHub& hub) { return operation(hub, batch); };
    auto outcome = co_await attempt_on_source(step, run);
    co_return results_of(step, step.source_name(), batch, outcome);
  };
  co_return co_await in_batches(std::move(clusters), attempt);
}

Awaitable<Results> each_on_target(Step& step, ClusterNames clusters, TargetOperation operation) {
  ClusterOperation attempt = [&](ClusterNames batch) -> Awaitable<Results> {
    auto run = [&](hubagent::TargetHub& hub) { return operation(hub, batch); };
    auto outcome = co_await attempt_on_target(step, run);
    co_return results_of(step, step.target_name(), batch, outcome);
  };
  co_return co_await in_batches(std::move(clusters), attempt);
}

Awaitable<hubagent::Result<Outcome>> find_arrived(hubagent::TargetHub& hub, hubagent::MigrationRef migration,
                                                  ClusterNames clusters, WallTime since) {
  auto arrived = co_await hub.arrived(migration, std::move(clusters), since);
  if (!arrived) co_return arrived.error();
  ClusterNames absent;
  for (const auto& failure : arrived->failed)
    if (failure.reason == hubagent::FailureReason::cluster_not_found) absent.push_back(failure.cluster);
  if (absent.empty()) co_return std::move(*arrived);
  std::map<std::string, hubagent::ClusterFailure> changed;
  hubagent::TargetHub::OnFound on_adopted = [&](const std::string& cluster) {
    changed[cluster] = {cluster, hubagent::FailureReason::resource_differs,
                        "it had registered by itself, without the copy of this migration, and is the migration's own "
                        "from now on"};
  };
  auto adopted = co_await hub.adopt(migration, absent, on_adopted);
  // What the hub has said of the others stands.
  if (!adopted)
    for (const auto& cluster : absent)
      changed.try_emplace(
          cluster, hubagent::ClusterFailure{cluster, hubagent::FailureReason::unknown, adopted.error().describe()});
  else
    for (const auto& failure : adopted->failed) changed[failure.cluster] = failure;
  for (auto& failure : arrived->failed)
    if (const auto found = changed.find(failure.cluster); found != changed.end()) failure = found->second;
  co_return std::move(*arrived);
}

Sighting seen_on_target(const Failure& failure) {
  const auto is = [&](hubagent::FailureReason reason) { return failure.reason == to_string(reason); };
  if (is(hubagent::FailureReason::cluster_not_found) || is(hubagent::FailureReason::cluster_not_available))
    return Sighting::absent;
  // Alive there, or just adopted.
  if (is(hubagent::FailureReason::cluster_unhealthy) || is(hubagent::FailureReason::works_not_applied) ||
      is(hubagent::FailureReason::resource_differs))
    return Sighting::present;
  return Sighting::unknown;
}

ClusterNames common(const ClusterNames& all, const ClusterNames& some) {
  const std::set<std::string> wanted{some.begin(), some.end()};
  ClusterNames names;
  for (const auto& name : all)
    if (wanted.contains(name)) names.push_back(name);
  return names;
}

ClusterNames without(const ClusterNames& all, const ClusterNames& some) {
  const std::set<std::string> unwanted{some.begin(), some.end()};
  ClusterNames names;
  for (const auto& name : all)
    if (!unwanted.contains(name)) names.push_back(name);
  return names;
}

}  // namespace hubferry::migration
