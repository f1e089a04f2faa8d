#pragma once

#include "hubferry/async/backoff.hpp"
#include "hubferry/async/deadline.hpp"
#include "migration/step.hpp"

/// Operations on hubs, retried until they succeed or the time is up. Each operation is idempotent. ARCHITECTURE.md has
/// all retry loops in one table.
namespace hubferry::migration {

/// The value type of what `Operation` returns: an awaitable of a kube::Result, a hubagent::Result
/// or an OperationResult.
template <typename Operation, typename... Arguments>
using ResultOf = typename std::invoke_result_t<Operation&, Arguments...>::value_type;

namespace detail {

template <typename Result>
auto as_operation_result(Result result) -> OperationResult<typename Result::value_type> {
  if (!result) return OperationError{result.error()};
  if constexpr (std::is_void_v<typename Result::value_type>)
    return {};
  else
    return std::move(*result);
}

}  // namespace detail

/// Runs `operation` until it succeeds: again after attempt_timeout() without an answer, and with backoff (0.5 s to 15
/// s) after an error that may recover. Other errors are returned at once. At the deadline: timed_out, with the last
/// error. `operation` is called for each attempt. The user sees the last error in the condition of the phase while it
/// is retried, and in the log. When a hub has recovered, the pause ends.
template <typename Operation>
Awaitable<OperationResult<typename ResultOf<Operation>::value_type>> retry(Step& step, TimeBudget time,
                                                                           Operation operation) {
  auto& clock = step.clock();
  async::Backoff backoff{
      {.first = std::chrono::milliseconds{500}, .most = std::chrono::seconds{15}}, clock, step->env.random};
  std::optional<OperationError> last;
  std::optional<Step::Wait> wait;
  const auto guaranteed = time.guaranteed_until();
  while (!time.is_over() || clock.now() < guaranteed) {
    const auto within = std::min(time.deadline(), async::later(clock.now(), time.attempt_timeout()));
    auto answer = co_await async::before_deadline(clock, std::max(within, guaranteed), operation());
    if (!answer) {
      step.log().warn("operation timed out, retrying");
      wait.emplace(step, "an operation timed out and is retried");
      continue;
    }
    auto result = detail::as_operation_result(std::move(*answer));
    if (result || !result.error().may_recover()) co_return result;
    last = result.error();
    step.log().info("operation failed, retrying", {{"error", last->describe()}});
    const auto pause = async::later(clock.now(), backoff.next());
    wait.emplace(step, last->message());
    const auto until = std::min(std::max(time.deadline(), guaranteed), pause);
    co_await async::before_deadline(clock, until, step->hubs.troubles.recovered());
  }
  co_return OperationError::timed_out(time.timeout(), last);
}

/// Runs `operation(hub)` on the source without retry(); `hub` is a hubagent::SourceHub. It is called again if the
/// connection to the hub is replaced meanwhile.
template <typename Operation>
auto once_on_source(Step& step, Operation operation)
    -> Awaitable<OperationResult<typename ResultOf<Operation, hubagent::SourceHub&>::value_type>> {
  auto result = co_await hubs::on_source(step->hubs, step.migration.from(), std::move(operation));
  co_return detail::as_operation_result(std::move(result));
}

/// The same on the target; `hub` is a hubagent::TargetHub.
template <typename Operation>
auto once_on_target(Step& step, Operation operation)
    -> Awaitable<OperationResult<typename ResultOf<Operation, hubagent::TargetHub&>::value_type>> {
  auto result = co_await hubs::on_target(step->hubs, step.migration.to(), std::move(operation));
  co_return detail::as_operation_result(std::move(result));
}

/// Runs `operation(hub)` on the source with retry(), for as long as the step has time, or for less.
template <typename Operation>
auto on_source(Step& step, TimeBudget time, Operation operation) {
  auto attempt = [&step, operation = std::move(operation)] { return once_on_source(step, operation); };
  return retry(step, time, std::move(attempt));
}
template <typename Operation>
auto on_source(Step& step, Operation operation) {
  return on_source(step, step.time(), std::move(operation));
}

/// The same on the target.
template <typename Operation>
auto on_target(Step& step, TimeBudget time, Operation operation) {
  auto attempt = [&step, operation = std::move(operation)] { return once_on_target(step, operation); };
  return retry(step, time, std::move(attempt));
}
template <typename Operation>
auto on_target(Step& step, Operation operation) {
  return on_target(step, step.time(), std::move(operation));
}

}  // namespace hubferry::migration
