#include "hubferry/async/task_scope.hpp"
#include "hubferry/migration/validation.hpp"
#include "migration/definition.hpp"

namespace hubferry::migration {

namespace {

using kube::ConditionStatus;

/// Reads for the validation, each retried until the phase's deadline.
class RetriedReads final : public ValidationReads {
 public:
  explicit RetriedReads(Step& step) : step_(step) {}

  Awaitable<OperationResult<hubs::HubInfo>> find_hub(std::string hub) override {
    auto find = [&]() -> Awaitable<OperationResult<hubs::HubInfo>> { co_return co_await step_->hubs.find(hub); };
    co_return co_await retry(step_, step_.time(), find);
  }
  Awaitable<OperationResult<ClusterNames>> resolve_placement(std::string placement) override {
    auto resolve = [&](hubagent::SourceHub& hub) { return hub.resolve_placement(placement); };
    co_return co_await on_source(step_, resolve);
  }
  Awaitable<OperationResult<Outcome>> validate_on_source(ClusterNames clusters) override {
    auto validate = [&](hubagent::SourceHub& hub) { return hub.validate(step_.migration.ref(), clusters); };
    co_return co_await on_source(step_, validate);
  }
  Awaitable<OperationResult<Outcome>> validate_on_target(ClusterNames clusters) override {
    auto validate = [&](hubagent::TargetHub& hub) { return hub.validate(step_.migration.ref(), clusters); };
    co_return co_await on_target(step_, validate);
  }
  Awaitable<OperationResult<Outcome>> check_klusterlet_configs(ClusterNames clusters) override {
    auto find = [&](hubagent::SourceHub& hub) { return hub.klusterlet_configs(step_.migration.ref(), clusters); };
    auto uses = co_await on_source(step_, find);
    if (!uses) co_return uses.error();
    if (uses->empty()) co_return Outcome{};
    auto check = [&](hubagent::TargetHub& hub) { return hub.check_klusterlet_configs(*uses); };
    co_return co_await on_target(step_, check);
  }

 private:
  Step& step_;
};

/// The spec, with the hubs as of the start.
MigrationSpec spec_of(const Step& step) {
  auto spec = step.migration.spec();
  spec.from = step.migration.from();
  spec.to = step.migration.to();
  return spec;
}

Awaitable<ReconcileState> check_request(Step& step) {
  const auto problems = check_spec(spec_of(step));
  if (problems.empty()) co_return phase::done();
  co_return co_await reject(step, problems.front().reason, joined(problems));
}

/// Takes the problems of single clusters out of `problems`, one failure a cluster.
Failures take_failures(const Step& step, std::vector<Problem>& problems) {
  Failures failures;
  for (const auto& problem : problems) {
    if (problem.cluster.empty()) continue;
    auto [entry, is_new] =
        failures.try_emplace(problem.cluster, Failure{step.phase(), problem.reason, problem.message});
    if (!is_new) entry->second.message += "; " + problem.message;
  }
  std::erase_if(problems, [](const Problem& problem) { return !problem.cluster.empty(); });
  return failures;
}

/// Adds what is wrong with single clusters: some of them by name, and how many.
void add_summary(std::vector<Problem>& problems, const Failures& failures, std::size_t all) {
  if (failures.empty()) return;
  problems.push_back({{},
                      {},
                      common_reason(failures),
                      std::to_string(failures.size()) + " of " + count_clusters(all) +
                          " cannot move: " + some_failures(failures, 10)});
}

/// How long it is looked for what else is wrong, when the migration has to be rejected anyway.
constexpr auto longest_further_look = std::chrono::seconds{10};

/// Rejects a migration whose hubs cannot be used. What is wrong with the rest of it is reported with that: a hub is not
/// repaired in order to learn of the next problem.
Awaitable<ReconcileState> reject_with_all(Step& step, std::vector<Problem> problems) {
  RetriedReads reads{step};
  const auto deadline = async::later(step.clock().now(), longest_further_look);
  auto all = co_await async::before_deadline(step.clock(), deadline, validate(reads, spec_of(step)));
  if (all && !all->problems.empty()) {
    problems = std::move(all->problems);
    const auto failures = take_failures(step, problems);
    add_summary(problems, failures, all->clusters.size());
  }
  co_return co_await reject(step, problems.front().reason, joined(problems));
}

Awaitable<ReconcileState> check_hubs(Step& step) {
  RetriedReads reads{step};
  auto problems = co_await check_hub(reads, step.migration.from());
  auto of_target = co_await check_hub(reads, step.migration.to());
  std::ranges::move(of_target, std::back_inserter(problems));
  if (problems.empty()) co_return phase::done();
  co_return co_await reject_with_all(step, std::move(problems));
}

/// Another migration has one of the clusters, as the placement shows only now: back to Pending.
ReconcileState wait_again(Step& step, std::string_view obstacle) {
  step.report(conditions::started, ConditionStatus::no, reasons::waiting, obstacle);
  step.report(ConditionStatus::no, reasons::waiting, obstacle);
  step.migration.enter(phases::pending, step.now());
  return phase::go_to(phases::pending);
}

/// Whatever another manager, which works on the migration now, has not decided is not rejected.
Awaitable<ReconcileState> reject(Step& step, OperationError error) {
  if (error.kind() == OperationError::Kind::superseded) {
    step.log().warn("decision dropped", {{"error", error.describe()}});
    co_return phase::not_done(std::chrono::seconds{1});
  }
  co_return co_await reject(step, error.reason(), error.message());
}

/// Writes the ledger before anything else is changed.
Awaitable<ReconcileState> record_clusters(Step& step) {
  RetriedReads reads{step};
  const auto spec = spec_of(step);
  auto selected = co_await select_clusters(reads, spec);
  if (selected.problem) co_return co_await reject(step, selected.problem->reason, selected.problem->message);
  if (auto problems = check_names(spec, selected.clusters); !problems.empty())
    co_return co_await reject_with_all(step, std::move(problems));
  if (const auto obstacle = step->admission.claim(std::string{step.migration.object.uid()}, selected.clusters))
    co_return wait_again(step, *obstacle);
  step.migration.pin_selection();
  Ledger ledger;
  ledger.all = std::move(selected.clusters);
  const auto began = step.clock().now();
  auto saved = co_await save_ledger(step, ledger);
  if (!saved) co_return co_await reject(step, saved.error());
  // The time that others took, such as the garbage collector, is not to the checks' account.
  if (step.clock().now() - began > std::chrono::seconds{1}) step.migration.enter(step.phase(), step.now());
  co_return phase::done();
}

/// Runs the checks of both hubs concurrently; all problems are reported at once.
Awaitable<std::vector<Problem>> check_on_both(Step& step, const ClusterNames& clusters) {
  RetriedReads reads{step};
  const auto spec = spec_of(step);
  std::vector<Problem> problems;
  std::vector<Problem> of_target;
  std::vector<Problem> of_configs;
  auto check_source = [&]() -> Awaitable<> { problems = co_await check_on_source(reads, spec, clusters); };
  auto check_target = [&]() -> Awaitable<> { of_target = co_await check_on_target(reads, spec, clusters); };
  auto check_configs = [&]() -> Awaitable<> { of_configs = co_await check_klusterlet_configs(reads, spec, clusters); };
  auto both = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(check_configs());
    scope.spawn(check_source());
    scope.spawn(check_target());
    co_return;
  };
  co_await async::with_scope(both);
  std::ranges::move(of_target, std::back_inserter(problems));
  std::ranges::move(of_configs, std::back_inserter(problems));
  co_return problems;
}

Awaitable<ReconcileState> check_clusters(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return co_await reject(step, ledger.error());
  auto problems = co_await check_on_both(step, ledger->all);
  if (problems.empty()) {
    step.report(
        ConditionStatus::yes, "ResourceValidated",
        count_clusters(ledger->all.size()) + " can move from " + step.source_name() + " to " + step.target_name());
    co_return step.advance("preparing " + step.target_name() + ", then " + step.source_name());
  }
  auto failures = take_failures(step, problems);
  add_summary(problems, failures, ledger->all.size());
  for (const auto& [cluster, failure] : failures) ledger->fail(cluster, failure);
  auto saved = co_await save_ledger(step, *ledger);
  if (!saved && saved.error().kind() == OperationError::Kind::superseded)
    co_return co_await reject(step, saved.error());
  step->reporter.clusters_failed(step.migration, step.phase(), failures);
  if (!saved) step.log().warn("cannot write the ledger", {{"error", saved.error().describe()}});
  co_return co_await reject(step, problems.front().reason, joined(problems));
}

}  // namespace

Handler validating_phase() {
  return Handler::serial(
      {.description = "validate everything before anything is changed", .view = phase::View::checklist},
      {step({.name = "request", .description = "the spec is valid"}, check_request),
       step({.name = "hubs", .description = "both hubs exist and are Available"}, check_hubs),
       step({.name = "clusters", .description = "record the selected clusters"}, record_clusters),
       step({.name = "checks", .description = "each cluster can leave the source and join the target"},
            check_clusters)});
}

}  // namespace hubferry::migration
