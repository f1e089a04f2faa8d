#pragma once

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
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
  /// Does stop(), then destroys what was still suspended.
  ~LoopPool();

  /// Stops the loops and joins their threads. To be called before another loop is destroyed to which these may just be
  /// bringing a result: they touch it for a moment longer than it takes to arrive.
  void stop();

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

/// Set for the lifetime of an object: see loop_is_being_destroyed().
class LoopDestruction {
 public:
  LoopDestruction();
  ~LoopDestruction();
  LoopDestruction(const LoopDestruction&) = delete;
  LoopDestruction& operator=(const LoopDestruction&) = delete;
};

/// Runs `make_task()` on the loop of `target` and brings its result, or error, back to the caller's loop.
/// On the caller's own loop it is a plain call. Cancellation crosses over; the caller still waits for the task to
/// unwind. `make_task` is moved to the other loop and lives there as long as the task.
template <typename MakeTask>
auto run_on(Executor target, MakeTask make_task) -> std::invoke_result_t<MakeTask&>;

}  // namespace hubferry::async

#include "hubferry/async/detail/run_on.hpp"
