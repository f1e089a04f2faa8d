#include "migration/credential.hpp"
#include "migration/definition.hpp"
#include "migration/orders.hpp"

namespace hubferry::migration {

namespace {

using kube::ConditionStatus;

/// Who the clusters will be on the target. Noted in the status before anything is created under that name.
Awaitable<ReconcileState> choose(Step& step) {
  auto choosing = [&] { return choose_credential(step); };
  auto chosen = co_await ask(step, choosing);
  if (!chosen) co_return fail_stage(step, reason_of(chosen.error()), could_not_ask("the global hub", chosen.error()));
  step.migration.set_credential(*chosen);
  co_return phase::done();
}

Awaitable<ReconcileState> create(Step& step) {
  auto creating = [&] { return create_credential(step, *step.migration.credential()); };
  auto created = co_await ask(step, creating);
  if (!created)
    co_return fail_stage(
        step, reason_of(created.error()),
        "the credential for " + step.target_name() + " cannot be created: " + sentence_of(created.error()));
  co_return phase::done();
}

Awaitable<ReconcileState> prepare_target(Step& step) {
  const auto identity = step.migration.credential()->identity;
  auto order = [&](hubagent::TargetHub& target) { return target.initialize(step.migration.ref(), identity); };
  auto prepared = co_await ask_target(step, order);
  if (!prepared)
    co_return fail_stage(step, reason_of(prepared.error()),
                         step.target_name() + " cannot be prepared: " + sentence_of(prepared.error()));
  co_return phase::done();
}

/// The only place where the credential's secret is in our hands.
Awaitable<ReconcileState> prepare_source(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return fail_stage(step, reason_of(ledger.error()), sentence_of(ledger.error()));
  auto kubeconfig = co_await make_bootstrap_kubeconfig(step, *step.migration.credential());
  if (!kubeconfig)
    co_return fail_stage(step, reason_of(kubeconfig.error()),
                         "no credential for " + step.target_name() + ": " + sentence_of(kubeconfig.error()));
  auto order = [&](hubagent::SourceHub& source) {
    return source.initialize(step.migration.ref(), ledger->all, *kubeconfig);
  };
  auto prepared = co_await ask_source(step, order);
  if (!prepared)
    co_return fail_stage(step, reason_of(prepared.error()),
                         step.source_name() + " cannot be prepared: " + sentence_of(prepared.error()));
  auto failures = failures_of(step, *prepared);
  if (!failures.empty()) {
    step->reporter.clusters_failed(step.migration, step.phase(), failures);
    const auto message = "on " + step.source_name() + " " + count_clusters(failures.size()) +
                         " cannot be prepared: " + some_failures(failures);
    const auto reason = common_reason(failures);
    for (auto& [cluster, failure] : failures) ledger->fail(cluster, std::move(failure));
    auto kept = co_await keep_ledger(step, *ledger);
    if (!kept) step.log().warn("cannot write the lists of clusters", {{"error", kept.error().describe()}});
    co_return fail_stage(step, reason, message);
  }
  put_counts(step.migration, *ledger, true);
  step.report(ConditionStatus::yes, "ResourceInitialized",
              step.target_name() + " and " + step.source_name() + " are prepared for the move");
  co_return step.advance("carrying the resources of " + count_clusters(ledger->all.size()) + " to " +
                         step.target_name());
}

}  // namespace

Handler initializing_phase() {
  return Handler::serial(
      {.description = "prepare both hubs", .view = phase::View::checklist},
      {step({.name = "identity", .description = "who the clusters are on the target", .checkpoint = true}, choose),
       step({.name = "credential", .description = "their credential"}, create),
       step({.name = "target", .description = "the target lets them in"}, prepare_target),
       step({.name = "source", .description = "the source shows them the way"}, prepare_source)});
}

}  // namespace hubferry::migration
