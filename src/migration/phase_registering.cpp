#include <set>

#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"
#include "migration/definition.hpp"
#include "migration/orders.hpp"

namespace hubferry::migration {

namespace {

using kube::ConditionStatus;

/// Signs of life on the target count from here, whoever looks for them. On record before the first cluster is let go.
Awaitable<ReconcileState> note_cut_over(Step& step) {
  if (!step.migration.time("cutOverTime")) step.migration.set_time("cutOverTime", step.now());
  co_return phase::done();
}

/// Clusters between two hubs.
struct Crossing {
  Ledger& ledger;
  WallTime since;
  std::map<std::string, std::string> release_problems;
  std::optional<kube::Error> target_error;  // the last one
  async::Notify progress;

  void arrive(Step& step, const std::string& cluster) {
    if (ledger.success.contains(cluster)) return;
    ledger.succeed(cluster);
    step->reporter.arrived(step.now() - since);
    progress.notify();
  }
};

/// How soon the source is asked again about clusters that it could not let go yet.
constexpr auto release_again = std::chrono::seconds{15};

/// Tells the source to let go, and tells it again after each third of the time for those that have not arrived.
Awaitable<> let_go(Step& step, Crossing& crossing) {
  for (;;) {
    auto order = [&](hubagent::SourceHub& source) {
      return source.detach(step.migration.ref(), crossing.ledger.under_way());
    };
    auto released = co_await ask_source(step, order);
    crossing.release_problems.clear();
    if (released) {
      for (const auto& failed : released->failed) crossing.release_problems[failed.cluster] = failed.message;
    } else {
      for (const auto& name : crossing.ledger.under_way())
        crossing.release_problems[name] = could_not_ask(step.source_name(), released.error());
    }
    const auto pause =
        crossing.release_problems.empty() ? step.answer_time() : std::min<Duration>(release_again, step.answer_time());
    co_await step.clock().sleep_for(pause);
    step.log().warn("not all clusters have arrived: letting go again",
                    {{"missing", crossing.ledger.under_way().size()}});
  }
}

/// Ends when all have arrived.
Awaitable<> see_arrive(Step& step, Crossing& crossing) {
  async::Backoff backoff{{}, step.clock(), step->env.random};
  hubagent::TargetHub::OnArrival on_arrival = [&](const std::string& cluster) { crossing.arrive(step, cluster); };
  for (;;) {
    auto found = step.target();
    kube::Result<> seen = found ? kube::Result<>{} : kube::Result<>{found.error()};
    if (found) {
      const auto& target = *found;
      seen = co_await target->await_arrivals(step.migration.ref(), crossing.ledger.under_way(), crossing.since,
                                             on_arrival);
    }
    if (seen) co_return;
    crossing.target_error = seen.error();
    step.log().warn("cannot see arrivals now", {{"error", seen.error().describe()}});
    co_await backoff.pause();
  }
}

/// Counts in the status, now and then.
Awaitable<> show_progress(Step& step, Crossing& crossing) {
  for (;;) {
    co_await crossing.progress.wait();
    put_counts(step.migration, crossing.ledger, true);
    co_await step.save();
    co_await step.clock().sleep_for(step->options.progress_interval);
  }
}

/// Until all have arrived, or time is up.
Awaitable<> cross(Step& step, Crossing& crossing) {
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(let_go(step, crossing));
    scope.spawn(show_progress(step, crossing));
    co_await see_arrive(step, crossing);
    scope.stop();
  };
  std::exception_ptr thrown;
  try {
    co_await async::with_deadline(step.clock(), step.deadline(), async::with_scope(body));
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown && !async::is_timeout(thrown)) std::rethrow_exception(thrown);
}

std::string why_missing(const Step& step, const Crossing& crossing, const std::string& cluster) {
  if (const auto found = crossing.release_problems.find(cluster); found != crossing.release_problems.end())
    return found->second;
  auto text = "not Available on " + step.target_name() + " within " + async::format_duration(step.timeout());
  if (crossing.target_error) text += "; " + could_not_ask(step.target_name(), *crossing.target_error);
  return text;
}

/// Lets the clusters go, and waits for them on the other side. Who does not arrive in time is brought back.
Awaitable<ReconcileState> move_clusters(Step& step) {
  auto ledger = co_await load_ledger(step);
  if (!ledger) co_return fail_stage(step, reason_of(ledger.error()), sentence_of(ledger.error()));
  Crossing crossing{*ledger, *step.migration.time("cutOverTime"), {}, {}, {}};
  co_await cross(step, crossing);

  std::map<std::string, Failure> missing;
  for (const auto& name : ledger->under_way())
    missing.emplace(name, Failure{step.phase(), "Timeout", why_missing(step, crossing, name)});
  for (const auto& [name, failure] : missing) ledger->fail(name, failure);
  step->reporter.clusters_failed(step.migration, step.phase(), missing);
  auto kept = co_await keep_ledger(step, *ledger);
  if (!kept) co_return fail_stage(step, reason_of(kept.error()), sentence_of(kept.error()));
  const auto arrived = std::to_string(ledger->success.size()) + " of " + count_clusters(ledger->all.size()) +
                       " Available on " + step.target_name();
  if (ledger->all_arrived()) {
    step.report(ConditionStatus::yes, "ClusterRegistered", arrived);
    co_return step.advance("verifying what arrived before anything is removed");
  }
  const auto message = arrived + "; going back to " + step.source_name() + ": " + some_failures(ledger->failures);
  co_return fail_stage(step, common_reason(ledger->failures), message);
}

}  // namespace

Handler registering_phase() {
  return Handler::serial(
      {.description = "let the clusters go, and wait for them on the target", .view = phase::View::checklist},
      {step({.name = "cut-over", .description = "note when", .checkpoint = true}, note_cut_over),
       step({.name = "arrivals", .description = "all clusters are Available on the target"}, move_clusters)});
}

}  // namespace hubferry::migration
