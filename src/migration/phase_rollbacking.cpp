#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/edit.hpp"
#include "migration/attempts.hpp"
#include "migration/definition.hpp"
#include "migration/own_objects.hpp"
#include "migration/pending.hpp"

namespace hubferry::migration {

namespace {

using hubagent::Stage;
using kube::ConditionStatus;

/// A requested rollback waits for migrations that have one of the clusters now.
Awaitable<> wait_for_others(Step& step, const Ledger& ledger) {
  ClusterNames concerned;
  std::ranges::set_union(ledger.to_roll_back(), ledger.to_undo(), std::back_inserter(concerned));
  while (auto obstacle = step->admission.readmit(step.migration, concerned)) {
    if (condition_message(step.migration, conditions::rolled_back) == *obstacle) {
      co_await step->admission.changed(std::string{step.migration.object.uid()}, *obstacle);
      continue;
    }
    step.report(ConditionStatus::no, reasons::waiting, *obstacle);
    co_await step.save();
  }
}

/// A requested rollback needs the finalizer again.
Awaitable<ReconcileState> accept_request(Step& step) {
  auto& migration = step.migration;
  if (!migration.requests_rollback()) co_return phase::done();
  auto ledger = co_await load_ledger(step);
  if (ledger) {
    co_await wait_for_others(step, *ledger);
    migration.enter(phases::rollbacking, step.now());
  }
  step.report(ConditionStatus::no, reasons::waiting, "retrying the rollback, as requested");
  auto held = co_await change_metadata(step, put_own_finalizer);
  if (!held) co_return phase::failed(phase::Error{held.error()});
  co_return phase::done();
}

/// The status records the request: its annotation is no longer needed.
Awaitable<ReconcileState> acknowledge_request(Step& step) {
  auto& migration = step.migration;
  if (!migration.requests_rollback()) co_return phase::done();
  kube::Mutation drop_request = [](json::object& object) {
    return kube::object_in(kube::object_in(object, "metadata"), "annotations").erase(names::request_annotation) > 0;
  };
  auto changed = co_await change_metadata(step, std::move(drop_request));
  if (!changed) co_return phase::failed(phase::Error{changed.error()});
  co_return phase::done();
}

/// No cluster that arrived is left on the source.
bool is_settled(const Ledger& ledger) {
  return ledger.success.size() == ledger.cleaned.size();
}

/// One round over all clusters that did not arrive.
struct Rollback {
  Step& step;
  Ledger& ledger;
  Pending& pending;
  hubagent::MigrationRef ref;
  std::set<std::string> returned = {};  // to the source
  std::set<std::string> undone = {};    // their copies are deleted from the target
  LedgerChange cleaned = {};            // of those that arrived

  [[nodiscard]] std::string source() const { return step.migration.from(); }
  [[nodiscard]] std::string target() const { return step.migration.to(); }
};

void add(std::set<std::string>& names, const ClusterNames& more) {
  names.insert(more.begin(), more.end());
}

/// Those of which the target has no ManagedCluster of ours: what else is there is not all that is left of them.
Awaitable<ClusterNames> find_without_copy(Rollback& rollback, ClusterNames clusters) {
  const auto now = rollback.step.now();
  TargetOperation look = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return hub.arrived(rollback.ref, std::move(names), now);
  };
  auto looked = co_await each_on_target(rollback.step, std::move(clusters), look);
  ClusterNames absent;
  for (const auto& [cluster, failure] : looked.failed)
    if (failure.reason == to_string(hubagent::FailureReason::cluster_not_found)) absent.push_back(cluster);
  co_return absent;
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

/// Clusters that were never detached: the source only drops its claim.
Awaitable<> release_attached(Rollback& rollback, Stage stage, ClusterNames clusters) {
  SourceOperation release = [&, stage](hubagent::SourceHub& hub, ClusterNames names) {
    return hub.roll_back(rollback.ref, stage, std::move(names));
  };
  auto released = co_await each_on_source(rollback.step, std::move(clusters), release);
  rollback.pending.add(rollback.source(), released.not_done());
  rollback.step->reporter.clusters_failed(rollback.step.migration, rollback.step.phase(), released.failed);
  add(rollback.returned, released.done);
}

/// What the target says of clusters that were detached.
struct Look {
  ClusterNames arrived;
  ClusterNames absent;  // known not to be there
  Failures unknown;     // the target could not be asked
};

Awaitable<Look> look_at_target(Rollback& rollback, ClusterNames clusters) {
  auto& step = rollback.step;
  const auto since = step.migration.cut_over();
  Look look;
  if (!since) {
    look.absent = std::move(clusters);
    co_return look;
  }
  TargetOperation find = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return hub.arrived(rollback.ref, std::move(names), *since);
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
    const bool is_absent = failure.reason == to_string(hubagent::FailureReason::cluster_not_available) ||
                           failure.reason == to_string(hubagent::FailureReason::cluster_not_found);
    if (is_absent)
      look.absent.push_back(cluster);
    else
      look.unknown.emplace(cluster, failure);
  }
  co_return look;
}

/// A cluster that is on the target after all stays there: it counts as arrived once the source, which may have accepted
/// it again while the target did not answer, has detached it.
Awaitable<> keep_late_arrivals(Rollback& rollback, ClusterNames clusters) {
  if (clusters.empty()) co_return;
  SourceOperation detach = [&](hubagent::SourceHub& hub, ClusterNames names) {
    return hub.detach(rollback.ref, std::move(names));
  };
  auto detached = co_await each_on_source(rollback.step, std::move(clusters), detach);
  for (const auto& cluster : detached.done) rollback.ledger.succeed(cluster);
  for (const auto& [cluster, failure] : detached.not_done()) {
    // Somebody deleted it from the source: it is on the target only.
    if (failure.reason == to_string(hubagent::FailureReason::cluster_not_found))
      rollback.ledger.succeed(cluster);
    else
      rollback.pending.add(rollback.source(), cluster,
                           "it is Available on " + rollback.step.target_name() + ": " + failure.message);
  }
}

// How soon a target that did not answer is asked to approve registrations again.
constexpr auto approve_again = std::chrono::seconds{15};

/// An agent that is registering on the target does so until it succeeds, and only then sees that it is denied there:
/// the target approves its certificate requests meanwhile.
Awaitable<> let_registrations_finish(Rollback& rollback, ClusterNames clusters) {
  auto& step = rollback.step;
  const auto since = step.migration.cut_over().value_or(step.now());
  hubagent::TargetHub::OnArrival ignore = [](const std::string&) {};
  auto approve = [&](hubagent::TargetHub& hub) { return hub.await_arrivals(rollback.ref, clusters, since, ignore); };
  for (;;) {
    auto ended = co_await once_on_target(step, approve);
    if (!ended) step.log().info("cannot approve registrations on the target", {{"error", ended.error().describe()}});
    co_await step.clock().sleep_for(approve_again);
  }
}

/// Waits for the agents, for the time of one attempt. A cluster that is not back yet is found by the next round.
Awaitable<> wait_for_returns(Rollback& rollback, ClusterNames clusters, const Failures& target_problems) {
  if (clusters.empty()) co_return;
  auto& step = rollback.step;
  std::set<std::string> back;
  hubagent::SourceHub::OnReturn on_return = [&](const std::string& cluster) { back.insert(cluster); };
  auto wait = [&](hubagent::SourceHub& hub) { return hub.await_returns(rollback.ref, clusters, on_return); };
  std::optional<OperationResult<Outcome>> waited;
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(let_registrations_finish(rollback, clusters));
    waited = co_await attempt_on_source(step, wait);
    scope.stop();
  };
  co_await async::with_scope(body);
  if (waited && *waited) rollback.pending.add(rollback.source(), failures_of(step, **waited));
  for (const auto& cluster : clusters) {
    if (back.contains(cluster)) continue;
    auto message = step.source_name() + " accepts it again; waiting for its agent to renew its lease there";
    if (const auto found = target_problems.find(cluster); found != target_problems.end())
      message += "; it may be on " + step.target_name() + ": " + found->second.message;
    rollback.pending.add(rollback.source(), cluster, std::move(message));
  }
  const ClusterNames names{back.begin(), back.end()};
  co_await release_attached(rollback, Stage::registering, names);
}

/// Detached clusters return to the source. The order is what keeps each on exactly one hub: it is looked for on the
/// target; where it is not, the source accepts it again; only then the target denies it. If the target does not answer,
/// the source comes first all the same, and the cluster is looked for again in the next round: until its agent has
/// renewed its lease on one of the two hubs, nothing is decided.
Awaitable<> return_detached(Rollback& rollback, ClusterNames clusters) {
  if (clusters.empty()) co_return;
  auto& step = rollback.step;
  auto look = co_await look_at_target(rollback, clusters);
  co_await keep_late_arrivals(rollback, look.arrived);
  SourceOperation accept = [&](hubagent::SourceHub& hub, ClusterNames names) {
    return hub.accept(rollback.ref, std::move(names));
  };
  auto accepted = co_await each_on_source(step, without(clusters, look.arrived), accept);
  rollback.pending.add(rollback.source(), accepted.not_done());
  step->reporter.clusters_failed(step.migration, step.phase(), accepted.failed);
  TargetOperation deny = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return hub.deny(rollback.ref, std::move(names));
  };
  auto denied = co_await each_on_target(step, common(accepted.done, look.absent), deny);
  auto target_problems = std::move(look.unknown);
  target_problems.merge(denied.not_done());
  co_await wait_for_returns(rollback, accepted.done, target_problems);
}

/// What is left to do for each cluster, by what the migration has done with it.
Awaitable<> roll_back_all(Rollback& rollback) {
  const auto& ledger = rollback.ledger;
  auto to_return = rollback_by_stage(rollback.step.migration, ledger, ledger.to_roll_back());
  for (const auto& [stage, clusters] : to_return) {
    if (stage == Stage::registering)
      co_await return_detached(rollback, clusters);
    else
      co_await release_attached(rollback, stage, clusters);
  }
  for (const auto& [stage, clusters] : rollback_by_stage(rollback.step.migration, ledger, ledger.to_undo())) {
    ClusterNames back;
    for (const auto& cluster : clusters) {
      const bool was_detached = stage == Stage::registering;
      if (!was_detached || ledger.rolled_back.contains(cluster) || rollback.returned.contains(cluster))
        back.push_back(cluster);
      else
        rollback.pending.add(
            rollback.target(), cluster,
            "its copy stays on " + rollback.step.target_name() + " until it is back on " + rollback.step.source_name());
    }
    co_await delete_copies(rollback, stage, std::move(back));
  }
}

Awaitable<OperationResult<>> record(Rollback& rollback) {
  LedgerChange change = [&rollback, known = rollback.ledger](Ledger& lists) {
    for (const auto& name : known.success) lists.succeed(name);
    for (const auto& [name, failure] : known.failures) lists.fail(name, failure);
    lists.rolled_back.insert(rollback.returned.begin(), rollback.returned.end());
    lists.undone.insert(rollback.undone.begin(), rollback.undone.end());
    if (rollback.cleaned) rollback.cleaned(lists);
    lists.waiting = rollback.pending.waiting();
    lists.left_behind = rollback.pending.given_up();
  };
  co_return co_await amend_ledger(rollback.step, rollback.ledger, change);
}

/// Returns the clusters that did not arrive to the source, and deletes what this migration created on the target.
Awaitable<ReconcileState> return_clusters(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return postpone(step, ledger.error().message());
  Pending pending{step.migration};
  if (step.migration.rollback_stage()) {
    co_await wait_for_previous_writes(step);
    fail_remaining(step.migration, *ledger);
    Rollback rollback{step, *ledger, pending, step.migration.ref()};
    co_await roll_back_all(rollback);
    // The source comes first: it is as it was, even while the target cannot be.
    if (without(ledger->to_roll_back(), {rollback.returned.begin(), rollback.returned.end()}).empty())
      co_await delete_source_objects(step, pending);
    // Clusters that arrived do not wait for those that have not returned.
    if (!pending.empty() && !is_settled(*ledger)) rollback.cleaned = co_await clean_arrived(step, *ledger, pending);
    auto saved = co_await record(rollback);
    if (!saved) co_return postpone(step, saved.error().message());
  }
  put_counts(step.migration, *ledger, true);
  if (!pending.empty()) co_return postpone(step, pending.message());
  clear_problem(step);
  if (ledger->all_arrived())
    step.report(conditions::registered, ConditionStatus::yes, "ClusterRegistered",
                "all " + count_clusters(ledger->all.size()) + " are Available on " + step.target_name() +
                    ", some of them late");
  co_return phase::done();
}

/// Clusters that arrived still need them: Cleaning deletes them then.
Awaitable<ReconcileState> restore_objects(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return postpone(step, ledger.error().message());
  if (!is_settled(*ledger)) co_return phase::done();
  co_return co_await delete_own_objects_or_postpone(step);
}

Awaitable<ReconcileState> conclude_rollback(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return postpone(step, ledger.error().message());
  const auto verdict = judge_rollback(step.migration, *ledger);
  step.report(verdict.success ? ConditionStatus::yes : ConditionStatus::no, verdict.reason, verdict.message);
  if (!verdict.success) step->reporter.warn(step.migration, verdict.reason, "RollBack", verdict.message);
  if (const auto stage = step.migration.rollback_stage()) step->reporter.rolled_back(*stage, verdict.success);
  put_counts(step.migration, *ledger, true);
  if (is_settled(*ledger)) co_return co_await finish(step, *ledger, step.successor());
  co_return step.jump_to(phases::cleaning, "verifying the clusters before anything is deleted");
}

}  // namespace

Handler rollbacking_phase() {
  return Handler::serial(
      {.description = "roll back the clusters that did not arrive", .view = phase::View::checklist},
      {step({.name = "take-up", .description = "accept a requested rollback", .checkpoint = true}, accept_request),
       step({.name = "acknowledge", .description = "remove the request's annotation"}, acknowledge_request),
       step({.name = "clusters", .description = "return the clusters to the source, then delete their copies"},
            return_clusters),
       step({.name = "objects", .description = "delete the migration's own objects, the credential last"},
            restore_objects),
       step({.name = "conclusion", .description = "report the result"}, conclude_rollback)});
}

}  // namespace hubferry::migration
