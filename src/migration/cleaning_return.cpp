#include "migration/cleaning_return.hpp"

#include "hubferry/async/task_scope.hpp"
#include "migration/attempts.hpp"

namespace hubferry::migration {

namespace {

/// A person wants back what is not on the target.
bool wants_return(const Migration& migration) {
  return migration.requests_rollback() || migration.is_being_deleted();
}

/// So long after the cut-over an agent that lives on the target has renewed its lease there: twice its period.
constexpr auto first_renewal = std::chrono::minutes{2};

/// Clusters without a renewal since the cut-over, while there was no time for one, may be alive.
void doubt_absence(const Step& step, Unproven& unproven) {
  const auto since = step.migration.cut_over();
  if (!since || step.now() >= *since + first_renewal) return;
  for (auto entry = unproven.absent.begin(); entry != unproven.absent.end();) {
    const auto next = std::next(entry);
    if (entry->second.reason == to_string(hubagent::FailureReason::cluster_not_available))
      unproven.unknown.insert(unproven.absent.extract(entry));
    entry = next;
  }
}

/// What a third hub says of the clusters.
Awaitable<> look_for_on(Step& step, std::string hub, const ClusterNames& clusters, Failures& elsewhere) {
  auto look = [&](hubagent::SourceHub& there) { return there.accepted(clusters); };
  auto answer = co_await async::before_deadline(step.clock(), step.attempt_deadline(),
                                                hubs::on_source(step->hubs, hub, std::move(look)));
  const auto put = [&](const std::string& cluster, const std::string& why) {
    elsewhere.insert_or_assign(cluster, Failure{phases::cleaning, reasons::error, why});
  };
  if (answer && *answer) {
    for (const auto& cluster : **answer)
      put(cluster, "hub '" + hub + "' accepts it now. To leave it there, add " + step.migration.from() + "/" + cluster +
                       "," + step.migration.to() + "/" + cluster + " to the annotation " + names::leave_annotation);
    co_return;
  }
  const LeftBehind left_behind{step.migration};
  const auto why = answer ? answer->error().describe() : std::string{"no answer"};
  for (const auto& cluster : clusters)
    if (!left_behind.covers(hub, cluster) && !elsewhere.contains(cluster))
      put(cluster, "it may have moved on to hub '" + hub + "', which does not say so: " + why +
                       ". If it is not there, add " + hub + " to the annotation " + names::leave_annotation);
}

}  // namespace

void Unproven::add(const Failures& failures) {
  for (const auto& [cluster, failure] : failures) {
    switch (seen_on_target(failure)) {
      case Sighting::absent:
        absent.insert_or_assign(cluster, failure);
        break;
      case Sighting::unknown:
        unknown.insert_or_assign(cluster, failure);
        break;
      case Sighting::present:  // it lives there, and its agent may know no other hub
        break;
    }
  }
}

Awaitable<Failures> find_returning(Step& step, Unproven& unproven, Pending& pending) {
  Failures returning;
  if (!wants_return(step.migration)) co_return returning;
  const LeftBehind left_behind{step.migration};
  doubt_absence(step, unproven);
  auto wanted = unproven.absent;
  // A person who deletes the migration and leaves that hub behind may only want to be rid of it: the clusters may be
  // alive.
  if (step.migration.requests_rollback())
    for (const auto& [cluster, failure] : unproven.unknown)
      if (left_behind.covers(step.migration.to(), cluster)) wanted.emplace(cluster, failure);
  if (wanted.empty()) co_return returning;
  SourceOperation look = [&](hubagent::SourceHub& hub, ClusterNames names) {
    return hub.returnable(step.migration.ref(), std::move(names));
  };
  auto held = co_await each_on_source(step, names_of(wanted), look);
  // What the source has deleted of these is on the target only: they return only from one that has lost them.
  for (const auto& [cluster, failure] : wanted) {
    const auto refused = held.failed.find(cluster);
    const bool is_lost = failure.reason == to_string(hubagent::FailureReason::cluster_not_found) ||
                         left_behind.covers(step.migration.to(), cluster);
    if (refused == held.failed.end() || !is_lost) continue;
    if (refused->second.reason != to_string(hubagent::FailureReason::deletion_begun)) continue;
    held.failed.erase(refused);
    held.done.push_back(cluster);
  }
  unproven.elsewhere = co_await find_elsewhere(step, held.done);
  pending.add(step.migration.from(), unproven.elsewhere);
  for (const auto& cluster : without(held.done, names_of(unproven.elsewhere)))
    returning.emplace(cluster, Failure{phases::cleaning, reasons::cancelled,
                                       "it had arrived, and is not on " + step.target_name() +
                                           " any more: " + wanted.at(cluster).message});
  auto not_held = held.not_done();
  std::erase_if(not_held, [](const auto& entry) {
    return entry.second.reason == to_string(hubagent::FailureReason::cluster_not_found);
  });
  pending.add(step.migration.from(), not_held);
  co_return returning;
}

Awaitable<Failures> find_elsewhere(Step& step, ClusterNames clusters) {
  Failures elsewhere;
  if (clusters.empty()) co_return elsewhere;
  const auto all = co_await step->hubs.names();
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (const auto& hub : all)
      if (hub != step.migration.from() && hub != step.migration.to())
        scope.spawn(look_for_on(step, hub, clusters, elsewhere));
    co_return;
  };
  co_await async::with_scope(body);
  co_return elsewhere;
}

Failures find_unfinished_returns(const Migration& migration, const Ledger& ledger) {
  const LeftBehind left_behind{migration};
  Failures returning;
  for (const auto& [cluster, failure] : ledger.failures)
    if (failure.stage == phases::cleaning && !ledger.rolled_back.contains(cluster) &&
        !left_behind.covers(migration.from(), cluster))
      returning.emplace(cluster, failure);
  return returning;
}

std::string why_not_returning(const Migration& migration, const Unproven& unproven) {
  if (!wants_return(migration)) return {};
  std::string text;
  if (!unproven.elsewhere.empty())
    text = ". Not returned to hub '" + migration.from() + "': " + some_failures(unproven.elsewhere);
  if (unproven.unknown.empty()) return text;
  return text + ". Their rollback waits for hub '" + migration.to() + "': " + count_clusters(unproven.unknown.size()) +
         " had arrived there, and may be there still. If that hub is lost for good, annotate the migration with " +
         names::leave_annotation + "=" + migration.to() + " and " + names::request_annotation + "=" +
         names::rollback_request + ": then hub '" + migration.from() + "' accepts them again";
}

ReconcileState return_from_cleaning(Step& step, const Failures& returning) {
  const auto message = "rolled back to " + step.source_name() + ": " + some_failures(returning);
  step.log().info("clusters are not on the target any more, rolling back", {{"clusters", returning.size()}});
  clear_problem(step);
  step.report(kube::ConditionStatus::no, reasons::cancelled, message);
  step.migration.set_rollback_stage(hubagent::Stage::registering);
  return step.jump_to(phases::rollbacking, message);
}

}  // namespace hubferry::migration
