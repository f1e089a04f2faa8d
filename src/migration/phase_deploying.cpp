#include <set>

#include "migration/definition.hpp"
#include "migration/orders.hpp"

namespace hubferry::migration {

namespace {

using kube::ConditionStatus;

/// What is carried over, over all attempts.
struct Cargo {
  ClusterNames wanted;
  std::set<std::string> deployed;
  std::map<std::string, Failure> failures;
  std::optional<kube::Error> target_error;  // of this attempt: it could not be asked
  std::optional<kube::Error> hub_error;     // of the last attempt, of either hub

  [[nodiscard]] ClusterNames missing() const {
    ClusterNames names;
    for (const auto& name : wanted)
      if (!deployed.contains(name) && !failures.contains(name)) names.push_back(name);
    return names;
  }
  void take(const Step& step, const Outcome& outcome) {
    deployed.insert(outcome.done.begin(), outcome.done.end());
    failures.merge(failures_of(step, outcome));
  }
};

Awaitable<> deploy(Step& step, Cargo& cargo, hubagent::Bundle bundle) {
  if (cargo.target_error) co_return;  // the whole attempt is lost: let it end
  auto target = step.target();
  if (!target) {
    cargo.target_error = target.error();
    co_return;
  }
  const auto& hub = *target;
  auto outcome = co_await hub->deploy(step.migration.ref(), std::move(bundle));
  if (outcome) {
    cargo.take(step, *outcome);
  } else {
    cargo.target_error = outcome.error();
  }
}

/// One attempt for what is still missing.
Awaitable<kube::Result<>> carry(Step& step, Cargo& cargo) {
  cargo.hub_error.reset();
  cargo.target_error.reset();
  auto source = step.source();
  if (!source) {
    cargo.hub_error = source.error();
    co_return source.error();
  }
  const auto& hub = *source;
  hubagent::BundleSink sink = [&](hubagent::Bundle bundle) { return deploy(step, cargo, std::move(bundle)); };
  auto collected = co_await hub->collect(step.migration.ref(), cargo.missing(), sink);
  if (collected) cargo.failures.merge(failures_of(step, *collected));
  if (!collected) cargo.hub_error = collected.error();
  if (cargo.target_error) cargo.hub_error = cargo.target_error;
  if (cargo.hub_error) co_return *cargo.hub_error;
  co_return kube::Result<>{};
}

/// What was neither deployed nor refused when time was up.
void fail_the_missing(const Step& step, Cargo& cargo) {
  const auto message =
      "its resources did not reach " + step.target_name() + " within " + async::format_duration(step.timeout());
  for (const auto& name : cargo.missing()) cargo.failures.emplace(name, Failure{step.phase(), "Timeout", message});
}

/// Each cluster for itself: those whose resources cannot be carried over stay behind, the others go on.
Awaitable<ReconcileState> carry_over(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return fail_stage(step, reason_of(ledger.error()), sentence_of(ledger.error()));
  Cargo cargo{ledger->under_way(), {}, {}, {}, {}};
  auto attempt = [&] { return carry(step, cargo); };
  auto carried = co_await ask(step, attempt);
  // A hub that cannot be asked fails the stage: nobody should be sent there. A slow cluster only fails itself.
  const bool hub_failed = !carried && (cargo.hub_error || cargo.deployed.empty());
  if (!hub_failed) fail_the_missing(step, cargo);
  step->reporter.clusters_failed(step.migration, step.phase(), cargo.failures);
  const auto& failed = cargo.failures;
  for (const auto& [cluster, failure] : failed) ledger->fail(cluster, failure);
  auto kept = co_await keep_ledger(step, *ledger);
  if (!kept) co_return fail_stage(step, reason_of(kept.error()), sentence_of(kept.error()));
  if (hub_failed)
    co_return fail_stage(step, reason_of(carried.error()),
                         "the resources cannot be carried from " + step.source_name() + " to " + step.target_name() +
                             ": " + sentence_of(carried.error()));
  const auto on_their_way = ledger->under_way().size();
  if (on_their_way == 0)
    co_return fail_stage(step, common_reason(failed),
                         "no cluster's resources reached " + step.target_name() + ": " + some_failures(failed));
  auto message = "the resources of " + count_clusters(on_their_way) + " are on " + step.target_name();
  if (!ledger->failures.empty())
    message += "; staying on " + step.source_name() + ": " + some_failures(ledger->failures);
  step.report(ConditionStatus::yes, "ResourcesDeployed", message);
  co_return step.advance("waiting for " + count_clusters(on_their_way) + " to become Available on " +
                         step.target_name());
}

}  // namespace

Handler deploying_phase() {
  return step({.description = "carry the clusters' resources to the target"}, carry_over);
}

}  // namespace hubferry::migration
