#include <algorithm>
#include <list>
#include <set>

#include "hubferry/async/event.hpp"
#include "hubferry/async/semaphore.hpp"
#include "hubferry/async/task_scope.hpp"
#include "migration/attempts.hpp"
#include "migration/definition.hpp"
#include "migration/wait_report.hpp"

namespace hubferry::migration {

namespace {

using kube::ConditionStatus;

/// Leases on the target count from here, whichever process reads them. Recorded before the first cluster is detached.
Awaitable<ReconcileState> record_cut_over(Step& step) {
  if (!step.migration.cut_over()) step.migration.set_cut_over(step.now());
  co_return phase::done();
}

/// Only now, when the copies are there: an agent that loses the source before has no permission to register on the
/// target, and stays with the source.
Awaitable<ReconcileState> permit_registration(Step& step) {
  const auto identity = step.migration.credential()->identity;
  auto permit = [&](hubagent::TargetHub& hub) { return hub.permit_registration(step.migration.ref(), identity); };
  auto permitted = co_await on_target(step, permit);
  if (!permitted)
    co_return fail_phase(step, permitted.error(), "cannot permit the clusters to register on " + step.target_name());
  co_return phase::done();
}

/// A cluster that this process detaches, or has detached.
struct CutOver {
  TimePoint began;                     // immediately before the write
  std::optional<CutOvers::Slot> slot;  // absent: it did not wait for one any longer
};

/// Clusters between two hubs.
struct Crossing {
  Ledger& ledger;
  WallTime since;
  std::map<std::string, CutOver> cut_overs;
  std::map<std::string, std::string> detach_problems;
  std::set<std::string> detached;              // as this process has seen
  std::set<std::string> joined;                // likewise: has a hub again
  std::map<std::string, Duration> took;        // its cut-over, until it has arrived
  std::optional<OperationError> target_error;  // the last one
  async::Notify progress;

  /// How long the cluster had no hub; absent: it left the source by itself, nobody knows when. At most, if a
  /// predecessor has detached it.
  std::optional<Duration> end_cut_over(Step& step, const std::string& cluster) {
    const auto now = step.clock().now();
    const auto own = cut_overs.find(cluster);
    if (own == cut_overs.end())
      return detached.contains(cluster) ? std::optional<Duration>{step.now() - since} : std::nullopt;
    const auto took = now - own->second.began;
    if (own->second.slot) own->second.slot->arrived(now, took);
    cut_overs.erase(own);
    return took;
  }

  /// It has a hub again. Whether its agent would come back there is proven while others use its slot.
  void join(Step& step, const std::string& cluster) {
    if (!joined.insert(cluster).second) return;
    const auto cut_over = end_cut_over(step, cluster);
    if (!cut_over) return;
    step->reporter.joined(*cut_over);
    took.emplace(cluster, *cut_over);
  }

  void arrive(Step& step, const std::string& cluster) {
    if (ledger.success.contains(cluster)) return;
    join(step, cluster);
    ledger.succeed(cluster);
    const auto cut_over = took.extract(cluster);
    step.log().info("cluster migrated",
                    {{"cluster", cluster},
                     {"target", step.migration.to()},
                     {"cut_over", cut_over ? async::format_duration(cut_over.mapped()) : "unknown"}});
    step.set_progress(std::to_string(ledger.success.size()) + " of " + count_clusters(ledger.all.size()) + " arrived");
    if (const auto& report = step->options.on_arrival) report(step.migration.object.key(), cluster);
    progress.notify();
  }
};

// How soon the source retries clusters that it could not detach yet.
constexpr auto detach_again = std::chrono::seconds{15};

/// An agent in the middle of a registration cannot be reached from the source: a cluster is detached only when the
/// target has shown that it takes it.
Awaitable<OperationResult<Outcome>> find_ready(Step& step, const ClusterNames& clusters) {
  auto wait = [&](hubagent::TargetHub& hub) { return hub.await_ready(step.migration.ref(), clusters); };
  co_return co_await once_on_target(step, wait);
}

/// What the target has shown of the clusters that are still attached.
struct Readiness {
  TimePoint at{};
  std::set<std::string> ready;
  std::map<std::string, std::string> problems;

  void record(const Step& step, const ClusterNames& clusters, const OperationResult<Outcome>& outcome) {
    at = step.clock().now();
    ready.clear();
    problems.clear();
    if (!outcome) {
      for (const auto& name : clusters) problems[name] = operation_failed(step.target_name(), outcome.error());
      return;
    }
    ready.insert(outcome->done.begin(), outcome->done.end());
    for (const auto& failed : outcome->failed) problems[failed.cluster] = failed.message;
  }
};

/// One round of detachments.
class Detaching {
 public:
  Detaching(Step& step, Crossing& crossing) : step_(step), crossing_(crossing) {}

  Awaitable<> run() {
    co_await look_at_target(crossing_.ledger.in_flight());
    auto problems = readiness_.problems;
    const ClusterNames ready{readiness_.ready.begin(), readiness_.ready.end()};
    if (!ready.empty()) {
      hubagent::SourceHub::OnDetach on_detach{
          [this](std::string cluster) { return enter(std::move(cluster)); },
          [this](const std::string& cluster, bool detached) { leave(cluster, detached); }};
      auto detach = [&](hubagent::SourceHub& hub) { return hub.detach(step_.migration.ref(), ready, on_detach); };
      auto outcome = co_await on_source(step_, detach);
      if (outcome) {
        for (const auto& failed : outcome->failed) problems[failed.cluster] = failed.message;
        crossing_.detached.insert(outcome->done.begin(), outcome->done.end());
      } else {
        for (const auto& name : ready) problems[name] = operation_failed(step_.source_name(), outcome.error());
      }
    }
    crossing_.detach_problems = std::move(problems);
  }

 private:
  Awaitable<> look_at_target(ClusterNames clusters) {
    auto outcome = co_await find_ready(step_, clusters);
    readiness_.record(step_, clusters, outcome);
  }

  [[nodiscard]] bool is_outdated() const { return step_.clock().now() - readiness_.at > readiness_lifetime; }

  /// Clusters have waited for long: one of them asks for all.
  Awaitable<> look_again_if_outdated() {
    if (!is_outdated()) co_return;
    const auto turn = co_await looking_.acquire();
    if (!is_outdated()) co_return;
    ClusterNames attached;
    for (const auto& name : crossing_.ledger.in_flight())
      if (!crossing_.detached.contains(name)) attached.push_back(name);
    co_await look_at_target(std::move(attached));
  }

  /// The cluster is detached now, or it is said why not.
  Awaitable<hubagent::Result<>> enter(std::string cluster) {
    auto& clock = step_.clock();
    const auto until = step_.time().deadline() - step_.time().timeout() / 2;
    std::optional<CutOvers::Slot> slot;
    // Unless a previous attempt, whose answer is not known, has one and may have detached it.
    const bool tried_before = crossing_.cut_overs.contains(cluster);
    if (!tried_before) {
      const hubagent::Waits::Entry waiting{step_.cluster_waits(), std::string{step_.migration.object.uid()}, cluster,
                                           "turn to be detached has not come, since as many as " + step_.target_name() +
                                               " takes at once are on their way there"};
      auto entering = step_->cut_overs.enter(step_.migration.to(), std::string{step_.migration.object.uid()});
      slot = co_await async::before_deadline(clock, until, std::move(entering));
    }
    co_await look_again_if_outdated();
    if (const auto problem = readiness_.problems.find(cluster); problem != readiness_.problems.end()) {
      crossing_.cut_overs.erase(cluster);
      co_return hubagent::Error{hubagent::FailureReason::cluster_not_available, problem->second};
    }
    // One that has left the source by itself has no cut-over of ours.
    if (!tried_before && !crossing_.joined.contains(cluster))
      crossing_.cut_overs.insert_or_assign(cluster, CutOver{clock.now(), std::move(slot)});
    co_return hubagent::Result<>{};
  }

  void leave(const std::string& cluster, bool detached) {
    if (detached)
      crossing_.detached.insert(cluster);
    else
      crossing_.cut_overs.erase(cluster);
  }

  /// That long a target is taken to be ready for clusters that wait for their turn.
  static constexpr Duration readiness_lifetime = std::chrono::minutes{1};

  Step& step_;
  Crossing& crossing_;
  Readiness readiness_;
  async::Semaphore looking_{1};
};

/// Detaches the clusters from the source, and repeats that for those that have not arrived.
Awaitable<> detach_clusters(Step& step, Crossing& crossing) {
  for (;;) {
    Detaching round{step, crossing};
    co_await round.run();
    std::optional<Step::Wait> reason;
    std::list<hubagent::Waits::Entry> retried;
    for (const auto& [cluster, problem] : crossing.detach_problems) {
      if (!reason) reason.emplace(step, problem);
      retried.emplace_back(step.cluster_waits(), std::string{step.migration.object.uid()}, cluster,
                           "detachment from " + step.source_name() + " has failed and is retried");
    }
    const auto attempt = step.time().attempt_timeout();
    co_await step.clock().sleep_for(crossing.detach_problems.empty() ? attempt
                                                                     : std::min<Duration>(detach_again, attempt));
    step.log().warn("not all clusters have arrived, detaching again",
                    {{"missing", crossing.ledger.in_flight().size()}});
  }
}

/// While clusters wait for a slot, or are between the hubs.
Awaitable<> tend_cut_overs(Step& step, Crossing& crossing) {
  for (;;) {
    co_await step.clock().sleep_for(std::chrono::seconds{1});
    const auto now = step.clock().now();
    step->cut_overs.waiting(step.migration.to(), now);
    for (auto& [cluster, cut_over] : crossing.cut_overs)
      if (cut_over.slot) cut_over.slot->release_if_late(now, now - cut_over.began);
  }
}

/// Ends when all have arrived. Any error of the target is retried with backoff until the deadline.
Awaitable<> watch_arrivals(Step& step, Crossing& crossing) {
  async::Backoff backoff{{}, step.clock(), step->env.random};
  hubagent::TargetHub::OnArrival on_arrival{[&](const std::string& cluster) { crossing.arrive(step, cluster); },
                                            [&](const std::string& cluster) { crossing.join(step, cluster); }};
  auto watch = [&](hubagent::TargetHub& hub) {
    return hub.await_arrivals(step.migration.ref(), crossing.ledger.in_flight(), crossing.since, on_arrival);
  };
  for (;;) {
    auto watched = co_await once_on_target(step, watch);
    if (watched) co_return;
    crossing.target_error = watched.error();
    step.log().warn("cannot watch arrivals, retrying", {{"error", watched.error().describe()}});
    co_await backoff.pause();
  }
}

/// Writes the counts to the status as clusters arrive, but not more often than the progress interval.
Awaitable<> save_progress(Step& step, Crossing& crossing) {
  for (;;) {
    co_await crossing.progress.wait();
    put_counts(step.migration, crossing.ledger, true);
    put_wait_report(step);
    co_await step.save();
    co_await step.clock().sleep_for(step->options.progress_interval);
  }
}

/// An agent for which the source was down or too slow leaves it by itself, before it is denied there. Such a cluster is
/// detached now: as long as the source accepts it the agent may go back. What the target saw of it until then is no
/// proof any more. What cannot be detached now, Cleaning detaches.
Awaitable<> detach_early_arrivals(Step& step, Crossing& crossing) {
  ClusterNames early;
  std::ranges::set_difference(crossing.ledger.success, crossing.detached, std::back_inserter(early));
  if (early.empty()) co_return;
  step.migration.set_late_detachment(step.now());
  co_await step.save();
  SourceOperation detach = [&](hubagent::SourceHub& hub, ClusterNames names) {
    return hub.detach_arrived(step.migration.ref(), std::move(names), std::nullopt);
  };
  // For one attempt, though the time of Registering may be over.
  const auto attached = (co_await each_on_source(step, std::move(early), detach)).not_done();
  if (!attached.empty())
    step.log().warn("clusters left the source by themselves, and cannot be detached there",
                    {{"clusters", attached.size()}, {"error", some_failures(attached)}});
  step.migration.set_late_detachment(step.now());
}

/// Until all have arrived, or the deadline.
Awaitable<> cross(Step& step, Crossing& crossing) {
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(detach_clusters(step, crossing));
    scope.spawn(save_progress(step, crossing));
    scope.spawn(tend_cut_overs(step, crossing));
    co_await watch_arrivals(step, crossing);
    scope.stop();
  };
  const auto deadline = std::max(step.time().deadline(), step.time().guaranteed_until());
  co_await async::before_deadline(step.clock(), deadline, async::with_scope(body));
}

std::string why_missing(const Step& step, const Crossing& crossing, const std::string& cluster) {
  if (const auto found = crossing.detach_problems.find(cluster); found != crossing.detach_problems.end())
    return found->second;
  auto text = "not Available on " + step.target_name() + " within " + async::format_duration(step.time().timeout());
  if (crossing.target_error) text += "; " + operation_failed(step.target_name(), *crossing.target_error);
  return text;
}

/// Detaches the clusters and waits for them on the target. Those that do not arrive in time are rolled back.
Awaitable<ReconcileState> move_clusters(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return fail_phase(step, ledger.error());
  Crossing crossing{*ledger, *step.migration.cut_over(), {}, {}, {}, {}, {}, {}, {}};
  co_await cross(step, crossing);
  co_await detach_early_arrivals(step, crossing);

  Failures missing;
  for (const auto& name : ledger->in_flight())
    missing.emplace(name, Failure{step.phase(), reasons::timeout, why_missing(step, crossing, name)});
  for (const auto& [name, failure] : missing) ledger->fail(name, failure);
  auto saved = co_await save_ledger(step, *ledger);
  if (!saved) co_return fail_phase(step, saved.error());
  step->reporter.clusters_failed(step.migration, step.phase(), missing);
  const auto arrived = std::to_string(ledger->success.size()) + " of " + count_clusters(ledger->all.size()) +
                       " Available on " + step.target_name();
  if (ledger->all_arrived()) {
    step.report(ConditionStatus::yes, "ClusterRegistered", arrived);
    co_return step.advance("verifying the clusters before anything is deleted");
  }
  const auto message = arrived + "; rolled back to " + step.source_name() + ": " + some_failures(ledger->failures);
  co_return fail_phase(step, common_reason(ledger->failures), message);
}

}  // namespace

Handler registering_phase() {
  return Handler::serial(
      {.description = "detach the clusters, and wait for them on the target", .view = phase::View::checklist},
      {step({.name = "cut-over", .description = "record the time", .checkpoint = true}, record_cut_over),
       step({.name = "permission", .description = "permit the clusters to register on the target"},
            permit_registration),
       step({.name = "arrivals", .description = "all clusters are Available on the target"}, move_clusters)});
}

}  // namespace hubferry::migration
