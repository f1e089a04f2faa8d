#include <algorithm>

#include "migration/attempts.hpp"
#include "migration/rollback_settling.hpp"

namespace hubferry::migration {

namespace {

using hubagent::Stage;

/// The clusters by what a rollback has to undo for each. Empty where nothing was changed.
std::map<Stage, ClusterNames> rollback_by_stage(const Migration& migration, const Ledger& ledger,
                                                const ClusterNames& clusters) {
  std::map<Stage, ClusterNames> stages;
  const auto reached = migration.rollback_stage();
  if (!reached) return stages;
  for (const auto& cluster : clusters) {
    auto stage = *reached;
    if (const auto found = ledger.failures.find(cluster); found != ledger.failures.end())
      stage = stage_from(found->second.stage).value_or(*reached);
    stages[stage].push_back(cluster);
  }
  return stages;
}

void add(std::set<std::string>& names, const ClusterNames& more) {
  names.insert(more.begin(), more.end());
}

/// Those of which the target has no ManagedCluster of ours: what else is there is not all that is left of them.
Awaitable<ClusterNames> find_without_copy(Rollback& rollback, ClusterNames clusters) {
  const auto now = rollback.step.now();
  TargetOperation look = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return find_arrived(hub, rollback.ref, std::move(names), now);
  };
  auto looked = co_await each_on_target(rollback.step, std::move(clusters), look);
  ClusterNames absent;
  for (const auto& [cluster, failure] : looked.failed)
    if (failure.reason == to_string(hubagent::FailureReason::cluster_not_found)) absent.push_back(cluster);
  co_return absent;
}

/// Clusters that have returned to the source while the target did not answer may live there again: it still accepts
/// them. The hub on which they renew their leases keeps them. Returns those whose copies may go: the target says that
/// they are not there, or they have returned from there now.
Awaitable<ClusterNames> find_not_there(Rollback& rollback, ClusterNames clusters) {
  auto& step = rollback.step;
  const auto since = step.migration.cut_over();
  if (clusters.empty() || !since) co_return clusters;
  TargetOperation look = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return hub.arrived(rollback.ref, std::move(names), *since);
  };
  auto looked = co_await each_on_target(step, clusters, look);
  auto living = std::move(looked.done);
  ClusterNames not_there;
  for (const auto& [cluster, failure] : looked.not_done()) {
    const auto sighting = seen_on_target(failure);
    if (sighting == Sighting::present) living.push_back(cluster);
    if (sighting == Sighting::absent) not_there.push_back(cluster);
    if (sighting == Sighting::unknown) rollback.pending.add(rollback.target(), cluster, failure.message);
  }
  // That they returned earlier in this round says nothing of where they are now.
  std::set<std::string> returned_before;
  for (const auto& cluster : living)
    if (rollback.returned.erase(cluster) > 0) returned_before.insert(cluster);
  co_await settle_accepted_by_both(rollback, living);
  for (const auto& cluster : living)
    if (rollback.returned.contains(cluster)) not_there.push_back(cluster);
  rollback.returned.merge(returned_before);
  co_return not_there;
}

/// Clusters that never left the source, or that have returned to it: their copies go. Only of those that the source
/// has, accepts, and is not deleting: a copy on the target may be all that is left of a cluster.
Awaitable<> delete_copies(Rollback& rollback, Stage stage, ClusterNames clusters) {
  auto& step = rollback.step;
  if (clusters.empty()) co_return;
  if (stage == Stage::initializing) {
    add(rollback.undone, clusters);
    co_return;
  }
  SourceOperation is_held = [&](hubagent::SourceHub& hub, ClusterNames names) {
    return hub.accept(rollback.ref, std::move(names));
  };
  auto held = co_await each_on_source(step, std::move(clusters), is_held);
  auto lost = held.not_done();
  auto nowhere = co_await find_without_copy(rollback, names_of(lost));
  for (const auto& cluster : nowhere) lost.erase(cluster);
  rollback.pending.add(rollback.source(), lost);
  held.done.insert(held.done.end(), nowhere.begin(), nowhere.end());
  TargetOperation undo = [&, stage](hubagent::TargetHub& hub, ClusterNames names) {
    return hub.roll_back(rollback.ref, stage, std::move(names));
  };
  auto deleted = co_await each_on_target(step, held.done, undo);
  rollback.pending.add(rollback.target(), deleted.not_done());
  add(rollback.undone, deleted.done);
}

/// Clusters that were not detached, and whose agents have registered on the target nevertheless: others could register
/// there, and these may have lost the source. They return like detached ones. Returns those of which the target did not
/// say it: their copies stay, and so does the source's claim, without which they could not return like that.
Awaitable<std::set<std::string>> find_registered(Rollback& rollback) {
  auto& step = rollback.step;
  if (!step.migration.cut_over()) co_return std::set<std::string>{};  // nobody had the permission
  ClusterNames left;
  std::ranges::set_union(rollback.ledger.to_roll_back(), rollback.ledger.to_undo(), std::back_inserter(left));
  auto stages = rollback_by_stage(step.migration, rollback.ledger, left);
  hubagent::TargetHub::OnFound return_like_detached = [&](const std::string& cluster) {
    auto failure = rollback.ledger.failures[cluster];
    failure.stage = phases::registering;
    rollback.ledger.fail(cluster, std::move(failure));
    // A previous round did not see that it had left.
    if (rollback.ledger.rolled_back.erase(cluster) > 0) rollback.reopened.insert(cluster);
  };
  TargetOperation look = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return hub.find_registered(rollback.ref, std::move(names), return_like_detached);
  };
  auto looked = co_await each_on_target(step, std::move(stages[Stage::deploying]), look);
  std::set<std::string> unasked;
  for (const auto& [cluster, failure] : looked.not_done())
    if (rollback.pending.add(rollback.target(), cluster, failure.message)) unasked.insert(cluster);
  co_return unasked;
}

}  // namespace

Awaitable<> release_attached(Rollback& rollback, Stage stage, ClusterNames clusters) {
  SourceOperation release = [&, stage](hubagent::SourceHub& hub, ClusterNames names) {
    return hub.roll_back(rollback.ref, stage, std::move(names));
  };
  auto released = co_await each_on_source(rollback.step, std::move(clusters), release);
  rollback.pending.add(rollback.source(), released.not_done());
  rollback.step->reporter.clusters_failed(rollback.step.migration, rollback.step.phase(), released.failed);
  add(rollback.returned, released.done);
}

Awaitable<> roll_back_all(Rollback& rollback) {
  const auto& ledger = rollback.ledger;
  const auto unasked = co_await find_registered(rollback);
  auto to_return = rollback_by_stage(rollback.step.migration, ledger, ledger.to_roll_back());
  for (auto& [stage, clusters] : to_return) {
    std::erase_if(clusters, [&](const std::string& cluster) { return unasked.contains(cluster); });
    if (stage == Stage::registering)
      co_await return_detached(rollback, clusters);
    else
      co_await release_attached(rollback, stage, clusters);
  }
  for (const auto& [stage, clusters] : rollback_by_stage(rollback.step.migration, ledger, ledger.to_undo())) {
    ClusterNames back;
    for (const auto& cluster : clusters) {
      const bool was_detached = stage == Stage::registering;
      if (unasked.contains(cluster)) continue;
      if (!was_detached || ledger.rolled_back.contains(cluster) || rollback.returned.contains(cluster))
        back.push_back(cluster);
      else
        rollback.pending.add(
            rollback.target(), cluster,
            "its copy stays on " + rollback.step.target_name() + " until it is back on " + rollback.step.source_name());
    }
    if (stage == Stage::registering) back = co_await find_not_there(rollback, std::move(back));
    co_await delete_copies(rollback, stage, std::move(back));
  }
}

}  // namespace hubferry::migration
