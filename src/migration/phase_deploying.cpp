#include <set>

#include "migration/definition.hpp"

namespace hubferry::migration {

namespace {

using kube::ConditionStatus;

/// What was copied, over all attempts.
struct Copied {
  ClusterNames wanted;
  std::set<std::string> deployed;
  Failures failures;
  std::optional<OperationError> target_error;  // of this attempt: the target failed as a whole
  std::optional<OperationError> hub_error;     // of the last attempt, of either hub

  [[nodiscard]] ClusterNames missing() const {
    ClusterNames names;
    for (const auto& name : wanted)
      if (!deployed.contains(name) && !failures.contains(name)) names.push_back(name);
    return names;
  }
  void add(const Step& step, const Outcome& outcome) {
    deployed.insert(outcome.done.begin(), outcome.done.end());
    failures.merge(failures_of(step, outcome));
  }
};

Awaitable<> deploy(Step& step, Copied& copied, hubagent::Bundle bundle) {
  if (copied.target_error) co_return;  // the attempt has failed: let it end
  auto deploy_it = [&](hubagent::TargetHub& hub) { return hub.deploy(step.migration.ref(), bundle); };
  auto outcome = co_await once_on_target(step, deploy_it);
  if (outcome) {
    copied.add(step, *outcome);
    step.set_progress(std::to_string(copied.deployed.size()) + " of " + count_clusters(copied.wanted.size()) +
                      " copied");
  } else {
    copied.target_error = outcome.error();
  }
}

/// One attempt for the clusters that are still missing.
Awaitable<OperationResult<>> copy_missing(Step& step, Copied& copied) {
  copied.hub_error.reset();
  copied.target_error.reset();
  hubagent::BundleSink sink = [&](hubagent::Bundle bundle) { return deploy(step, copied, std::move(bundle)); };
  auto collect = [&](hubagent::SourceHub& hub) { return hub.collect(step.migration.ref(), copied.missing(), sink); };
  auto collected = co_await once_on_source(step, collect);
  if (collected) copied.failures.merge(failures_of(step, *collected));
  if (!collected) copied.hub_error = collected.error();
  if (copied.target_error) copied.hub_error = copied.target_error;
  if (copied.hub_error) co_return *copied.hub_error;
  co_return OperationResult<>{};
}

/// What was neither deployed nor rejected at the deadline.
void fail_missing(const Step& step, Copied& copied) {
  const auto message = "its resources were not copied to " + step.target_name() + " within " +
                       async::format_duration(step.time().timeout());
  for (const auto& name : copied.missing())
    copied.failures.emplace(name, Failure{step.phase(), reasons::timeout, message});
}

/// Cluster by cluster: one whose resources cannot be copied stays on the source, the others continue.
Awaitable<ReconcileState> copy_resources(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return fail_phase(step, ledger.error());
  Copied copied{ledger->in_flight(), {}, {}, {}, {}};
  auto attempt = [&] { return copy_missing(step, copied); };
  auto result = co_await retry(step, step.time(), attempt);
  // A hub that fails as a whole fails the phase: no cluster should move there. A slow cluster only fails itself.
  const bool hub_failed = !result && (copied.hub_error || copied.deployed.empty());
  if (!hub_failed) fail_missing(step, copied);
  const auto& failed = copied.failures;
  for (const auto& [cluster, failure] : failed) ledger->fail(cluster, failure);
  auto saved = co_await save_ledger(step, *ledger);
  if (!saved) co_return fail_phase(step, saved.error());
  step->reporter.clusters_failed(step.migration, step.phase(), failed);
  if (hub_failed)
    co_return fail_phase(step, result.error(),
                         "cannot copy the resources from " + step.source_name() + " to " + step.target_name());
  const auto continuing = ledger->in_flight().size();
  if (continuing == 0)
    co_return fail_phase(step, common_reason(failed),
                         "no cluster's resources reached " + step.target_name() + ": " + some_failures(failed));
  auto message = "the resources of " + count_clusters(continuing) + " are on " + step.target_name();
  if (!ledger->failures.empty())
    message += "; staying on " + step.source_name() + ": " + some_failures(ledger->failures);
  step.report(ConditionStatus::yes, "ResourcesDeployed", message);
  co_return step.advance("waiting for " + count_clusters(continuing) + " to become Available on " + step.target_name());
}

}  // namespace

Handler deploying_phase() {
  return step({.description = "copy the clusters' resources to the target"}, copy_resources);
}

}  // namespace hubferry::migration
