#include "hubferry/kube/edit.hpp"
#include "migration/credential.hpp"
#include "migration/definition.hpp"

namespace hubferry::migration {

namespace {

using hubagent::Stage;
using kube::ConditionStatus;

/// What an operation of the rollback could not do, by cluster.
Trouble clusters_trouble(std::string_view hub, const Failures& failures) {
  if (failures.empty()) return {};
  return Trouble{"on " + std::string{hub} + ": " + some_failures(failures)};
}

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

/// Clusters that are on the target after all stay there. Every other one is rolled back, also if the target does not
/// answer: the source comes first.
Awaitable<> find_late_arrivals(Step& step, Ledger& ledger) {
  const auto since = step.migration.cut_over();
  const auto stages = rollback_by_stage(step.migration, ledger, ledger.to_roll_back());
  const auto found = stages.find(Stage::registering);
  if (!since || found == stages.end()) co_return;
  auto find = [&](hubagent::TargetHub& hub) { return hub.arrived(step.migration.ref(), found->second, *since); };
  auto arrived = co_await on_target(step, step.time().one_attempt(), find);
  if (!arrived) {
    step.log().warn("cannot find late arrivals", {{"error", arrived.error().describe()}});
    co_return;
  }
  for (const auto& cluster : *arrived) ledger.succeed(cluster);
}

Awaitable<ReconcileState> keep_late_arrivals(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return continue_despite(step, Trouble{ledger.error()});
  co_await find_late_arrivals(step, *ledger);
  fail_remaining(step.migration, *ledger);
  auto saved = co_await save_ledger(step, *ledger);
  if (!saved) co_return continue_despite(step, Trouble{saved.error()});
  if (ledger->all_arrived())
    step.report(conditions::registered, ConditionStatus::yes, "ClusterRegistered",
                "all " + count_clusters(ledger->all.size()) + " are Available on " + step.target_name() +
                    ", some of them late");
  co_return phase::done();
}

/// Deletes the credential on the global hub and on the target.
Awaitable<OperationResult<>> withdraw(Step& step, TimeBudget time) {
  const auto credential = step.migration.credential();
  if (!credential) co_return OperationResult<>{};
  auto remove = [&] { return delete_credential(step, *credential); };
  auto deleted = co_await retry(step, time, remove);
  auto remove_objects = [&](hubagent::TargetHub& hub) {
    return hub.delete_migration_objects(step.migration.ref(), credential->identity);
  };
  auto removed = co_await on_target(step, time, remove_objects);
  if (!deleted) co_return deleted.error();
  co_return removed;
}

/// Before the source is restored: agents that can still register on the target would not return. A target that does not
/// answer is not waited for; it is retried at the end.
Awaitable<ReconcileState> withdraw_credential(Step& step) {
  auto withdrawn = co_await withdraw(step, step.time().one_attempt());
  if (!withdrawn) step.log().warn("cannot withdraw the credential yet", {{"error", withdrawn.error().describe()}});
  co_return phase::done();
}

/// The clusters that are back, if the operation itself did not end: those that could be migrated again.
Awaitable<> find_returned(Step& step, const ClusterNames& clusters, std::set<std::string>& back) {
  auto validate = [&](hubagent::SourceHub& hub) { return hub.validate(step.migration.ref(), clusters); };
  auto validated = co_await on_source(step, validate);
  if (validated) back.insert(validated->done.begin(), validated->done.end());
}

/// Attaches the clusters to the source again, whatever the target does.
Awaitable<ReconcileState> restore_source(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return continue_despite(step, Trouble{ledger.error()});
  Trouble trouble;
  // A tenth of the time is for finding out which clusters are back, if one cluster kept the operation from ending.
  const auto time = step.time().until(step.time().deadline() - step.time().timeout() / 10);
  std::set<std::string> back;
  for (const auto& [stage, clusters] : rollback_by_stage(step.migration, *ledger, ledger->to_roll_back())) {
    bool is_running = false;  // on the source, which waits for clusters
    auto roll_back = [&](hubagent::SourceHub& hub) -> Awaitable<OperationResult<Outcome>> {
      is_running = true;
      auto answer = co_await hub.roll_back(step.migration.ref(), stage, clusters);
      is_running = false;
      co_return detail::as_operation_result(std::move(answer));
    };
    auto outcome = co_await on_source(step, time, roll_back);
    if (outcome) {
      back.insert(outcome->done.begin(), outcome->done.end());
      const auto failures = failures_of(step, *outcome);
      step->reporter.clusters_failed(step.migration, step.phase(), failures);
      trouble += clusters_trouble(step.source_name(), failures);
      continue;
    }
    if (is_running && stage == Stage::registering) co_await find_returned(step, clusters, back);
    trouble += Trouble{step.source_name(), outcome.error()};
  }
  LedgerChange add_returned = [&back](Ledger& lists) { lists.rolled_back.insert(back.begin(), back.end()); };
  auto saved = co_await amend_ledger(step, *ledger, add_returned);
  if (!saved) trouble += Trouble{saved.error()};
  put_counts(step.migration, *ledger, true);
  if (ledger->to_roll_back().empty() || trouble.empty()) co_return phase::done();
  trouble += Trouble{"not back: " + some_names(ledger->to_roll_back())};
  co_return continue_despite(step, trouble);
}

/// A cluster that the source has lost meanwhile exists only on the target: none is deleted there unless the source
/// confirms that it has it. Takes the others out of `clusters`.
Awaitable<Trouble> keep_clusters_lost_by_source(Step& step, ClusterNames& clusters) {
  auto validate = [&](hubagent::SourceHub& hub) { return hub.validate(step.migration.ref(), clusters); };
  auto validated = co_await on_source(step, step.time().one_attempt(), validate);
  if (!validated) {
    Trouble trouble{step.source_name(), validated.error()};
    trouble.message +=
        ", so it is not proven that it still has " + some_names(clusters) + ": left on " + step.target_name();
    clusters.clear();
    co_return trouble;
  }
  ClusterNames lacking;
  for (const auto& failed : validated->failed)
    if (failed.reason == hubagent::FailureReason::cluster_not_found) lacking.push_back(failed.cluster);
  if (lacking.empty()) co_return Trouble{};
  std::erase_if(clusters, [&](const std::string& name) { return std::ranges::find(lacking, name) != lacking.end(); });
  co_return Trouble{"left on " + step.target_name() + ", since " + step.source_name() +
                    " does not have them any more: " + some_names(lacking)};
}

/// Deletes what this migration created on the target.
Awaitable<ReconcileState> restore_target(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return continue_despite(step, Trouble{ledger.error()});
  Trouble trouble;
  std::set<std::string> undone;
  for (auto [stage, clusters] : rollback_by_stage(step.migration, *ledger, ledger->to_undo())) {
    if (stage != Stage::initializing) trouble += co_await keep_clusters_lost_by_source(step, clusters);
    if (clusters.empty()) continue;
    auto roll_back = [&](hubagent::TargetHub& hub) { return hub.roll_back(step.migration.ref(), stage, clusters); };
    auto outcome = co_await on_target(step, roll_back);
    if (!outcome) {
      trouble += Trouble{step.target_name(), outcome.error()};
      continue;
    }
    undone.insert(outcome->done.begin(), outcome->done.end());
    trouble += clusters_trouble(step.target_name(), failures_of(step, *outcome));
  }
  LedgerChange add_undone = [&undone](Ledger& lists) { lists.undone.insert(undone.begin(), undone.end()); };
  auto saved = co_await amend_ledger(step, *ledger, add_undone);
  if (!saved) trouble += Trouble{saved.error()};
  if (trouble.empty()) co_return phase::done();
  co_return continue_despite(step, trouble);
}

Awaitable<ReconcileState> restore_source_objects(Step& step) {
  if (!step.migration.rollback_stage()) co_return phase::done();
  auto remove = [&](hubagent::SourceHub& hub) { return hub.delete_migration_objects(step.migration.ref()); };
  auto removed = co_await on_source(step, remove);
  if (removed) co_return phase::done();
  co_return continue_despite(step, Trouble{step.source_name(), removed.error()});
}

Awaitable<ReconcileState> restore_target_objects(Step& step) {
  auto withdrawn = co_await withdraw(step, step.time());
  if (withdrawn) co_return phase::done();
  co_return continue_despite(step, Trouble{step.target_name(), withdrawn.error()});
}

Awaitable<ReconcileState> conclude_rollback(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) {
    // It is not known any more which clusters it had: it ends, and says so.
    continue_despite(step, Trouble{ledger.error()});
    ledger = Ledger{};
  }
  const auto verdict = judge_rollback(step.migration, *ledger);
  step.report(verdict.success ? ConditionStatus::yes : ConditionStatus::no, verdict.reason, verdict.message);
  if (!verdict.success) step->reporter.warn(step.migration, "RollbackingFailed", "RollBack", verdict.message);
  if (const auto stage = step.migration.rollback_stage()) step->reporter.rolled_back(*stage, verdict.success);
  put_counts(step.migration, *ledger, true);
  if (ledger->success.size() == ledger->cleaned.size()) co_return co_await finish(step, *ledger, step.successor());
  co_return step.jump_to(phases::cleaning, "verifying the clusters before anything is deleted");
}

}  // namespace

Handler rollbacking_phase() {
  return Handler::serial(
      {.description = "roll back the clusters that did not arrive", .view = phase::View::checklist},
      {step({.name = "take-up", .description = "accept a requested rollback", .checkpoint = true}, accept_request),
       step({.name = "acknowledge", .description = "remove the request's annotation"}, acknowledge_request),
       step({.name = "late-arrivals", .description = "keep what arrived late", .checkpoint = true}, keep_late_arrivals),
       step({.name = "credential", .description = "withdraw the clusters' credential"}, withdraw_credential),
       // Neither hub waits for the other.
       Handler::parallel(
           {.name = "hubs", .description = "restore both hubs"},
           {Handler::serial({.name = "source-hub", .description = "restore the source"},
                            {step({.name = "source", .description = "attach the clusters again"}, restore_source),
                             step({.name = "source-helpers", .description = "delete the migration's own objects"},
                                  restore_source_objects)}),
            Handler::serial({.name = "target-hub", .description = "restore the target"},
                            {step({.name = "target", .description = "delete what was created"}, restore_target),
                             step({.name = "target-helpers", .description = "delete the migration's own objects"},
                                  restore_target_objects)})}),
       step({.name = "conclusion", .description = "report the result"}, conclude_rollback)});
}

}  // namespace hubferry::migration
