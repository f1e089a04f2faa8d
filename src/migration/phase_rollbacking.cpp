#include "hubferry/kube/edit.hpp"
#include "migration/attempts.hpp"
#include "migration/definition.hpp"
#include "migration/own_objects.hpp"
#include "migration/rollback.hpp"

namespace hubferry::migration {

namespace {

using kube::ConditionStatus;

/// A requested rollback waits for migrations that have one of the clusters now.
Awaitable<> wait_for_others(Step& step, const Ledger& ledger) {
  std::set<std::string> all{ledger.success};
  for (const auto& name : ledger.cleaned) all.erase(name);
  for (const auto& names : {ledger.to_roll_back(), ledger.to_undo()}) all.insert(names.begin(), names.end());
  const ClusterNames concerned{all.begin(), all.end()};
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

/// No cluster that arrived is left on the source.
bool is_settled(const Ledger& ledger) {
  return ledger.success.size() == ledger.cleaned.size();
}

/// The status records the request: its annotation is no longer needed. Unless arrived clusters are still on the source:
/// if the target has lost them, Cleaning returns them by it, and removes it.
Awaitable<ReconcileState> acknowledge_request(Step& step) {
  if (!step.migration.requests_rollback()) co_return phase::done();
  auto ledger = co_await load_ledger(step);
  if (ledger && !is_settled(*ledger)) co_return phase::done();
  auto changed = co_await change_metadata(step, drop_rollback_request);
  if (!changed) co_return phase::failed(phase::Error{changed.error()});
  co_return phase::done();
}

Awaitable<OperationResult<>> record(Rollback& rollback) {
  LedgerChange change = [&rollback, known = rollback.ledger](Ledger& lists) {
    for (const auto& name : known.success) lists.succeed(name);
    for (const auto& [name, failure] : known.failures) lists.fail(name, failure);
    for (const auto& name : rollback.reopened) lists.rolled_back.erase(name);
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
