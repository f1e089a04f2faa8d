#include <set>

#include "migration/credential.hpp"
#include "migration/definition.hpp"

namespace hubferry::migration {

namespace {

using kube::ConditionStatus;

/// Arrived, and still on the source.
ClusterNames candidates(const Ledger& ledger) {
  ClusterNames names;
  for (const auto& name : ledger.success)
    if (!ledger.cleaned.contains(name)) names.push_back(name);
  return names;
}

/// The ledger was deleted, and with it the record of which clusters arrived: the target knows.
Awaitable<> recover_arrivals(Step& step, Ledger& ledger, WallTime since) {
  if (!ledger.success.empty()) co_return;
  auto find = [&](hubagent::TargetHub& hub) { return hub.arrived(step.migration.ref(), ledger.all, since); };
  auto arrived = co_await on_target(step, find);
  if (!arrived) co_return;
  for (const auto& cluster : *arrived) ledger.succeed(cluster);
}

/// The clusters that are Available on the target now. One that is not for a moment has one attempt's time to return.
Awaitable<std::set<std::string>> find_present(Step& step, const ClusterNames& clusters, WallTime since) {
  std::set<std::string> present;
  auto watch = [&](hubagent::TargetHub& hub) {
    return hub.await_arrivals(step.migration.ref(), clusters, since,
                              [&](const std::string& cluster) { present.insert(cluster); });
  };
  auto watched = co_await on_target(step, step.time().one_attempt(), watch);
  if (!watched)
    step.log().warn("not all clusters are Available on the target", {{"error", watched.error().describe()}});
  co_return present;
}

/// What the comparison found, over all attempts.
struct Findings {
  std::set<std::string> complete;
  Failures failures;
  std::optional<OperationError> target_error;
};

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

Awaitable<> compare(Step& step, Findings& findings, hubagent::Bundle bundle) {
  if (findings.target_error) co_return;
  auto verify_it = [&](hubagent::TargetHub& hub) { return verify_or_copy_again(step, hub, bundle); };
  auto outcome = co_await once_on_target(step, verify_it);
  if (!outcome) {
    findings.target_error = outcome.error();
    co_return;
  }
  findings.complete.insert(outcome->done.begin(), outcome->done.end());
  findings.failures.merge(failures_of(step, *outcome));
}

/// Compares the clusters that were not found complete yet.
Awaitable<OperationResult<>> compare_all(Step& step, ClusterNames clusters, Findings& findings) {
  std::erase_if(clusters, [&](const std::string& name) { return findings.complete.contains(name); });
  findings.failures.clear();
  findings.target_error.reset();
  hubagent::BundleSink sink = [&](hubagent::Bundle bundle) { return compare(step, findings, std::move(bundle)); };
  auto collect = [&](hubagent::SourceHub& hub) { return hub.collect(step.migration.ref(), clusters, sink); };
  auto collected = co_await once_on_source(step, collect);
  if (!collected) co_return collected.error();
  if (findings.target_error) co_return *findings.target_error;
  findings.failures.merge(failures_of(step, *collected));
  co_return OperationResult<>{};
}

Failures find_unverified(const Step& step, const ClusterNames& clusters, const std::set<std::string>& present,
                         const Findings& findings) {
  Failures unverified;
  for (const auto& name : clusters) {
    if (!present.contains(name)) {
      unverified[name] = {step.phase(), reasons::error, "not Available on " + step.target_name()};
    } else if (const auto found = findings.failures.find(name); found != findings.failures.end()) {
      unverified[name] = found->second;
    } else if (!findings.complete.contains(name)) {
      unverified[name] = {step.phase(), reasons::error, "its resources could not be compared"};
    }
  }
  return unverified;
}

/// Nothing is deleted from the source without proof: the cluster is Available on the target, and all that it has on the
/// source is there.
Awaitable<ReconcileState> verify(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return continue_despite(step, Trouble{ledger.error()});
  const auto since = step.migration.cut_over().value_or(step.now());
  co_await recover_arrivals(step, *ledger, since);
  const auto clusters = candidates(*ledger);
  Findings findings;
  std::set<std::string> present;
  if (!clusters.empty()) {
    present = co_await find_present(step, clusters, since);
    const ClusterNames here{present.begin(), present.end()};
    auto comparing = [&] { return compare_all(step, here, findings); };
    auto compared = co_await retry(step, step.time().share(0.6), comparing);
    if (!compared) step.log().warn("cannot compare the hubs", {{"error", compared.error().describe()}});
  }
  const auto unverified = find_unverified(step, clusters, present, findings);
  ledger->unverified.clear();
  for (const auto& [name, failure] : unverified) ledger->unverified.insert(name);
  auto saved = co_await save_ledger(step, *ledger);
  if (!saved) co_return continue_despite(step, Trouble{saved.error()});
  if (unverified.empty()) {
    step.report(conditions::verified, ConditionStatus::yes, "MigrationVerified",
                "complete on " + step.target_name() + ": " + count_clusters(ledger->success.size()));
    co_return phase::done();
  }
  const auto message = "not deleted from " + step.source_name() + ", since they are not proven complete on " +
                       step.target_name() + ": " + some_failures(unverified) + ".";
  step.report(conditions::verified, ConditionStatus::no, reasons::error, message);
  step->reporter.clusters_failed(step.migration, step.phase(), unverified);
  co_return continue_despite(step, Trouble{message});
}

// From here on each step leaves some of the time to those after it, so that one that hangs does not block them.

Awaitable<ReconcileState> clean_target(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return continue_despite(step, Trouble{ledger.error()});
  const auto clusters = ledger->to_clean();
  if (clusters.empty()) co_return phase::done();
  auto clean = [&](hubagent::TargetHub& hub) { return hub.clean(step.migration.ref(), clusters); };
  auto outcome = co_await on_target(step, step.time().share(0.5), clean);
  if (!outcome) co_return continue_despite(step, Trouble{step.target_name(), outcome.error()});
  const auto failures = failures_of(step, *outcome);
  if (failures.empty()) co_return phase::done();
  co_return continue_despite(step, Trouble{"on " + step.target_name() + ": " + some_failures(failures)});
}

Awaitable<ReconcileState> clean_source(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return continue_despite(step, Trouble{ledger.error()});
  const auto clusters = ledger->to_clean();
  if (clusters.empty()) co_return phase::done();
  auto clean = [&](hubagent::SourceHub& hub) { return hub.clean(step.migration.ref(), clusters); };
  auto outcome = co_await on_source(step, step.time().share(0.8), clean);
  if (!outcome) co_return continue_despite(step, Trouble{step.source_name(), outcome.error()});
  ledger->cleaned.insert(outcome->done.begin(), outcome->done.end());
  auto saved = co_await save_ledger(step, *ledger);
  if (!saved) co_return continue_despite(step, Trouble{saved.error()});
  const auto failures = failures_of(step, *outcome);
  if (failures.empty()) co_return phase::done();
  co_return continue_despite(step, Trouble{"on " + step.source_name() + ": " + some_failures(failures)});
}

Awaitable<ReconcileState> clean_source_objects(Step& step) {
  auto remove = [&](hubagent::SourceHub& hub) { return hub.delete_migration_objects(step.migration.ref()); };
  auto removed = co_await on_source(step, step.time().share(0.5), remove);
  if (removed) co_return phase::done();
  co_return continue_despite(step, Trouble{step.source_name(), removed.error()});
}

Awaitable<ReconcileState> clean_target_objects(Step& step) {
  const auto credential = step.migration.credential();
  if (!credential) co_return phase::done();
  auto remove = [&](hubagent::TargetHub& hub) {
    return hub.delete_migration_objects(step.migration.ref(), credential->identity);
  };
  auto removed = co_await on_target(step, step.time().share(0.5), remove);
  if (removed) co_return phase::done();
  co_return continue_despite(step, Trouble{step.target_name(), removed.error()});
}

/// Last: an agent that restarts before it has its final credential still needs this one.
Awaitable<ReconcileState> remove_credential(Step& step) {
  const auto credential = step.migration.credential();
  if (!credential) co_return phase::done();
  auto remove = [&] { return delete_credential(step, *credential); };
  auto removed = co_await retry(step, step.time(), remove);
  if (removed) co_return phase::done();
  co_return continue_despite(step, Trouble{"the global hub", removed.error()});
}

/// A failed cleanup is a warning; clusters that did not arrive make the migration Failed.
Awaitable<ReconcileState> conclude_cleaning(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return phase::failed(phase::Error::network(ledger.error().message()));
  std::string text;
  bool timed_out = false;
  for (const auto& problem : step.migration.problems(activities::cleanup)) {
    text += (text.empty() ? "" : " ") + problem.message;
    timed_out = timed_out || problem.timed_out;
  }
  if (text.empty()) {
    step.report(ConditionStatus::yes, "ResourceCleaned",
                "deleted from " + step.source_name() + ": " + count_clusters(ledger->cleaned.size()) +
                    ", and the migration's own objects");
  } else {
    const auto message = "[Warning - Cleanup Issues] " + text;
    step.report(ConditionStatus::no, timed_out ? reasons::timeout : reasons::error, message);
    step->reporter.warn(step.migration, "CleaningFailed", "CleanUp", message);
  }
  put_counts(step.migration, *ledger, true);
  co_return co_await finish(step, *ledger, ledger->all_arrived() ? phases::completed : phases::failed);
}

}  // namespace

Handler cleaning_phase() {
  return Handler::serial(
      {.description = "verify the clusters on the target, then delete them from the source",
       .view = phase::View::checklist},
      {step({.name = "verify",
             .description = "each cluster is Available and complete on the target",
             .checkpoint = true},
            verify),
       step({.name = "target", .description = "remove the migration's labels and annotations"}, clean_target),
       step({.name = "source", .description = "delete the clusters from the source"}, clean_source),
       step({.name = "source-helpers", .description = "delete the migration's own objects on the source"},
            clean_source_objects),
       step({.name = "target-helpers", .description = "delete the migration's own objects on the target"},
            clean_target_objects),
       step({.name = "credential", .description = "delete the credential, last"}, remove_credential),
       step({.name = "conclusion", .description = "report the result"}, conclude_cleaning)});
}

}  // namespace hubferry::migration
