#include <set>

#include "hubferry/async/task_scope.hpp"
#include "migration/attempts.hpp"
#include "migration/definition.hpp"
#include "migration/outdated_secrets.hpp"
#include "migration/own_objects.hpp"
#include "migration/pending.hpp"

namespace hubferry::migration {

namespace {

using kube::ConditionStatus;

/// How old the comparison of a cluster's objects may be when the cluster is deleted from the source. Counted from its
/// end: on a slow hub it may itself take longer.
constexpr Duration comparison_lifetime = std::chrono::minutes{2};

/// Arrived, and still on the source.
ClusterNames candidates(const Ledger& ledger) {
  ClusterNames names;
  for (const auto& name : ledger.success)
    if (!ledger.cleaned.contains(name)) names.push_back(name);
  return names;
}

/// In Cleaning each cluster has arrived or failed: of another one the ledger has lost the record, by its deletion or by
/// somebody's edit. The target knows, but may have lost some since, or be lost itself. In Cleaning the source has
/// claimed and denied only clusters that had arrived: what it holds like that counts as arrived, and is proven, or not,
/// as all others are. Without an answer nothing is decided, until there is one.
Awaitable<> recover_arrivals(Step& step, Ledger& ledger, WallTime since, Pending& pending) {
  const auto unrecorded = ledger.in_flight();
  if (unrecorded.empty()) co_return;
  TargetOperation look = [&](hubagent::TargetHub& hub, ClusterNames clusters) {
    return find_arrived(hub, step.migration.ref(), std::move(clusters), since);
  };
  auto arrived = co_await each_on_target(step, unrecorded, look);
  auto unproven = arrived.not_done();
  SourceOperation is_held = [&](hubagent::SourceHub& hub, ClusterNames clusters) {
    return hub.returnable(step.migration.ref(), std::move(clusters));
  };
  auto held = co_await each_on_source(step, names_of(unproven), is_held);
  // It begins to delete only what has arrived.
  for (const auto& [cluster, failure] : held.failed)
    if (failure.reason == to_string(hubagent::FailureReason::deletion_begun)) held.done.push_back(cluster);
  for (const auto& names : {arrived.done, held.done})
    for (const auto& cluster : names) ledger.succeed(cluster);
  for (const auto& cluster : held.done) unproven.erase(cluster);
  pending.add(step.migration.to(), unproven);
}

/// The part of the bundle that failed.
hubagent::Bundle failed_part(hubagent::Bundle bundle, const Outcome& outcome) {
  std::set<std::string> failed;
  for (const auto& one : outcome.failed) failed.insert(one.cluster);
  std::erase_if(bundle.clusters, [&](const auto& resources) { return !failed.contains(resources.cluster); });
  return bundle;
}

/// What somebody changed on the source after it was copied is copied once more: until it is deleted there, the source
/// is authoritative.
Awaitable<OperationResult<Outcome>> verify_or_copy_again(Step& step, hubagent::TargetHub& target,
                                                         hubagent::Bundle bundle) {
  const auto ref = step.migration.ref();
  auto verified = co_await target.verify(ref, bundle);
  if (!verified) co_return OperationError{verified.error()};
  if (verified->failed.empty()) co_return std::move(*verified);
  auto differing = failed_part(std::move(bundle), *verified);
  step.log().info("resources differ, copying them again", {{"clusters", differing.clusters.size()}});
  auto copied = co_await target.deploy(ref, differing);
  if (!copied) co_return OperationError{copied.error()};
  auto once_more = co_await target.verify(ref, std::move(differing));
  if (!once_more) co_return OperationError{once_more.error()};
  once_more->done.insert(once_more->done.end(), verified->done.begin(), verified->done.end());
  co_return std::move(*once_more);
}

/// What the target's controllers act on is no longer as it was sent: it was proven before it was released to them, and
/// must not be overwritten. It must all be there, though.
Awaitable<OperationResult<Outcome>> complete_released(Step& step, hubagent::TargetHub& target,
                                                      hubagent::Bundle bundle) {
  auto completed = co_await target.complete(step.migration.ref(), std::move(bundle));
  if (!completed) co_return OperationError{completed.error()};
  co_return std::move(*completed);
}

using CompareBundle =
    std::function<Awaitable<OperationResult<Outcome>>(Step&, hubagent::TargetHub& target, hubagent::Bundle)>;

/// What the target says of clusters, and what the source does.
struct Comparison {
  Results on_target;
  Failures on_source;  // not collected there
};

Awaitable<> compare_bundle(Step& step, Results& compared, const CompareBundle& compare, hubagent::Bundle bundle) {
  ClusterNames clusters;
  for (const auto& resources : bundle.clusters) clusters.push_back(resources.cluster);
  auto compare_it = [&](hubagent::TargetHub& hub) { return compare(step, hub, bundle); };
  auto outcome = co_await once_on_target(step, compare_it);
  if (outcome)
    compared.add({outcome->done, failures_of(step, *outcome), {}, {}});
  else
    compared.add({{}, {}, clusters, operation_failed(step.target_name(), outcome.error())});
}

/// Every object that the source has of these clusters is on the target. Those that the source has no more were deleted
/// by a previous process.
Awaitable<Comparison> compare(Step& step, ClusterNames clusters, CompareBundle compare_it) {
  Comparison comparison;
  if (clusters.empty()) co_return comparison;
  hubagent::BundleSink sink = [&](hubagent::Bundle bundle) {
    return compare_bundle(step, comparison.on_target, compare_it, std::move(bundle));
  };
  auto collect = [&](hubagent::SourceHub& hub) { return hub.collect(step.migration.ref(), clusters, sink); };
  auto collected = co_await attempt_on_source(step, collect);
  if (!collected) {
    // What is known of some of them is not used without the others: the next round compares them all.
    const Results none{{}, {}, clusters, operation_failed(step.source_name(), collected.error())};
    co_return Comparison{{}, none.not_done()};
  }
  for (const auto& [cluster, failure] : failures_of(step, *collected)) {
    if (failure.reason == to_string(hubagent::FailureReason::cluster_not_found))
      comparison.on_target.done.push_back(cluster);
    else
      comparison.on_source.emplace(cluster, failure);
  }
  co_return comparison;
}

/// One round over all clusters.
struct Cleanup {
  Step& step;
  WallTime since;        // the cut-over: a renewal on the target after it shows that the cluster is there
  WallTime proof_since;  // one after this proves that it may be deleted from the source
  Pending& pending;
  std::set<std::string> released;
  Failures unverified;
  std::set<std::string> refuted = {};  // by the last look at the target
  std::set<std::string> proven = {};   // likewise
  std::size_t arrived = 0;
  Unproven unproven = {};
};

void keep_unverified(Cleanup& cleanup, const Failures& failures) {
  for (const auto& [cluster, failure] : failures) cleanup.unverified.insert_or_assign(cluster, failure);
  cleanup.pending.add(cleanup.step.migration.to(), failures);
}

/// The last look at the target before a cluster is deleted from the source. Its error is never the source's.
Awaitable<hubagent::Result<>> confirm_arrival(Cleanup& cleanup, std::string cluster, WallTime compared) {
  auto& step = cleanup.step;
  const auto not_proven = [&](const std::string& why) {
    cleanup.refuted.insert(cluster);
    return hubagent::Error{
        hubagent::FailureReason::unknown,
        "not deleted from " + step.source_name() + ", since it is not proven on " + step.target_name() + ": " + why};
  };
  if (step.now() - compared > comparison_lifetime) co_return not_proven("its objects were compared too long ago");
  auto look = [&](hubagent::TargetHub& hub) { return hub.confirm(step.migration.ref(), cluster, cleanup.proof_since); };
  auto confirmed = co_await once_on_target(step, look);
  if (!confirmed) co_return not_proven(confirmed.error().message());
  cleanup.proven.insert(cluster);
  if (step.phase() == phases::cleaning)
    step.set_progress(std::to_string(cleanup.proven.size()) + " of " + count_clusters(cleanup.arrived) + " proven on " +
                      step.target_name() + ", deleted from " + step.source_name() + " at once");
  co_return hubagent::Result<>{};
}

/// Which clusters are on the target. What was released is gone with a copy that the target no longer has. Such a
/// cluster is only looked at: if it has registered without its copy, it is adopted in a later round, once the ledger
/// says that it must be compared again.
Awaitable<Results> find_present(Cleanup& cleanup, ClusterNames clusters) {
  auto& step = cleanup.step;
  const auto ref = step.migration.ref();
  auto is_released = [&](const std::string& cluster) { return cleanup.released.contains(cluster); };
  const auto others = std::ranges::partition(clusters, is_released);
  TargetOperation look_only = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return hub.arrived(ref, std::move(names), cleanup.since);
  };
  auto present = co_await each_on_target(step, {clusters.begin(), others.begin()}, look_only);
  for (const auto& [cluster, failure] : present.failed)
    if (failure.reason == to_string(hubagent::FailureReason::cluster_not_found)) cleanup.released.erase(cluster);
  TargetOperation look = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return find_arrived(hub, ref, std::move(names), cleanup.since);
  };
  present.add(co_await each_on_target(step, {others.begin(), others.end()}, look));
  cleanup.unproven.add(present.not_done());
  co_return present;
}

/// What the source has left on a cluster is deleted as soon as the source has deleted it: not only when its namespace
/// is gone there too.
Awaitable<Results> delete_from_source(Cleanup& cleanup, ClusterNames clusters, WallTime compared_at) {
  auto& step = cleanup.step;
  Deletions deletions{clusters.size()};
  SourceOperation delete_there = [&](hubagent::SourceHub& hub, ClusterNames names) {
    hubagent::SourceHub::ConfirmArrival confirm = [&cleanup, compared_at](std::string cluster) {
      return confirm_arrival(cleanup, std::move(cluster), compared_at);
    };
    hubagent::SourceHub::OnDeletion on_deletion = [&](const std::string& cluster) { deletions.add(cluster); };
    return hub.clean(step.migration.ref(), std::move(names), std::move(confirm), std::move(on_deletion));
  };
  Results deleted;
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(delete_secrets_early(step, deletions));
    deleted = co_await each_on_source(step, std::move(clusters), delete_there);
    deletions.end();
  };
  co_await async::with_scope(body);
  co_return deleted;
}

/// Clusters that left the source by themselves, before it could deny them, and that it could not deny since: while both
/// hubs accept them their agents may go back. What the target has seen until then is no proof any more: the next rounds
/// look again.
Awaitable<> detach_late(Cleanup& cleanup, ClusterNames clusters) {
  if (clusters.empty()) co_return;
  auto& step = cleanup.step;
  // Before the first write: should this process die after it, its successor takes no older renewal for a proof.
  step.migration.set_late_detachment(step.now());
  co_await step.save();
  SourceOperation detach = [&](hubagent::SourceHub& hub, ClusterNames names) {
    return hub.detach_arrived(step.migration.ref(), std::move(names), std::nullopt);
  };
  const auto detached = co_await each_on_source(step, std::move(clusters), detach);
  step.migration.set_late_detachment(step.now());
  if (!detached.done.empty())
    step.log().info("clusters that left the source by themselves were detached", {{"clusters", detached.done.size()}});
  const Failure waits{
      step.phase(), std::string{to_string(hubagent::FailureReason::cluster_attached)},
      step.source_name() + " denies it from now on; waiting for its agent to renew its lease on " + step.target_name()};
  for (const auto& cluster : detached.done) keep_unverified(cleanup, {{cluster, waits}});
  // Their agents may go back to the source.
  cleanup.pending.add(step.migration.from(), detached.not_done());
  cleanup.pending.keep_credential();
}

/// Some clusters, from the first look at the target to their deletion from the source. Only what the last step has
/// proven continues to the next.
Awaitable<Results> clean_batch(Cleanup& cleanup, ClusterNames clusters) {
  auto& step = cleanup.step;
  const auto ref = step.migration.ref();
  auto present = co_await find_present(cleanup, std::move(clusters));
  keep_unverified(cleanup, present.not_done());
  if (present.done.empty()) co_return Results{};

  auto is_released = [&](const std::string& cluster) { return cleanup.released.contains(cluster); };
  const auto fresh = std::ranges::partition(present.done, is_released);
  auto completed = co_await compare(step, {present.done.begin(), fresh.begin()}, complete_released);
  // They need the credential no more, whatever keeps the source from being read.
  cleanup.pending.add(step.migration.from(), completed.on_source);
  auto verified = co_await compare(step, {fresh.begin(), fresh.end()}, verify_or_copy_again);
  keep_unverified(cleanup, verified.on_source);
  auto compared = std::move(completed.on_target);
  compared.add(std::move(verified.on_target));
  const auto compared_at = step.now();
  keep_unverified(cleanup, compared.not_done());
  if (compared.done.empty()) co_return Results{};

  TargetOperation finish_there = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return hub.clean(ref, std::move(names));
  };
  auto finished = co_await each_on_target(step, compared.done, finish_there);
  cleanup.pending.add(step.migration.to(), finished.not_done());
  cleanup.released.insert(finished.done.begin(), finished.done.end());
  if (finished.done.empty()) co_return Results{};

  auto deleted = co_await delete_from_source(cleanup, finished.done, compared_at);
  ClusterNames attached;
  for (const auto& [cluster, failure] : deleted.not_done()) {
    // Those wait for the target, and need the credential still.
    if (cleanup.refuted.contains(cluster))
      keep_unverified(cleanup, {{cluster, failure}});
    else if (failure.reason == to_string(hubagent::FailureReason::cluster_attached))
      attached.push_back(cluster);
    else
      cleanup.pending.add(step.migration.from(), {{cluster, failure}});
  }
  co_await detach_late(cleanup, std::move(attached));
  co_return deleted;
}

void report_verification(Step& step, const Ledger& ledger, const Failures& unverified) {
  if (unverified.empty()) {
    step.report(conditions::verified, ConditionStatus::yes, "MigrationVerified",
                "complete on " + step.target_name() + ": " + count_clusters(ledger.success.size()));
    return;
  }
  step.report(conditions::verified, ConditionStatus::no, reasons::error,
              "not deleted from " + step.source_name() + ", since they are not proven complete on " +
                  step.target_name() + ": " + some_failures(unverified) + ".");
}

/// A rollback was requested, and nothing returns.
Awaitable<kube::Result<>> answer_request(Step& step, const Ledger& ledger, const Unproven& unproven) {
  auto text = std::string{names::request_annotation} + ": " + names::rollback_request + " returned no cluster: ";
  if (!unproven.elsewhere.empty())
    text += some_failures(unproven.elsewhere);
  else if (candidates(ledger).empty())
    text += step.source_name() + " has none any more. To move them back from " + step.target_name() +
            ", create a migration in the other direction";
  else
    text += step.target_name() + " has those that " + step.source_name() + " still has, or was not given up as lost";
  auto dropped = co_await change_metadata(step, drop_rollback_request);
  if (!dropped) co_return dropped.error();
  step->reporter.warn(step.migration, "RequestRefused", "CleanUp", text);
  co_return kube::Result<>{};
}

/// Verifies each cluster on the target, and deletes it from the source at once.
Awaitable<ReconcileState> clean_clusters(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return postpone(step, ledger.error().message());
  // One that had completed has it no more.
  if (step.migration.requests_rollback() && !kube::has_finalizer(step.migration.object, names::finalizer)) {
    auto held = co_await change_metadata(step, put_own_finalizer);
    if (!held) co_return postpone(step, OperationError{held.error()}.message());
  }
  if (const auto returning = find_unfinished_returns(step.migration, *ledger); !returning.empty())
    co_return return_from_cleaning(step, returning);
  Pending pending{step.migration};
  co_await recover_arrivals(step, *ledger, step.migration.cut_over().value_or(step.now()), pending);
  Unproven unproven;
  auto cleaned = co_await clean_arrived(step, *ledger, pending, &unproven);
  const auto returning = co_await find_returning(step, unproven, pending);
  LedgerChange record = [&](Ledger& lists) {
    cleaned(lists);
    for (const auto& [cluster, failure] : returning) lists.give_back(cluster, failure);
    lists.waiting = pending.waiting();
    if (returning.empty()) lists.leave_behind_arrived(pending.given_up());
  };
  auto saved = co_await amend_ledger(step, *ledger, record);
  if (!saved) co_return postpone(step, saved.error().message());
  put_counts(step.migration, *ledger, true);
  if (!returning.empty()) co_return return_from_cleaning(step, returning);
  if (pending.empty()) {
    if (step.migration.requests_rollback()) {
      auto answered = co_await answer_request(step, *ledger, unproven);
      if (!answered) co_return postpone(step, OperationError{answered.error()}.message());
    }
    clear_problem(step);
    co_return phase::done();
  }
  // A cluster that only waits for the source to delete it needs the credential no more.
  if (!pending.waits_for(step.migration.to()) && !pending.keeps_credential())
    co_await delete_own_objects(step, pending);
  co_return postpone(step, pending.message() + why_not_returning(step.migration, unproven));
}

/// A request that comes after the step "clusters" is granted like one before it. Absent: the step continues, since
/// there is none, or nothing returns.
Awaitable<std::optional<ReconcileState>> grant_late_request(Step& step) {
  if (!step.migration.requests_rollback()) {
    clear_problem(step);
    co_return std::nullopt;
  }
  auto result = co_await clean_clusters(step);
  if (result.done && result.next.empty()) co_return std::nullopt;
  co_return result;
}

/// Of the migration, on clusters that are the target's alone: those that returned to the source need theirs. What the
/// agents do not delete in time stays: their tokens are revoked, and nobody waits for a cluster that is switched off.
Awaitable<ReconcileState> delete_left_secrets(Step& step) {
  if (auto granted = co_await grant_late_request(step)) co_return std::move(*granted);
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return postpone(step, ledger.error().message());
  const auto results = co_await delete_remaining_secrets(step, ledger->cleaned);
  Pending pending{step.migration};
  if (results.unanswered) pending.add_objects(step.migration.to(), results.unknown_message);
  auto stay = results.not_done();
  for (auto one = stay.begin(); one != stay.end();) {
    const bool is_open = leaves_work(one->second);
    if (is_open) pending.add(step.migration.to(), one->first, one->second.message);
    one = is_open ? stay.erase(one) : std::next(one);
  }
  if (!pending.empty()) co_return postpone(step, pending.message());
  if (!stay.empty()) step->reporter.warn(step.migration, "SecretsLeft", "CleanUp", some_failures(stay));
  clear_problem(step);
  co_return phase::done();
}

Awaitable<ReconcileState> clean_objects(Step& step) {
  if (auto granted = co_await grant_late_request(step)) co_return std::move(*granted);
  co_return co_await delete_own_objects_or_postpone(step);
}

/// How the source takes back what it still has.
std::string advice_for_denied(const Migration& migration, const Ledger& ledger) {
  const auto denied = candidates(ledger);
  if (denied.empty()) return {};
  return ". Hub '" + migration.from() + "' still has " + count_clusters(denied.size()) +
         " and denies them. If they are on no other hub, neither on '" + migration.to() +
         "' nor where they may have moved since, set the annotation " + names::request_annotation + ": " +
         names::rollback_request + " on the migration to return them";
}

/// Clusters that did not arrive make the migration Failed.
Awaitable<ReconcileState> conclude_cleaning(Step& step) {
  if (auto granted = co_await grant_late_request(step)) co_return std::move(*granted);
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return phase::failed(phase::Error::network(ledger.error().message()));
  if (ledger->left_behind.empty()) {
    step.report(ConditionStatus::yes, "ResourceCleaned",
                "deleted from " + step.source_name() + ": " + count_clusters(ledger->cleaned.size()) +
                    ", and the migration's own objects");
  } else {
    const auto text = left_behind_text(*ledger) + advice_for_denied(step.migration, *ledger);
    step.report(ConditionStatus::no, reasons::left_behind, text);
    step->reporter.warn(step.migration, reasons::left_behind, "CleanUp", text);
  }
  put_counts(step.migration, *ledger, true);
  co_return co_await finish(step, *ledger, ledger->all_arrived() ? phases::completed : phases::failed);
}

}  // namespace

Awaitable<LedgerChange> clean_arrived(Step& step, const Ledger& ledger, Pending& pending, Unproven* unproven) {
  const auto now = step.now();
  Cleanup cleanup{step,
                  step.migration.cut_over().value_or(now),
                  step.migration.proof_since().value_or(now),
                  pending,
                  ledger.released,
                  {}};
  cleanup.arrived = ledger.success.size();
  cleanup.proven = ledger.cleaned;
  ClusterOperation clean = [&](ClusterNames batch) { return clean_batch(cleanup, std::move(batch)); };
  auto results = co_await in_batches(candidates(ledger), clean);
  report_verification(step, ledger, cleanup.unverified);
  if (unproven != nullptr) *unproven = std::move(cleanup.unproven);
  std::set<std::string> unverified;
  for (const auto& [name, failure] : cleanup.unverified) unverified.insert(name);
  co_return [arrived = ledger.success, released = std::move(cleanup.released), done = std::move(results.done),
             unverified = std::move(unverified)](Ledger& lists) {
    for (const auto& name : arrived) lists.succeed(name);
    lists.released = released;
    lists.cleaned.insert(done.begin(), done.end());
    lists.unverified = unverified;
  };
}

Handler cleaning_phase() {
  return Handler::serial(
      {.description = "verify the clusters on the target, then delete them from the source",
       .view = phase::View::checklist},
      {step({.name = "clusters", .description = "verify each cluster on the target, delete it from the source"},
            clean_clusters),
       step({.name = "secrets", .description = "delete the Secrets that the source has left on the clusters"},
            delete_left_secrets),
       step({.name = "objects", .description = "delete the migration's own objects, the credential last"},
            clean_objects),
       step({.name = "conclusion", .description = "report the result"}, conclude_cleaning)});
}

}  // namespace hubferry::migration
