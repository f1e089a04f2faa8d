#pragma once

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "hubferry/async/types.hpp"

namespace hubferry::async {

/// Event loops, one thread each. Objects live on one loop; work for another is sent there with run_on().
class LoopPool {
 public:
  explicit LoopPool(std::size_t threads);
  LoopPool(const LoopPool&) = delete;
  LoopPool& operator=(const LoopPool&) = delete;
  /// Stops the loops, joins their threads, then destroys what was still suspended.
  ~LoopPool();

  /// The loops in turn, so that connections spread evenly. From any thread.
  Executor next();
  [[nodiscard]] std::size_t size() const { return loops_.size(); }

 private:
  struct Loop;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::atomic<std::size_t> turn_ = 0;
};

/// True while a loop of this thread destroys what was still suspended on it: owners need not have joined then.
bool loop_is_being_destroyed() noexcept;

/// Scope in which a loop is destroyed: see loop_is_being_destroyed(). The constructor waits for other threads that are
/// still inside a post_across(): Asio wakes the receiving loop up after the handler can already run there, so the
/// result that ends a loop may arrive while its sender still uses that loop.
class LoopDestruction {
 public:
  LoopDestruction();
  ~LoopDestruction();
  LoopDestruction(const LoopDestruction&) = delete;
  LoopDestruction& operator=(const LoopDestruction&) = delete;
};

/// Marks the calling thread, for its lifetime, as being inside a post to another thread's loop.
class CrossLoopPost {
 public:
  CrossLoopPost();
  ~CrossLoopPost();
  CrossLoopPost(const CrossLoopPost&) = delete;
  CrossLoopPost& operator=(const CrossLoopPost&) = delete;
};

/// asio::post() to a loop of another thread: that loop may be destroyed as soon as `function` has run.
template <typename Function>
void post_across(const Executor& target, Function&& function) {
  const CrossLoopPost posting;
  asio::post(target, std::forward<Function>(function));
}

/// Runs `make_task()` on the loop of `target` and brings its result, or error, back to the caller's loop.
/// On the caller's own loop it is a plain call. Cancellation crosses over; the caller still waits for the task to
/// unwind. `make_task` is moved to the other loop and lives there as long as the task.
template <typename MakeTask>
auto run_on(Executor target, MakeTask make_task) -> std::invoke_result_t<MakeTask&>;

}  // namespace hubferry::async

#include "hubferry/async/detail/run_on.hpp"
