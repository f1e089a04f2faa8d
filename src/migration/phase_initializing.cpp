#include "migration/credential.hpp"
#include "migration/definition.hpp"

namespace hubferry::migration {

namespace {

using kube::ConditionStatus;

/// The clusters' identity on the target is recorded in the status before anything is created under that name.
Awaitable<ReconcileState> record_identity(Step& step) {
  auto choose = [&] { return choose_credential(step); };
  auto chosen = co_await retry(step, step.time(), choose);
  if (!chosen) co_return fail_phase(step, chosen.error().reason(), operation_failed("the global hub", chosen.error()));
  step.migration.set_credential(*chosen);
  co_return phase::done();
}

Awaitable<ReconcileState> create_identity(Step& step) {
  auto create = [&] { return create_credential(step, *step.migration.credential()); };
  auto created = co_await retry(step, step.time(), create);
  if (!created) co_return fail_phase(step, created.error(), "cannot create the credential for " + step.target_name());
  co_return phase::done();
}

Awaitable<ReconcileState> prepare_target(Step& step) {
  const auto identity = step.migration.credential()->identity;
  auto initialize = [&](hubagent::TargetHub& hub) { return hub.initialize(step.migration.ref(), identity); };
  auto prepared = co_await on_target(step, initialize);
  if (!prepared) co_return fail_phase(step, prepared.error(), "cannot prepare " + step.target_name());
  co_return phase::done();
}

/// The only step in which the credential's secret is in memory.
Awaitable<ReconcileState> prepare_source(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return fail_phase(step, ledger.error());
  auto kubeconfig = co_await make_bootstrap_kubeconfig(step, *step.migration.credential());
  if (!kubeconfig) co_return fail_phase(step, kubeconfig.error(), "no credential for " + step.target_name());
  auto initialize = [&](hubagent::SourceHub& hub) {
    return hub.initialize(step.migration.ref(), ledger->all, *kubeconfig);
  };
  auto prepared = co_await on_source(step, initialize);
  if (!prepared) co_return fail_phase(step, prepared.error(), "cannot prepare " + step.source_name());
  const auto failures = failures_of(step, *prepared);
  if (!failures.empty()) {
    const auto message = "on " + step.source_name() + " " + count_clusters(failures.size()) +
                         " cannot be prepared: " + some_failures(failures);
    const auto reason = common_reason(failures);
    for (const auto& [cluster, failure] : failures) ledger->fail(cluster, failure);
    auto saved = co_await save_ledger(step, *ledger);
    if (!saved && saved.error().kind() == OperationError::Kind::superseded) co_return fail_phase(step, saved.error());
    step->reporter.clusters_failed(step.migration, step.phase(), failures);
    if (!saved) step.log().warn("cannot write the ledger", {{"error", saved.error().describe()}});
    co_return fail_phase(step, reason, message);
  }
  put_counts(step.migration, *ledger, true);
  step.report(ConditionStatus::yes, "ResourceInitialized",
              step.target_name() + " and " + step.source_name() + " are prepared for the move");
  co_return step.advance("copying the resources of " + count_clusters(ledger->all.size()) + " to " +
                         step.target_name());
}

}  // namespace

Handler initializing_phase() {
  return Handler::serial(
      {.description = "prepare both hubs", .view = phase::View::checklist},
      {step({.name = "identity", .description = "record the clusters' identity on the target", .checkpoint = true},
            record_identity),
       step({.name = "credential", .description = "create their credential"}, create_identity),
       step({.name = "target", .description = "prepare the target"}, prepare_target),
       step({.name = "source", .description = "give them the target's bootstrap kubeconfig"}, prepare_source)});
}

}  // namespace hubferry::migration
