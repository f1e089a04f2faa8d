#include <set>

#include "migration/credential.hpp"
#include "migration/definition.hpp"
#include "migration/orders.hpp"

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

/// The lists were taken away, and with them who arrived: the target knows.
Awaitable<> recover_arrivals(Step& step, Ledger& ledger, WallTime since) {
  if (!ledger.success.empty()) co_return;
  auto order = [&](hubagent::TargetHub& target) { return target.arrived(step.migration.ref(), ledger.all, since); };
  auto arrived = co_await ask_target(step, order);
  if (!arrived) co_return;
  for (const auto& cluster : *arrived) ledger.succeed(cluster);
}

/// Which of them are Available on the target now. One that is not for a moment gets a third of the time to return.
Awaitable<std::set<std::string>> see_present(Step& step, const ClusterNames& clusters, WallTime since) {
  std::set<std::string> present;
  auto look = [&](hubagent::TargetHub& target) {
    return target.await_arrivals(step.migration.ref(), clusters, since,
                                 [&](const std::string& cluster) { present.insert(cluster); });
  };
  Step briefly = step.until(async::later(step.clock().now(), step.answer_time()));
  auto seen = co_await ask_target(briefly, look);
  if (!seen) step.log().warn("not all clusters are Available on the target", {{"error", seen.error().describe()}});
  co_return present;
}

/// What was found about the content of clusters, over all attempts.
struct Findings {
  std::set<std::string> complete;
  std::map<std::string, Failure> failures;
  std::optional<kube::Error> target_error;
};

/// Those of the bundle that failed.
hubagent::Bundle failed_part(hubagent::Bundle bundle, const Outcome& outcome) {
  std::set<std::string> failed;
  for (const auto& one : outcome.failed) failed.insert(one.cluster);
  std::erase_if(bundle.clusters, [&](const auto& resources) { return !failed.contains(resources.cluster); });
  return bundle;
}

/// What somebody changed on the source after it was sent is sent once more: up to its end there, the source's word
/// counts.
Awaitable<kube::Result<Outcome>> verify_or_send_again(Step& step, hubagent::TargetHub& target,
                                                      hubagent::Bundle bundle) {
  const auto ref = step.migration.ref();
  auto verified = co_await target.verify(ref, bundle);
  if (!verified || verified->failed.empty()) co_return verified;
  auto differing = failed_part(std::move(bundle), *verified);
  step.log().info("sending again what differs", {{"clusters", differing.clusters.size()}});
  auto sent = co_await target.deploy(ref, differing);
  if (!sent) co_return sent.error();
  auto once_more = co_await target.verify(ref, std::move(differing));
  if (!once_more) co_return once_more.error();
  once_more->done.insert(once_more->done.end(), verified->done.begin(), verified->done.end());
  co_return once_more;
}

Awaitable<> compare(Step& step, Findings& findings, hubagent::Bundle bundle) {
  if (findings.target_error) co_return;
  auto target = step.target();
  if (!target) {
    findings.target_error = target.error();
    co_return;
  }
  const auto& hub = *target;
  auto outcome = co_await verify_or_send_again(step, *hub, std::move(bundle));
  if (!outcome) {
    findings.target_error = outcome.error();
    co_return;
  }
  findings.complete.insert(outcome->done.begin(), outcome->done.end());
  findings.failures.merge(failures_of(step, *outcome));
}

/// Compares those that were not found complete yet.
Awaitable<kube::Result<>> compare_all(Step& step, ClusterNames clusters, Findings& findings) {
  std::erase_if(clusters, [&](const std::string& name) { return findings.complete.contains(name); });
  findings.failures.clear();
  findings.target_error.reset();
  auto source = step.source();
  if (!source) co_return source.error();
  const auto& hub = *source;
  hubagent::BundleSink sink = [&](hubagent::Bundle bundle) { return compare(step, findings, std::move(bundle)); };
  auto collected = co_await hub->collect(step.migration.ref(), clusters, sink);
  if (!collected) co_return collected.error();
  if (findings.target_error) co_return *findings.target_error;
  findings.failures.merge(failures_of(step, *collected));
  co_return kube::Result<>{};
}

std::map<std::string, Failure> find_unverified(const Step& step, const ClusterNames& clusters,
                                               const std::set<std::string>& present, const Findings& findings) {
  std::map<std::string, Failure> unverified;
  for (const auto& name : clusters) {
    if (!present.contains(name)) {
      unverified[name] = {step.phase(), "Error", "not Available on " + step.target_name()};
    } else if (const auto found = findings.failures.find(name); found != findings.failures.end()) {
      unverified[name] = found->second;
    } else if (!findings.complete.contains(name)) {
      unverified[name] = {step.phase(), "Error", "its resources could not be compared"};
    }
  }
  return unverified;
}

/// Nothing is removed from the source without proof: the cluster is Available on the target, and all that it had on the
/// source is there.
Awaitable<ReconcileState> verify(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return note_and_go_on(step, sentence_of(ledger.error()));
  const auto since = step.migration.time("cutOverTime").value_or(step.now());
  co_await recover_arrivals(step, *ledger, since);
  const auto clusters = candidates(*ledger);
  Findings findings;
  std::set<std::string> present;
  if (!clusters.empty()) {
    present = co_await see_present(step, clusters, since);
    const ClusterNames here{present.begin(), present.end()};
    auto comparing = [&] { return compare_all(step, here, findings); };
    Step in_part = step.share(0.6);
    auto compared = co_await ask(in_part, comparing);
    if (!compared) step.log().warn("cannot compare", {{"error", compared.error().describe()}});
  }
  const auto unverified = find_unverified(step, clusters, present, findings);
  ledger->unverified.clear();
  for (const auto& [name, failure] : unverified) ledger->unverified.insert(name);
  auto kept = co_await keep_ledger(step, *ledger);
  if (!kept) co_return note_and_go_on(step, sentence_of(kept.error()));
  if (unverified.empty()) {
    step.report(conditions::verified, ConditionStatus::yes, "MigrationVerified",
                "complete on " + step.target_name() + ": " + count_clusters(ledger->success.size()));
    co_return phase::done();
  }
  const auto message = "not removed from " + step.source_name() + ", since nothing proves that all is on " +
                       step.target_name() + ": " + some_failures(unverified) + ".";
  step.report(conditions::verified, ConditionStatus::no, "Error", message);
  step->reporter.clusters_failed(step.migration, step.phase(), unverified);
  co_return note_and_go_on(step, message);
}

// From here on each step leaves some of the time to those after it: one that hangs must not keep them from their work.

Awaitable<ReconcileState> clean_target(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return note_and_go_on(step, sentence_of(ledger.error()));
  const auto clusters = ledger->to_clean();
  if (clusters.empty()) co_return phase::done();
  auto order = [&](hubagent::TargetHub& target) { return target.clean(step.migration.ref(), clusters); };
  Step in_part = step.share(0.5);
  auto outcome = co_await ask_target(in_part, order);
  if (!outcome) co_return note_and_go_on(step, could_not_ask(step.target_name(), outcome.error()));
  const auto failures = failures_of(step, *outcome);
  if (failures.empty()) co_return phase::done();
  co_return note_and_go_on(step, "on " + step.target_name() + ": " + some_failures(failures));
}

Awaitable<ReconcileState> clean_source(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return note_and_go_on(step, sentence_of(ledger.error()));
  const auto clusters = ledger->to_clean();
  if (clusters.empty()) co_return phase::done();
  auto order = [&](hubagent::SourceHub& source) { return source.clean(step.migration.ref(), clusters); };
  Step in_part = step.share(0.8);
  auto outcome = co_await ask_source(in_part, order);
  if (!outcome) co_return note_and_go_on(step, could_not_ask(step.source_name(), outcome.error()));
  ledger->cleaned.insert(outcome->done.begin(), outcome->done.end());
  auto kept = co_await keep_ledger(step, *ledger);
  if (!kept) co_return note_and_go_on(step, sentence_of(kept.error()));
  const auto failures = failures_of(step, *outcome);
  if (failures.empty()) co_return phase::done();
  co_return note_and_go_on(step, "on " + step.source_name() + ": " + some_failures(failures));
}

Awaitable<ReconcileState> delete_source_objects(Step& step) {
  auto order = [&](hubagent::SourceHub& source) { return source.delete_migration_objects(step.migration.ref()); };
  Step in_part = step.share(0.5);
  auto removed = co_await ask_source(in_part, order);
  if (removed) co_return phase::done();
  co_return note_and_go_on(step, could_not_ask(step.source_name(), removed.error()));
}

Awaitable<ReconcileState> delete_target_objects(Step& step) {
  const auto credential = step.migration.credential();
  if (!credential) co_return phase::done();
  auto order = [&](hubagent::TargetHub& target) {
    return target.delete_migration_objects(step.migration.ref(), credential->identity);
  };
  Step in_part = step.share(0.5);
  auto removed = co_await ask_target(in_part, order);
  if (removed) co_return phase::done();
  co_return note_and_go_on(step, could_not_ask(step.target_name(), removed.error()));
}

/// Last: an agent that restarts before it has its final credential still needs this one.
Awaitable<ReconcileState> remove_credential(Step& step) {
  const auto credential = step.migration.credential();
  if (!credential) co_return phase::done();
  auto deleting = [&] { return delete_credential(step, *credential); };
  auto deleted = co_await ask(step, deleting);
  if (deleted) co_return phase::done();
  co_return note_and_go_on(step, could_not_ask("the global hub", deleted.error()));
}

/// Cleanup trouble is a warning; clusters that did not arrive make it a failure.
Awaitable<ReconcileState> conclude_cleaning(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return phase::failed(phase::Error::network(sentence_of(ledger.error())));
  std::string text;
  for (const auto& [name, sentence] : step.migration.problems("cleanup"))
    if (sentence.is_string()) text += (text.empty() ? "" : " ") + std::string{sentence.get_string()};
  if (text.empty()) {
    step.report(ConditionStatus::yes, "ResourceCleaned",
                "gone from " + step.source_name() + ": " + count_clusters(ledger->cleaned.size()) +
                    ", and all that helped with the move");
  } else {
    const auto message = "[Warning - Cleanup Issues] " + text;
    step.report(ConditionStatus::no, text.find("no answer within") == std::string::npos ? "Error" : "Timeout", message);
    step->reporter.warn(step.migration, "CleaningFailed", "CleanUp", message);
  }
  put_counts(step.migration, *ledger, true);
  co_return co_await finish(step, *ledger, ledger->all_arrived() ? phases::completed : phases::failed);
}

}  // namespace

Handler cleaning_phase() {
  return Handler::serial(
      {.description = "verify what arrived, then remove what is no longer needed", .view = phase::View::checklist},
      {step({.name = "verify", .description = "proof of arrival and content", .checkpoint = true}, verify),
       step({.name = "target", .description = "take the marks of the move off"}, clean_target),
       step({.name = "source", .description = "remove the clusters from the source"}, clean_source),
       step({.name = "source-helpers", .description = "the migration's own objects there"}, delete_source_objects),
       step({.name = "target-helpers", .description = "and on the target"}, delete_target_objects),
       step({.name = "credential", .description = "the credential, last"}, remove_credential),
       step({.name = "conclusion", .description = "how it ended"}, conclude_cleaning)});
}

}  // namespace hubferry::migration
