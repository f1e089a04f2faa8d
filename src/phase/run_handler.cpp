#include "phase/run_handler.hpp"

#include <boost/asio/this_coro.hpp>

#include "hubferry/async/semaphore.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/phase/decision.hpp"

namespace hubferry::phase {

namespace asio = boost::asio;

namespace {

/// What a handler sets by itself, from its result into the one that the framework keeps.
void take(ReconcileState& result, ReconcileState returned) {
  result.done = returned.done;
  result.updated = returned.updated;
  result.error = std::move(returned.error);
  result.next = std::move(returned.next);
  result.requeue_after = returned.requeue_after;
  result.extra = std::move(returned.extra);
}

Awaitable<> run_leaf(const HandlerRun& run, const HandlerNode& node, const State& last, ReconcileState& result) {
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  const RunInfo info{run.clock, run.log, run.key, run.phase, node.name(), cancellation};
  std::exception_ptr thrown;
  try {
    take(result, co_await node.function(run.services, info, run.resource, last));
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown) {
    // An "operation aborted" of somebody else's making is an error like any other.
    if (info.stopping() && async::is_cancellation(thrown)) std::rethrow_exception(thrown);
    result.error = Error::from_exception(thrown);
  }
  judge(run.definition, result);
}

Awaitable<> run_serial(const HandlerRun& run, const HandlerNode& node, const State& last, ReconcileState& result) {
  // References to earlier results are held by nobody, but the one being filled must not move.
  result.components.reserve(node.components.size());
  const auto completed = completed_components(node, last);
  for (std::size_t index = 0; index < node.components.size(); ++index) {
    if (completed[index]) continue;
    const auto& component = node.components[index];
    auto& outcome = result.components.emplace_back();
    co_await run_handler(run, component, last.component(component.name()), outcome);
    if (outcome.failed || !outcome.done || !outcome.next.empty()) break;
    if (component.metadata.checkpoint && index + 1 < node.components.size()) {
      result.requeue_after = async::Duration::zero();
      break;
    }
  }
}

Awaitable<> run_component(const HandlerRun& run, const HandlerNode& component, const State& last,
                          ReconcileState& outcome, async::Semaphore* permits, async::TaskScope& scope) {
  async::Semaphore::Permit permit;
  if (permits != nullptr) permit = co_await permits->acquire();
  co_await run_handler(run, component, last, outcome);
  if (outcome.fatal) scope.stop();
}

Awaitable<> run_parallel(const HandlerRun& run, const HandlerNode& node, const State& last, ReconcileState& result) {
  result.components.resize(node.components.size());
  std::optional<async::Semaphore> permits;
  if (node.metadata.at_most > 0) permits.emplace(node.metadata.at_most);
  async::TaskScope scope{co_await asio::this_coro::executor};
  const auto completed = completed_components(node, last);
  for (std::size_t index = 0; index < node.components.size(); ++index) {
    if (completed[index]) continue;
    const auto& component = node.components[index];
    scope.spawn(run_component(run, component, last.component(component.name()), result.components[index],
                              permits ? &*permits : nullptr, scope));
  }
  co_await scope.join();
}

}  // namespace

Awaitable<> run_handler(const HandlerRun& run, const HandlerNode& node, const State& last, ReconcileState& result) {
  result.handler = node.name();
  result.phase = run.phase;
  result.start_time = run.clock.wall_now();
  result.cancelled = true;  // until it has ended by itself
  if (node.kind == HandlerKind::leaf) {
    co_await run_leaf(run, node, last, result);
  } else if (node.components.empty()) {
    mark_unworkable(result, "invalid composite handler: '" + node.name() + "' has no components");
  } else {
    if (node.kind == HandlerKind::serial) {
      co_await run_serial(run, node, last, result);
    } else {
      co_await run_parallel(run, node, last, result);
    }
    conclude(run.definition, node, last, result);
  }
  result.cancelled = false;
  result.end_time = run.clock.wall_now();
}

}  // namespace hubferry::phase
