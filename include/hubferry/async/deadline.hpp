#pragma once

#include <optional>
#include <type_traits>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/task_scope.hpp"

namespace hubferry::async {

/// The exception of with_deadline(): a system_error with asio::error::timed_out.
[[noreturn]] void throw_timed_out();

namespace detail {
Awaitable<> run_until_deadline(Clock& clock, TimePoint deadline, Awaitable<> task);

template <typename T>
Awaitable<> store_result(Awaitable<T> task, std::optional<T>& result) {
  result.emplace(co_await std::move(task));
}
}  // namespace detail

/// Runs `task` until `deadline`, then cancels it, waits for it to unwind, and throws a timeout.
/// A deadline that has passed already throws without starting the task. A task that finishes in the very turn in
/// which time is up has finished: its result is returned.
template <typename T>
Awaitable<T> with_deadline(Clock& clock, TimePoint deadline, Awaitable<T> task) {
  if (deadline == never) co_return co_await std::move(task);
  if constexpr (std::is_void_v<T>) {
    co_await detail::run_until_deadline(clock, deadline, std::move(task));
  } else {
    std::optional<T> result;
    co_await detail::run_until_deadline(clock, deadline, detail::store_result(std::move(task), result));
    co_return std::move(*result);
  }
}

}  // namespace hubferry::async
