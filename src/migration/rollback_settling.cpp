#include "migration/rollback_settling.hpp"

#include "hubferry/async/task_scope.hpp"

namespace hubferry::migration {

namespace {

// How soon what the hubs have seen is judged, and how soon a watch that failed is repeated.
constexpr auto look_again = std::chrono::seconds{15};

/// A cluster that is on the target after all stays there: the source, which may have accepted it again while the target
/// did not answer, detaches it; also one that it has released since. Returns those of which that is done, and those
/// that somebody deleted from the source.
Awaitable<ClusterNames> detach_from_source(Rollback& rollback, ClusterNames clusters) {
  if (clusters.empty()) co_return clusters;
  const auto here_before = rollback.step.migration.cut_over();
  SourceOperation detach = [&](hubagent::SourceHub& hub, ClusterNames names) {
    return hub.detach_arrived(rollback.ref, std::move(names), here_before);
  };
  auto detached = co_await each_on_source(rollback.step, std::move(clusters), detach);
  for (const auto& [cluster, failure] : detached.not_done()) {
    if (failure.reason == to_string(hubagent::FailureReason::cluster_not_found))
      detached.done.push_back(cluster);
    else
      rollback.pending.add(rollback.source(), cluster,
                           "it is on " + rollback.step.target_name() + ": " + failure.message);
  }
  co_return std::move(detached.done);
}

/// Of a cluster that lives on the target: it does not count as returned, as a previous round saw it.
void reopen(Rollback& rollback, const std::string& cluster) {
  if (rollback.ledger.rolled_back.erase(cluster) > 0) rollback.reopened.insert(cluster);
}

/// Which clusters have renewed their leases since the round began.
struct Renewals {
  std::set<std::string> on_source;
  std::set<std::string> on_target;
};

/// Until cancelled.
Awaitable<> watch_source(Rollback& rollback, ClusterNames clusters, Renewals& renewals) {
  hubagent::SourceHub::OnRenewal on_renewal = [&](const std::string& cluster) { renewals.on_source.insert(cluster); };
  auto watch = [&](hubagent::SourceHub& hub) { return hub.await_renewals(clusters, on_renewal); };
  for (;;) {
    co_await once_on_source(rollback.step, watch);
    co_await rollback.step.clock().sleep_for(look_again);
  }
}

Awaitable<> watch_target(Rollback& rollback, ClusterNames clusters, Renewals& renewals) {
  hubagent::TargetHub::OnFound on_renewal = [&](const std::string& cluster) { renewals.on_target.insert(cluster); };
  auto watch = [&](hubagent::TargetHub& hub) { return hub.await_renewals(clusters, on_renewal); };
  for (;;) {
    co_await once_on_target(rollback.step, watch);
    co_await rollback.step.clock().sleep_for(look_again);
  }
}

/// Those that have renewed their leases on the target, and not on the source. Returns whatever of them is decided now:
/// arrived, or alive there with their arrival not complete.
Awaitable<ClusterNames> keep_on_target(Rollback& rollback, ClusterNames renewed) {
  if (renewed.empty()) co_return renewed;
  const auto since = rollback.step.migration.cut_over().value_or(rollback.step.now());
  TargetOperation look = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return hub.arrived(rollback.ref, std::move(names), since);
  };
  const auto looked = co_await each_on_target(rollback.step, std::move(renewed), look);
  auto decided = co_await keep_late_arrivals(rollback, looked.done);
  auto living = looked.not_done();
  std::erase_if(living, [](const auto& entry) { return seen_on_target(entry.second) != Sighting::present; });
  // A target that a person has given up takes no cluster from the source, which accepts it.
  for (auto one = living.begin(); one != living.end();) {
    if (wait_for_completion(rollback, one->first, one->second)) {
      ++one;
    } else {
      decided.push_back(one->first);
      one = living.erase(one);
    }
  }
  const auto detached = co_await detach_from_source(rollback, names_of(living));
  for (const auto& cluster : detached) {
    reopen(rollback, cluster);
    decided.push_back(cluster);
  }
  co_return decided;
}

}  // namespace

Awaitable<ClusterNames> find_accepted_by_both(Rollback& rollback, ClusterNames clusters) {
  if (clusters.empty()) co_return clusters;
  auto look = [&](hubagent::SourceHub& hub) { return hub.accepted(clusters); };
  auto accepted = co_await attempt_on_source(rollback.step, look);
  if (!accepted) co_return clusters;
  co_return std::move(*accepted);
}

Awaitable<ClusterNames> keep_late_arrivals(Rollback& rollback, ClusterNames clusters) {
  auto detached = co_await detach_from_source(rollback, std::move(clusters));
  for (const auto& cluster : detached) {
    reopen(rollback, cluster);
    rollback.ledger.succeed(cluster);
  }
  co_return detached;
}

bool wait_for_completion(Rollback& rollback, const std::string& cluster, const Failure& failure) {
  return rollback.pending.add(
      rollback.target(), cluster,
      "it lives on " + rollback.step.target_name() + ", and may know no other hub: " + failure.message);
}

Awaitable<> let_registrations_finish(Rollback& rollback, ClusterNames clusters) {
  auto& step = rollback.step;
  const auto since = step.migration.cut_over().value_or(step.now());
  hubagent::TargetHub::OnArrival ignore{[](const std::string&) {}};
  auto approve = [&](hubagent::TargetHub& hub) { return hub.await_arrivals(rollback.ref, clusters, since, ignore); };
  for (;;) {
    auto ended = co_await once_on_target(step, approve);
    if (!ended) step.log().info("cannot approve registrations on the target", {{"error", ended.error().describe()}});
    co_await step.clock().sleep_for(approve_again);
  }
}

Awaitable<> settle_accepted_by_both(Rollback& rollback, ClusterNames clusters) {
  if (clusters.empty()) co_return;
  auto& step = rollback.step;
  const auto problem = step.source_name() + " and " + step.target_name() +
                       " accept it; waiting for its agent to renew its lease on one of them";
  Renewals renewals;
  ClusterNames returning;
  auto undecided = clusters;
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(watch_source(rollback, clusters, renewals));
    scope.spawn(watch_target(rollback, clusters, renewals));
    scope.spawn(let_registrations_finish(rollback, clusters));
    while (!undecided.empty()) {
      const Step::Wait waiting{step, count_clusters(undecided.size()) + ": " + problem};
      co_await step.clock().sleep_for(look_again);
      const auto back = common(undecided, {renewals.on_source.begin(), renewals.on_source.end()});
      returning.insert(returning.end(), back.begin(), back.end());
      undecided = without(undecided, back);
      const auto there = common(undecided, {renewals.on_target.begin(), renewals.on_target.end()});
      undecided = without(undecided, co_await keep_on_target(rollback, there));
    }
    scope.stop();
  };
  co_await async::before_deadline(step.clock(), step.attempt_deadline(), async::with_scope(body));
  for (const auto& cluster : undecided) rollback.pending.add(rollback.source(), cluster, problem);
  co_await return_with_registrations(rollback, returning, Look{.leaving = returning}, {});
}

}  // namespace hubferry::migration
