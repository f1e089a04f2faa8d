#pragma once

#include <optional>
#include <type_traits>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/task_scope.hpp"

namespace hubferry::async {

/// The exception of with_deadline(): a system_error with asio::error::timed_out.
[[noreturn]] void throw_timed_out();

namespace detail {
/// True if `task` finished, false if it was cancelled, or not even started, because of the deadline.
Awaitable<bool> finish_before(Clock& clock, TimePoint deadline, Awaitable<> task);

template <typename T>
Awaitable<> store_result(Awaitable<T> task, std::optional<T>& result) {
  result.emplace(co_await std::move(task));
}
}  // namespace detail

/// Runs `task` until `deadline`, then cancels it, waits for it to unwind, and throws a timeout.
/// A deadline that has already passed throws without starting the task. A task that finishes in the same turn as the
/// deadline has finished: its result is returned.
template <typename T>
Awaitable<T> with_deadline(Clock& clock, TimePoint deadline, Awaitable<T> task) {
  if (deadline == never) co_return co_await std::move(task);
  if constexpr (std::is_void_v<T>) {
    if (!co_await detail::finish_before(clock, deadline, std::move(task))) throw_timed_out();
  } else {
    std::optional<T> result;
    if (!co_await detail::finish_before(clock, deadline, detail::store_result(std::move(task), result)))
      throw_timed_out();
    co_return std::move(*result);
  }
}

/// What before_deadline() returns: the task's value, or nothing on timeout; without a value, whether the task finished.
template <typename T>
using BeforeDeadline = std::conditional_t<std::is_void_v<T>, bool, std::optional<T>>;

/// As with_deadline(), where a timeout is an expected outcome: it is returned, not thrown. Everything that the task
/// itself throws is passed on, a timeout of its own included.
///
///   if (auto answer = co_await before_deadline(clock, deadline, ask())) use(*answer);
///   const bool finished = co_await before_deadline(clock, deadline, event.wait());
template <typename T>
Awaitable<BeforeDeadline<T>> before_deadline(Clock& clock, TimePoint deadline, Awaitable<T> task) {
  if constexpr (std::is_void_v<T>) {
    if (deadline != never) co_return co_await detail::finish_before(clock, deadline, std::move(task));
    co_await std::move(task);
    co_return true;
  } else {
    std::optional<T> result;
    auto run = detail::store_result(std::move(task), result);
    if (deadline == never)
      co_await std::move(run);
    else
      co_await detail::finish_before(clock, deadline, std::move(run));
    co_return result;
  }
}

}  // namespace hubferry::async
