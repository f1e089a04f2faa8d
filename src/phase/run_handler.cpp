#include "phase/run_handler.hpp"

#include <algorithm>
#include <boost/asio/this_coro.hpp>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/async/semaphore.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/phase/decision.hpp"

namespace hubferry::phase {

namespace asio = boost::asio;

namespace {

/// Copies what a handler may set from its result into the framework's.
void take(ReconcileState& result, ReconcileState returned) {
  result.done = returned.done;
  result.updated = returned.updated;
  result.error = std::move(returned.error);
  result.next = std::move(returned.next);
  result.requeue_after = returned.requeue_after;
  result.extra = std::move(returned.extra);
}

/// Marks it as started: a component that never started has no startTime.
void begin(const HandlerRun& run, const HandlerNode& node, ReconcileState& result) {
  result.handler = node.name();
  result.phase = run.reconcile.phase;
  result.start_time = run.clock().wall_now();
  result.cancelled = true;  // until it has ended by itself
}

void finish(const HandlerRun& run, const HandlerNode& node, ReconcileState& result) {
  result.cancelled = false;
  result.end_time = run.clock().wall_now();
  run.reconcile.metrics.observe(node, result);
  if (result.fatal && run.siblings != nullptr) run.siblings->stop();
}

Awaitable<> run_leaf(const HandlerRun& run, const HandlerNode& node, const State& last, ReconcileState& result) {
  begin(run, node, result);
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  ContextRoom room;
  std::exception_ptr thrown;
  try {
    auto started =
        node.function(run.reconcile.services, {run, node, cancellation}, room, run.reconcile.resource.get(), last);
    take(result, co_await std::move(started));
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown) {
    // An "operation aborted" from elsewhere is an error like any other.
    if (async::is_cancelled(cancellation) && async::is_cancellation(thrown)) std::rethrow_exception(thrown);
    result.error = Error::from_exception(thrown);
  }
  judge(run.definition(), result);
  if (node.metadata.retry.is_set())
    apply_retry(node.metadata.retry, last, 1.0 + run.reconcile.env.random.fraction() / 5, result);
  finish(run, node, result);
}

/// True if a step that asks for a checkpoint ends with this node. The last step of a composite has no next one inside
/// it: the next one is its parent's.
bool ends_in_checkpoint(const HandlerNode& node) {
  if (node.metadata.checkpoint) return true;
  if (node.components.empty()) return false;
  if (node.kind == HandlerKind::serial) return ends_in_checkpoint(node.components.back());
  return std::any_of(node.components.begin(), node.components.end(), ends_in_checkpoint);
}

Awaitable<> run_serial(const HandlerRun& run, const HandlerNode& node, const State& last, ReconcileState& result) {
  begin(run, node, result);
  // The result being filled must not move.
  result.components.reserve(node.components.size());
  const auto completed = completed_components(node, last);
  for (std::size_t index = 0; index < node.components.size(); ++index) {
    if (completed[index]) continue;
    const auto& component = node.components[index];
    auto& outcome = result.components.emplace_back();
    co_await run_handler(run, component, last.component(component.name()), outcome);
    if (outcome.failed || !outcome.done || !outcome.next.empty()) break;
    if (ends_in_checkpoint(component) && index + 1 < node.components.size()) {
      result.checkpoint = true;
      break;
    }
  }
  conclude(run.definition(), node, last, result);
  finish(run, node, result);
}

Awaitable<> run_when_permitted(const HandlerRun& run, const HandlerNode& component, const State& last,
                               ReconcileState& outcome, async::Semaphore& permits) {
  const auto permit = co_await permits.acquire();
  co_await run_handler(run, component, last, outcome);
}

void spawn_components(async::TaskScope& scope, const HandlerRun& run, const HandlerNode& node, const State& last,
                      ReconcileState& result, async::Semaphore* permits) {
  const auto completed = completed_components(node, last);
  for (std::size_t index = 0; index < node.components.size(); ++index) {
    if (completed[index]) continue;
    const auto& component = node.components[index];
    const auto& known = last.component(component.name());
    auto& outcome = result.components[index];
    scope.spawn(permits != nullptr ? run_when_permitted(run, component, known, outcome, *permits)
                                   : run_handler(run, component, known, outcome));
  }
}

Awaitable<> run_parallel(const HandlerRun& run, const HandlerNode& node, const State& last, ReconcileState& result) {
  begin(run, node, result);
  result.components.resize(node.components.size());
  std::unique_ptr<async::Semaphore> permits;
  if (node.metadata.at_most > 0) permits = std::make_unique<async::Semaphore>(node.metadata.at_most);
  async::TaskScope scope{co_await asio::this_coro::executor};
  HandlerRun inside = run;
  inside.siblings = &scope;
  spawn_components(scope, inside, node, last, result, permits.get());
  co_await scope.join();
  conclude(run.definition(), node, last, result);
  finish(run, node, result);
}

Awaitable<> refuse_empty(const HandlerRun& run, const HandlerNode& node, ReconcileState& result) {
  begin(run, node, result);
  mark_unworkable(result, "invalid composite handler: '" + node.name() + "' has no components");
  finish(run, node, result);
  co_return;
}

// Not a coroutine: every level of a waiting tree would keep one more frame.
Awaitable<> run_node(const HandlerRun& run, const HandlerNode& node, const State& last, ReconcileState& result) {
  if (node.kind == HandlerKind::leaf) return run_leaf(run, node, last, result);
  if (node.components.empty()) return refuse_empty(run, node, result);
  if (node.kind == HandlerKind::serial) return run_serial(run, node, last, result);
  return run_parallel(run, node, last, result);
}

/// When the handler's own timeout ends, counted from when its phase was entered or it first ran. A start in the future
/// (somebody set a clock back) counts as now.
async::TimePoint deadline_of(const HandlerRun& run, const HandlerNode& node, const State& last) {
  const auto now = run.clock().wall_now();
  auto started = last.start_time.value_or(now);
  if (const auto* entered = last.extra.if_contains(entered_time_field); entered != nullptr && entered->is_string()) {
    try {
      started = async::parse_time(entered->get_string());
    } catch (const std::invalid_argument&) {
      // Somebody edited it: the first run counts.
    }
  }
  // Times before 1970 come from an edited status; the span to the earliest would not fit a Duration.
  const auto passed = std::max(async::Duration::zero(), async::Duration{now - std::max(started, async::WallTime{})});
  return async::later(run.clock().now(), node.metadata.timeout - passed);
}

Awaitable<> run_with_timeout(const HandlerRun& run, const HandlerNode& node, const State& last,
                             ReconcileState& result) {
  const auto own = deadline_of(run, node, last);
  HandlerRun inside = run;
  inside.deadline = std::min(run.deadline, own);
  if (co_await async::before_deadline(run.clock(), own, run_node(inside, node, last, result))) co_return;
  if (!result.start_time) begin(run, node, result);
  if (node.is_composite()) conclude(run.definition(), node, last, result);
  result.error = Error{"timed out after " + async::format_duration(node.metadata.timeout), ErrorKind::timeout};
  result.done = false;
  result.next.clear();
  judge(run.definition(), result);
  finish(run, node, result);
}

}  // namespace

// Not a coroutine, either.
Awaitable<> run_handler(const HandlerRun& run, const HandlerNode& node, const State& last, ReconcileState& result) {
  if (node.metadata.timeout > async::Duration::zero()) return run_with_timeout(run, node, last, result);
  return run_node(run, node, last, result);
}

}  // namespace hubferry::phase
