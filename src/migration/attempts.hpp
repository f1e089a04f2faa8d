#pragma once

#include "migration/retry.hpp"
#include "migration/status_report.hpp"
#include "migration/transitions.hpp"

/// Operations of Rollbacking and Cleaning: one attempt each, since these phases are retried as a whole for as long as
/// it takes (postpone()). Over many clusters in batches, so that what one batch achieved does not depend on another,
/// nor on a hub that stops answering half-way.
namespace hubferry::migration {

/// Runs `operation(hub)` on the source once, for at most the time of one attempt.
template <typename Operation>
auto attempt_on_source(Step& step, Operation operation)
    -> Awaitable<OperationResult<typename ResultOf<Operation, hubagent::SourceHub&>::value_type>> {
  auto answer = co_await async::before_deadline(step.clock(), step.attempt_deadline(),
                                                once_on_source(step, std::move(operation)));
  if (answer) co_return std::move(*answer);
  co_return OperationError::timed_out("no answer within " + async::format_duration(step.attempt_timeout()));
}

/// The same on the target.
template <typename Operation>
auto attempt_on_target(Step& step, Operation operation)
    -> Awaitable<OperationResult<typename ResultOf<Operation, hubagent::TargetHub&>::value_type>> {
  auto answer = co_await async::before_deadline(step.clock(), step.attempt_deadline(),
                                                once_on_target(step, std::move(operation)));
  if (answer) co_return std::move(*answer);
  co_return OperationError::timed_out("no answer within " + async::format_duration(step.attempt_timeout()));
}

/// What became of each cluster: it is in exactly one of the three.
struct Results {
  ClusterNames done;
  Failures failed;
  ClusterNames unknown;         // the operation as a whole failed for them
  std::string unknown_message;  // why
  bool unanswered = false;      // the hub did not answer

  void add(Results more);
  /// The failed ones, and the unknown ones with their message.
  [[nodiscard]] Failures not_done() const;
};

/// Runs `operation(clusters)` on all of them, in batches.
using ClusterOperation = std::function<Awaitable<Results>(ClusterNames)>;
Awaitable<Results> in_batches(ClusterNames clusters, ClusterOperation operation);

/// Runs an operation of a hub that has an Outcome, once and in batches: `operation(hub, clusters)`.
using SourceOperation =
    std::function<Awaitable<hubagent::Result<Outcome>>(hubagent::SourceHub& hub, ClusterNames clusters)>;
using TargetOperation =
    std::function<Awaitable<hubagent::Result<Outcome>>(hubagent::TargetHub& hub, ClusterNames clusters)>;
Awaitable<Results> each_on_source(Step& step, ClusterNames clusters, SourceOperation operation);
Awaitable<Results> each_on_target(Step& step, ClusterNames clusters, TargetOperation operation);

/// Which clusters have arrived on the target. Of those that it does not have, those are adopted that have registered
/// there by themselves. They fail for now, since what was copied with them may be missing: the next look judges them.
Awaitable<hubagent::Result<Outcome>> find_arrived(hubagent::TargetHub& hub, hubagent::MigrationRef migration,
                                                  ClusterNames clusters, WallTime since);

/// What the failure of find_arrived() for a cluster says: that the cluster is not on the target; that it is, though its
/// arrival is not complete; or nothing.
enum class Sighting { absent, present, unknown };
Sighting seen_on_target(const Failure& failure);

/// The names in `all` that are in `some`, and those that are not.
ClusterNames common(const ClusterNames& all, const ClusterNames& some);
ClusterNames without(const ClusterNames& all, const ClusterNames& some);

}  // namespace hubferry::migration
