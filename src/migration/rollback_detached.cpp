#include "hubferry/async/task_scope.hpp"
#include "migration/cleaning_return.hpp"
#include "migration/rollback_settling.hpp"

namespace hubferry::migration {

namespace {

using hubagent::Stage;

Awaitable<Look> look_at_target(Rollback& rollback, ClusterNames clusters) {
  auto& step = rollback.step;
  const auto since = step.migration.cut_over();
  Look look;
  if (!since) {
    look.absent = std::move(clusters);
    co_return look;
  }
  TargetOperation find = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return find_arrived(hub, rollback.ref, std::move(names), *since);
  };
  // A target that is away for a moment is waited for: a cluster that has just arrived there need not return.
  ClusterOperation find_with_retry = [&](ClusterNames batch) -> Awaitable<Results> {
    auto run = [&](hubagent::TargetHub& hub) { return find(hub, batch); };
    auto outcome = co_await on_target(step, step.time().one_attempt(), run);
    if (outcome) co_return Results{outcome->done, failures_of(step, *outcome), {}, {}};
    co_return Results{{}, {}, batch, operation_failed(step.target_name(), outcome.error())};
  };
  auto found = co_await in_batches(std::move(clusters), find_with_retry);
  look.arrived = std::move(found.done);
  for (const auto& [cluster, failure] : found.not_done()) {
    switch (seen_on_target(failure)) {
      case Sighting::absent:
        look.absent.push_back(cluster);
        break;
      case Sighting::present:
        look.present.emplace(cluster, failure);
        break;
      case Sighting::unknown:
        look.unknown.emplace(cluster, failure);
        break;
    }
  }
  co_return look;
}

/// In Cleaning, before it was lost there: the target's import controller may have given its agent a bootstrap
/// kubeconfig of the target only.
bool had_arrived(const Rollback& rollback, const std::string& cluster) {
  const auto found = rollback.ledger.failures.find(cluster);
  return found != rollback.ledger.failures.end() && found->second.stage == phases::cleaning;
}

/// Nothing from the source reaches an agent that is registering elsewhere; a new process asks the source too.
std::string restart_hint(const Rollback& rollback, const std::string& cluster) {
  std::string hint = "; if it does not, delete its pod klusterlet-agent in namespace open-cluster-management-agent";
  if (had_arrived(rollback, cluster))
    hint += ", and if it knows " + rollback.step.target_name() + " only, import the cluster on " +
            rollback.step.source_name() + " once more";
  return hint;
}

/// Of those that had arrived on a target that does not say whether they are still there: accepted by the source too,
/// they could be on both hubs. Only a person knows that the target is lost.
ClusterNames find_perhaps_there(Rollback& rollback, const Look& look) {
  ClusterNames names;
  for (const auto& [cluster, failure] : look.unknown)
    if (had_arrived(rollback, cluster) && rollback.pending.add(rollback.target(), cluster,
                                                               "it had arrived on " + rollback.step.target_name() +
                                                                   " and may be there still: " + failure.message))
      names.push_back(cluster);
  return names;
}

/// Those that stay on the target for now. Where a person has given the target up, the source accepts them again, but
/// the target still does.
ClusterNames find_staying(Rollback& rollback, Look& look, const ClusterNames& accepted_by_both) {
  ClusterNames staying;
  for (const auto& cluster : without(names_of(look.present), accepted_by_both)) {
    const auto& failure = look.present.at(cluster);
    if (wait_for_completion(rollback, cluster, failure))
      staying.push_back(cluster);
    else
      look.unknown.emplace(cluster, failure);
  }
  return staying;
}

/// Of those that had arrived: they may have moved on from the target since, to a hub that this migration does not know.
Awaitable<ClusterNames> find_moved_on(Rollback& rollback, ClusterNames clusters) {
  std::erase_if(clusters, [&](const std::string& cluster) { return !had_arrived(rollback, cluster); });
  auto elsewhere = co_await find_elsewhere(rollback.step, std::move(clusters));
  rollback.pending.add(rollback.source(), elsewhere);
  co_return names_of(elsewhere);
}

/// Where the user has opted in: those that the source did not get back within an attempt, and whose target does not
/// answer, are restarted on the clusters themselves. Returns what came of it.
Awaitable<std::map<std::string, std::string>> restart_stranded(Rollback& rollback, ClusterNames clusters) {
  std::map<std::string, std::string> notes;
  if (clusters.empty() || !rollback.step.migration.spec().restart_agents) co_return notes;
  SourceOperation restart = [&](hubagent::SourceHub& hub, ClusterNames names) {
    return hub.restart_agents(rollback.ref, std::move(names));
  };
  const auto restarted = co_await each_on_source(rollback.step, std::move(clusters), restart);
  for (const auto& cluster : restarted.done) notes[cluster] = "; its agent was restarted";
  for (const auto& [cluster, failure] : restarted.not_done())
    notes[cluster] = restart_hint(rollback, cluster) + "; " + failure.message;
  co_return notes;
}

/// Waits for the agents, for the time of one attempt. A cluster that is not back yet is found by the next round. If the
/// source accepts none of them now, only their registrations are given a moment.
Awaitable<> wait_for_returns(Rollback& rollback, ClusterNames clusters, const Failures& target_problems) {
  auto& step = rollback.step;
  if (clusters.empty()) {
    co_await step.clock().sleep_for(approve_again);
    co_return;
  }
  std::set<std::string> back;
  const auto count = [&] {
    step.set_progress(std::to_string(back.size()) + " of " + count_clusters(clusters.size()) + " back");
  };
  count();
  hubagent::SourceHub::OnReturn on_return = [&](const std::string& cluster) {
    back.insert(cluster);
    count();
  };
  auto wait = [&](hubagent::SourceHub& hub) { return hub.await_returns(rollback.ref, clusters, on_return); };
  auto waited = co_await attempt_on_source(step, wait);
  if (waited) rollback.pending.add(rollback.source(), failures_of(step, *waited));
  ClusterNames stranded;
  for (const auto& cluster : clusters)
    if (!back.contains(cluster) && target_problems.contains(cluster)) stranded.push_back(cluster);
  auto notes = co_await restart_stranded(rollback, std::move(stranded));
  for (const auto& cluster : clusters) {
    if (back.contains(cluster)) continue;
    auto message = step.source_name() + " accepts it again; waiting for its agent to renew its lease there";
    message += notes.contains(cluster) ? notes.at(cluster) : restart_hint(rollback, cluster);
    if (const auto found = target_problems.find(cluster); found != target_problems.end())
      message += "; it may be on " + step.target_name() + ": " + found->second.message;
    rollback.pending.add(rollback.source(), cluster, std::move(message));
  }
  const ClusterNames names{back.begin(), back.end()};
  co_await release_attached(rollback, Stage::registering, names);
}

/// `look`: where they are not.
Awaitable<> return_to_source(Rollback& rollback, ClusterNames clusters, Look look) {
  auto& step = rollback.step;
  SourceOperation accept = [&](hubagent::SourceHub& hub, ClusterNames names) {
    return hub.accept(rollback.ref, std::move(names));
  };
  auto accepted = co_await each_on_source(step, std::move(clusters), accept);
  rollback.pending.add(rollback.source(), accepted.not_done());
  step->reporter.clusters_failed(step.migration, step.phase(), accepted.failed);
  TargetOperation deny_leaving = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return hub.deny(rollback.ref, std::move(names), std::nullopt);
  };
  // Some may have arrived since the look.
  TargetOperation deny_absent = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return hub.deny(rollback.ref, std::move(names), step.migration.cut_over());
  };
  auto denied = co_await each_on_target(step, common(accepted.done, look.leaving), deny_leaving);
  denied.add(co_await each_on_target(step, common(accepted.done, look.absent), deny_absent));
  auto target_problems = std::move(look.unknown);
  target_problems.merge(denied.not_done());
  co_await wait_for_returns(rollback, accepted.done, target_problems);
}

}  // namespace

Awaitable<> return_with_registrations(Rollback& rollback, ClusterNames clusters, Look look, ClusterNames staying) {
  staying.insert(staying.end(), clusters.begin(), clusters.end());
  if (staying.empty()) co_return;
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(let_registrations_finish(rollback, staying));
    co_await return_to_source(rollback, clusters, std::move(look));
    scope.stop();
  };
  co_await async::with_scope(body);
}

Awaitable<> return_detached(Rollback& rollback, ClusterNames clusters) {
  if (clusters.empty()) co_return;
  auto look = co_await look_at_target(rollback, clusters);
  auto living = names_of(look.present);
  living.insert(living.end(), look.arrived.begin(), look.arrived.end());
  const auto both = co_await find_accepted_by_both(rollback, living);
  co_await keep_late_arrivals(rollback, without(look.arrived, both));
  const auto staying = find_staying(rollback, look, both);
  auto returning = without(without(without(clusters, look.arrived), both), staying);
  returning = without(returning, find_perhaps_there(rollback, look));
  const auto elsewhere = co_await find_moved_on(rollback, returning);
  returning = without(returning, elsewhere);
  co_await return_with_registrations(rollback, std::move(returning), std::move(look), staying);
  co_await settle_accepted_by_both(rollback, both);
}

}  // namespace hubferry::migration
