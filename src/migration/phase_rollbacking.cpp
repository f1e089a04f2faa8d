#include "hubferry/kube/edit.hpp"
#include "migration/credential.hpp"
#include "migration/definition.hpp"
#include "migration/orders.hpp"
#include "migration/rollback_plan.hpp"

namespace hubferry::migration {

namespace {

using hubagent::Stage;
using kube::ConditionStatus;

/// What one order of the rollback could not do, by cluster.
std::string clusters_sentence(std::string_view hub, const std::map<std::string, Failure>& failures) {
  return "on " + std::string{hub} + ": " + some_failures(failures);
}

/// A rollback that somebody asks for waits for migrations that have one of the clusters by now.
Awaitable<> wait_for_others(Step& step, const Ledger& ledger) {
  ClusterNames concerned;
  std::ranges::set_union(ledger.to_roll_back(), ledger.to_undo(), std::back_inserter(concerned));
  while (auto obstacle = step->admission.begin_again(step.migration, concerned)) {
    if (condition_message(step.migration, conditions::rolled_back) == *obstacle) {
      co_await step->admission.changed();
      continue;
    }
    step.report(ConditionStatus::no, "Waiting", *obstacle);
    co_await step.save();
  }
}

/// Where it was asked for: holds on to the resource again.
Awaitable<ReconcileState> take_up(Step& step) {
  auto& migration = step.migration;
  if (!migration.asks_for_rollback()) co_return phase::done();
  auto ledger = co_await load_ledger(step);
  if (ledger) {
    co_await wait_for_others(step, *ledger);
    migration.enter(phases::rollbacking, step.now());
  }
  step.report(ConditionStatus::no, "Waiting", "trying the rollback again, as asked for");
  auto held =
      co_await kube::add_finalizer(step->global, managed_cluster_migrations, migration.object.key(), names::finalizer);
  if (!held) co_return phase::failed(phase::Error{held.error()});
  if (held->uid() == migration.object.uid()) migration.object = *held;
  co_return phase::done();
}

/// The request is on record as a phase: its annotation has done its work.
Awaitable<ReconcileState> acknowledge(Step& step) {
  auto& migration = step.migration;
  if (!migration.asks_for_rollback()) co_return phase::done();
  json::object annotations{{names::request_annotation, nullptr}};
  json::object patch{{"metadata", json::object{{"annotations", std::move(annotations)}}}};
  auto patched = co_await step->global.merge_patch(managed_cluster_migrations, migration.object.key(), patch);
  if (!patched) co_return phase::failed(phase::Error{patched.error()});
  if (patched->uid() == migration.object.uid()) migration.object = *patched;
  co_return phase::done();
}

/// Which of them are on the target after all? They stay there. Whoever was not seen there goes back, also when nobody
/// can be asked: the source first.
Awaitable<> look_for_late_arrivals(Step& step, Ledger& ledger) {
  const auto since = step.migration.time("cutOverTime");
  const auto plan = plan_rollback(step.migration, ledger, ledger.to_roll_back());
  const auto found = plan.find(Stage::registering);
  if (!since || found == plan.end()) co_return;
  auto order = [&](hubagent::TargetHub& target) { return target.arrived(step.migration.ref(), found->second, *since); };
  Step briefly = step.until(async::later(step.clock().now(), step.answer_time()));
  auto arrived = co_await ask_target(briefly, order);
  if (!arrived) {
    step.log().warn("cannot see who arrived late", {{"error", arrived.error().describe()}});
    co_return;
  }
  for (const auto& cluster : *arrived) ledger.succeed(cluster);
}

Awaitable<ReconcileState> keep_late_arrivals(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return note_and_go_on(step, sentence_of(ledger.error()));
  co_await look_for_late_arrivals(step, *ledger);
  fail_all_others(step.migration, *ledger);
  auto kept = co_await keep_ledger(step, *ledger);
  if (!kept) co_return note_and_go_on(step, sentence_of(kept.error()));
  if (ledger->all_arrived())
    step.report(conditions::registered, ConditionStatus::yes, "ClusterRegistered",
                "all " + count_clusters(ledger->all.size()) + " are Available on " + step.target_name() +
                    ", some of them late");
  co_return phase::done();
}

Awaitable<kube::Result<>> withdraw(Step& step) {
  const auto credential = step.migration.credential();
  if (!credential) co_return kube::Result<>{};
  auto deleting = [&] { return delete_credential(step, *credential); };
  auto deleted = co_await ask(step, deleting);
  auto order = [&](hubagent::TargetHub& target) {
    return target.delete_migration_objects(step.migration.ref(), credential->identity);
  };
  auto removed = co_await ask_target(step, order);
  if (!deleted) co_return deleted.error();
  co_return removed;
}

/// Before the source is restored: agents that can still reach the target would not return. A target that does not
/// answer is not waited for; its turn comes once more at the end.
Awaitable<ReconcileState> withdraw_credential(Step& step) {
  Step briefly = step.until(async::later(step.clock().now(), step.answer_time()));
  auto withdrawn = co_await withdraw(briefly);
  if (!withdrawn) step.log().warn("the credential cannot be withdrawn yet", {{"error", withdrawn.error().describe()}});
  co_return phase::done();
}

/// Who is back, when the order itself did not end: those that could be migrated again.
Awaitable<> see_who_is_back(Step& step, const ClusterNames& clusters, std::set<std::string>& back) {
  auto order = [&](hubagent::SourceHub& source) { return source.validate(step.migration.ref(), clusters); };
  auto seen = co_await ask_source(step, order);
  if (seen) back.insert(seen->done.begin(), seen->done.end());
}

/// Gives the clusters back to the source, whatever the target does.
Awaitable<ReconcileState> restore_source(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return note_and_go_on(step, sentence_of(ledger.error()));
  std::string problem;
  // A tenth of the time is for looking who is back, where one cluster kept the others' answer from coming.
  Step restoring = step.until(step.deadline() - step.timeout() / 10);
  std::set<std::string> back;
  for (const auto& [stage, clusters] : plan_rollback(step.migration, *ledger, ledger->to_roll_back())) {
    bool in_hand = false;  // the source has the order, and waits for clusters
    auto order = [&](hubagent::SourceHub& source) -> Awaitable<kube::Result<Outcome>> {
      in_hand = true;
      auto answer = co_await source.roll_back(step.migration.ref(), stage, clusters);
      in_hand = false;
      co_return answer;
    };
    auto outcome = co_await ask_source(restoring, order);
    if (outcome) {
      back.insert(outcome->done.begin(), outcome->done.end());
      const auto failures = failures_of(step, *outcome);
      step->reporter.clusters_failed(step.migration, step.phase(), failures);
      if (!failures.empty()) problem += clusters_sentence(step.source_name(), failures) + ". ";
      continue;
    }
    if (in_hand && stage == Stage::registering) co_await see_who_is_back(step, clusters, back);
    problem += could_not_ask(step.source_name(), outcome.error()) + ". ";
  }
  LedgerChange bring_back = [&back](Ledger& lists) { lists.rolled_back.insert(back.begin(), back.end()); };
  auto kept = co_await amend_ledger(step, *ledger, bring_back);
  if (!kept) problem += sentence_of(kept.error());
  put_counts(step.migration, *ledger, true);
  if (ledger->to_roll_back().empty() || problem.empty()) co_return phase::done();
  co_return note_and_go_on(step, problem + "not back: " + some_names(ledger->to_roll_back()));
}

/// What the source has lost meanwhile is nowhere but on the target: no cluster is removed there unless the source says
/// that it has it. Takes the others out of `clusters`; returns a sentence about them, or nothing.
Awaitable<std::string> spare_what_the_source_lacks(Step& step, ClusterNames& clusters) {
  auto order = [&](hubagent::SourceHub& source) { return source.validate(step.migration.ref(), clusters); };
  Step briefly = step.until(async::later(step.clock().now(), step.answer_time()));
  auto seen = co_await ask_source(briefly, order);
  if (!seen) {
    const auto spared = some_names(clusters);
    clusters.clear();
    co_return could_not_ask(step.source_name(), seen.error()) + ", so nothing proves that it still has " + spared +
        ": left on " + step.target_name() + ". ";
  }
  ClusterNames lacking;
  for (const auto& failed : seen->failed)
    if (failed.reason == hubagent::reasons::not_found) lacking.push_back(failed.cluster);
  if (lacking.empty()) co_return std::string{};
  std::erase_if(clusters, [&](const std::string& name) { return std::ranges::find(lacking, name) != lacking.end(); });
  co_return "left on " + step.target_name() + ", since " + step.source_name() +
      " does not have them any more: " + some_names(lacking) + ". ";
}

/// Removes what this migration made on the target.
Awaitable<ReconcileState> restore_target(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return note_and_go_on(step, sentence_of(ledger.error()));
  std::string problem;
  std::set<std::string> undone;
  for (auto [stage, clusters] : plan_rollback(step.migration, *ledger, ledger->to_undo())) {
    if (stage != Stage::initializing) problem += co_await spare_what_the_source_lacks(step, clusters);
    if (clusters.empty()) continue;
    auto order = [&](hubagent::TargetHub& target) { return target.roll_back(step.migration.ref(), stage, clusters); };
    auto outcome = co_await ask_target(step, order);
    if (!outcome) {
      problem += could_not_ask(step.target_name(), outcome.error()) + ". ";
      continue;
    }
    undone.insert(outcome->done.begin(), outcome->done.end());
    const auto failures = failures_of(step, *outcome);
    if (!failures.empty()) problem += clusters_sentence(step.target_name(), failures) + ". ";
  }
  LedgerChange undo = [&undone](Ledger& lists) { lists.undone.insert(undone.begin(), undone.end()); };
  auto kept = co_await amend_ledger(step, *ledger, undo);
  if (!kept) problem += sentence_of(kept.error());
  if (problem.empty()) co_return phase::done();
  co_return note_and_go_on(step, problem);
}

Awaitable<ReconcileState> take_back_source_helpers(Step& step) {
  if (!step.migration.rollback_stage()) co_return phase::done();
  auto order = [&](hubagent::SourceHub& source) { return source.delete_migration_objects(step.migration.ref()); };
  auto removed = co_await ask_source(step, order);
  if (removed) co_return phase::done();
  co_return note_and_go_on(step, could_not_ask(step.source_name(), removed.error()));
}

Awaitable<ReconcileState> take_back_target_helpers(Step& step) {
  auto withdrawn = co_await withdraw(step);
  if (withdrawn) co_return phase::done();
  co_return note_and_go_on(step, could_not_ask(step.target_name(), withdrawn.error()));
}

Awaitable<ReconcileState> conclude_rollback(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) {
    // Nobody knows any more which clusters it was about: it ends, and says so.
    note_and_go_on(step, sentence_of(ledger.error()));
    ledger = Ledger{};
  }
  const auto problems = step.migration.problems("rollback");
  const auto verdict = judge_rollback(step.migration, *ledger, problems);
  step.report(verdict.success ? ConditionStatus::yes : ConditionStatus::no, verdict.reason, verdict.message);
  if (!verdict.success) step->reporter.warn(step.migration, "RollbackingFailed", "RollBack", verdict.message);
  if (const auto stage = step.migration.rollback_stage()) step->reporter.rolled_back(*stage, verdict.success);
  put_counts(step.migration, *ledger, true);
  if (ledger->success.size() == ledger->cleaned.size()) co_return co_await finish(step, *ledger, step.successor());
  co_return step.jump_to(phases::cleaning, "verifying what arrived before anything is removed");
}

}  // namespace

Handler rollbacking_phase() {
  return Handler::serial(
      {.description = "bring back what did not arrive", .view = phase::View::checklist},
      {step({.name = "take-up", .description = "a rollback that was asked for", .checkpoint = true}, take_up),
       step({.name = "acknowledge", .description = "take the request's mark away"}, acknowledge),
       step({.name = "late-arrivals", .description = "what arrived late stays", .checkpoint = true},
            keep_late_arrivals),
       step({.name = "credential", .description = "withdraw the clusters' credential"}, withdraw_credential),
       // Neither hub waits for the other.
       Handler::parallel(
           {.name = "hubs", .description = "each hub gets its state back"},
           {Handler::serial({.name = "source-hub", .description = "what the clusters came from"},
                            {step({.name = "source", .description = "give the clusters back"}, restore_source),
                             step({.name = "source-helpers", .description = "remove the migration's own objects"},
                                  take_back_source_helpers)}),
            Handler::serial({.name = "target-hub", .description = "what they did not come to"},
                            {step({.name = "target", .description = "remove what was made for them"}, restore_target),
                             step({.name = "target-helpers", .description = "remove the migration's own objects"},
                                  take_back_target_helpers)})}),
       step({.name = "conclusion", .description = "how it ended"}, conclude_rollback)});
}

}  // namespace hubferry::migration
