#include "hubferry/async/task_scope.hpp"
#include "migration/definition.hpp"
#include "migration/orders.hpp"
#include "migration/timeouts.hpp"
#include "migration/validation.hpp"

namespace hubferry::migration {

namespace {

using kube::ConditionStatus;

/// What the resource itself asks for.
Awaitable<ReconcileState> check_request(Step& step) {
  const auto problems = request_problems(step.migration);
  if (problems.empty()) co_return phase::done();
  co_return co_await reject(step, problems.front().reason, joined(problems));
}

Awaitable<kube::Result<hubs::HubInfo>> look_up(Step& step, std::string hub) {
  co_return co_await step->hubs.find(std::move(hub));
}

/// Both hubs are there, Available, and are hubs.
Awaitable<ReconcileState> check_hubs(Step& step) {
  std::vector<Problem> problems;
  for (const auto& hub : {step.migration.from(), step.migration.to()}) {
    auto look = [&] { return look_up(step, hub); };
    auto info = co_await ask(step, look);
    if (!info) co_return co_await reject(step, reason_of(info.error()), could_not_ask("the global hub", info.error()));
    if (auto problem = hub_problem(*info)) problems.push_back(std::move(*problem));
  }
  if (problems.empty()) co_return phase::done();
  co_return co_await reject(step, problems.front().reason, joined(problems));
}

Awaitable<kube::Result<ClusterNames>> find_clusters(Step& step) {
  if (auto listed = step.migration.listed_clusters()) co_return std::move(*listed);
  auto resolve = [&](hubagent::SourceHub& source) { return source.resolve_placement(*step.migration.placement()); };
  auto resolved = co_await ask_source(step, resolve);
  if (!resolved) co_return resolved.error();
  std::ranges::sort(*resolved);
  resolved->erase(std::unique(resolved->begin(), resolved->end()), resolved->end());
  co_return resolved;
}

/// Another migration has one of the clusters, which showed only now: back into the queue.
ReconcileState wait_again(Step& step, std::string_view obstacle) {
  step.report(conditions::started, ConditionStatus::no, "Waiting", obstacle);
  step.report(ConditionStatus::no, "Waiting", obstacle);
  step.migration.enter(phases::pending, step.now());
  return phase::go_to(phases::pending);
}

/// Which clusters: the list, or the placement's decisions, written down before anything else is touched.
Awaitable<ReconcileState> note_clusters(Step& step) {
  auto clusters = co_await find_clusters(step);
  if (!clusters)
    co_return co_await reject(
        step, reason_of(clusters.error()),
        "the placement cannot be resolved on " + step.source_name() + ": " + sentence_of(clusters.error()));
  if (clusters->empty())
    co_return co_await reject(
        step, "ClusterNotFound",
        "placement '" + step.migration.placement().value_or("") + "' selects no cluster of " + step.source_name());
  if (const auto obstacle = step->admission.claim(std::string{step.migration.object.uid()}, *clusters))
    co_return wait_again(step, *obstacle);
  Ledger ledger;
  ledger.all = std::move(*clusters);
  auto kept = co_await keep_ledger(step, ledger);
  if (!kept) co_return co_await reject(step, reason_of(kept.error()), sentence_of(kept.error()));
  co_return phase::done();
}

/// Both hubs are asked at once, and all that is wrong is told at once.
struct Answers {
  std::optional<kube::Result<Outcome>> source;
  std::optional<kube::Result<Outcome>> target;
};

Awaitable<> ask_both(Step& step, const ClusterNames& clusters, Answers& answers) {
  auto check_source = [&](hubagent::SourceHub& source) { return source.validate(step.migration.ref(), clusters); };
  auto check_target = [&](hubagent::TargetHub& target) { return target.validate(step.migration.ref(), clusters); };
  auto from_source = [&]() -> Awaitable<> { answers.source.emplace(co_await ask_source(step, check_source)); };
  auto from_target = [&]() -> Awaitable<> { answers.target.emplace(co_await ask_target(step, check_target)); };
  auto both = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(from_source());
    scope.spawn(from_target());
    co_return;
  };
  co_await async::with_scope(both);
}

/// Every cluster can leave the source, and none of that name is on the target.
Awaitable<ReconcileState> check_clusters(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return co_await reject(step, reason_of(ledger.error()), sentence_of(ledger.error()));
  Answers answers;
  co_await ask_both(step, ledger->all, answers);
  std::vector<Problem> problems;
  if (!*answers.source)
    problems.push_back(
        {reason_of(answers.source->error()), could_not_ask(step.source_name(), answers.source->error())});
  if (!*answers.target)
    problems.push_back(
        {reason_of(answers.target->error()), could_not_ask(step.target_name(), answers.target->error())});
  auto failures = problems_of_clusters(*answers.source ? failures_of(step, **answers.source) : no_failures(),
                                       *answers.target ? failures_of(step, **answers.target) : no_failures());
  if (problems.empty() && failures.empty()) {
    step.report(
        ConditionStatus::yes, "ResourceValidated",
        count_clusters(ledger->all.size()) + " can move from " + step.source_name() + " to " + step.target_name());
    co_return step.advance("preparing " + step.target_name() + ", then " + step.source_name() + ", for the move");
  }
  if (!failures.empty())
    problems.push_back({common_reason(failures), std::to_string(failures.size()) + " of " +
                                                     count_clusters(ledger->all.size()) +
                                                     " cannot move: " + some_failures(failures, 10)});
  step->reporter.clusters_failed(step.migration, step.phase(), failures);
  for (auto& [cluster, failure] : failures) ledger->fail(cluster, std::move(failure));
  auto kept = co_await keep_ledger(step, *ledger);
  if (!kept) step.log().warn("cannot write the lists of clusters", {{"error", kept.error().describe()}});
  co_return co_await reject(step, problems.front().reason, joined(problems));
}

}  // namespace

Handler validating_phase() {
  return Handler::serial(
      {.description = "check everything before anything is touched", .view = phase::View::checklist},
      {step({.name = "request", .description = "the resource itself makes sense"}, check_request),
       step({.name = "hubs", .description = "both hubs are there and Available"}, check_hubs),
       step({.name = "clusters", .description = "which clusters, written down"}, note_clusters),
       step({.name = "checks", .description = "each cluster can leave and can come"}, check_clusters)});
}

}  // namespace hubferry::migration
