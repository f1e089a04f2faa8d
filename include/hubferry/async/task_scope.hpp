#pragma once

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>
#include <concepts>
#include <memory>

#include "hubferry/async/types.hpp"

namespace hubferry::async {

/// Owns the coroutines spawned in it: structured concurrency.
///
/// The first child that fails stops its siblings; join() waits for all and then throws that first error.
/// Lifetime: join() must have returned before the scope is destroyed, or the process is aborted with a message:
/// with_scope() sees to that even when an exception passes.
/// Executor: everything on the executor given; not thread-safe.
/// Cancellation: cancelling the coroutine inside join() stops the children and still waits for them.
class TaskScope {
 public:
  explicit TaskScope(Executor executor);
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;
  ~TaskScope();

  /// Names one child, for as long as it runs.
  class Child;

  /// Starts `task` in the next turn of the loop. A task whose turn comes after stop() is dropped without having run,
  /// and has no Child.
  Child* spawn(Awaitable<> task);

  /// Cancels this one child, in the next turn. That it ends by cancellation then is no error.
  void stop(Child& child);

  /// Cancels every child that still runs, in the next turn. Later spawns are dropped. Not an error by itself.
  void stop();

  /// Waits until no child is left, then throws the first error if there was one.
  /// May be called again after more spawns.
  Awaitable<> join();

  [[nodiscard]] std::size_t running() const noexcept;
  [[nodiscard]] bool stopping() const noexcept;
  [[nodiscard]] const Executor& executor() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Runs `body(scope)` as the first child of a scope and joins it: whatever happens in the body, nothing outlives
/// this call. The first error, of body or children, stops all the others and is thrown.
template <std::invocable<TaskScope&> Body>
Awaitable<> with_scope(Body body);

/// Runs `body` to its end even if the caller is cancelled meanwhile; the caller's next co_await then throws.
/// For the few writes that must not be interrupted: releasing a lease, recording a result. A coroutine that has already
/// been cancelled must first `co_await asio::this_coro::throw_if_cancelled(false)`: otherwise this co_await throws.
Awaitable<> shielded(Awaitable<> body);

/// True if the current coroutine has been cancelled. For long stretches without a co_await, and for cleanup:
/// `if (is_cancelled(co_await asio::this_coro::cancellation_state)) …` (which does not throw, unlike other awaits).
inline bool is_cancelled(const asio::cancellation_state& state) {
  return state.cancelled() != asio::cancellation_type::none;
}

template <std::invocable<TaskScope&> Body>
Awaitable<> with_scope(Body body) {
  TaskScope scope{co_await asio::this_coro::executor};
  // As a child: so that the failure of another child reaches the body too.
  scope.spawn(body(scope));
  co_await scope.join();
}

}  // namespace hubferry::async
