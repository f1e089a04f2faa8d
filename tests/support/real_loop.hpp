#pragma once

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>

#include "hubferry/async/loops.hpp"

namespace hubferry::test {

/// A loop on real time in the test's own thread, for what needs real sockets or processes.
class RealLoop {
 public:
  RealLoop() = default;
  RealLoop(const RealLoop&) = delete;
  RealLoop& operator=(const RealLoop&) = delete;
  ~RealLoop() {
    async::LoopDestruction mark;
    context_.reset();
  }

  async::Executor executor() { return context_->get_executor(); }

  /// Runs `task` to its end and returns its result or throws its error.
  template <typename T>
  T run(async::Awaitable<T> task) {
    std::exception_ptr error;
    if constexpr (std::is_void_v<T>) {
      bool finished = false;
      async::asio::co_spawn(executor(), std::move(task), [&](std::exception_ptr e) {
        error = e;
        finished = true;
      });
      run_until(finished);
      if (error) std::rethrow_exception(error);
    } else {
      std::optional<T> result;
      bool finished = false;
      async::asio::co_spawn(executor(), std::move(task), [&](std::exception_ptr e, T value) {
        error = e;
        result.emplace(std::move(value));
        finished = true;
      });
      run_until(finished);
      if (error) std::rethrow_exception(error);
      return std::move(*result);
    }
  }

  /// How often a handler ran on this loop. Waiting does not count.
  [[nodiscard]] std::size_t turns() const { return turns_; }

 private:
  void run_until(const bool& finished) {
    context_->restart();
    while (!finished && context_->run_one() > 0) ++turns_;
    if (!finished) throw std::runtime_error("deadlock: the task waits and no operation is pending");
  }

  std::size_t turns_ = 0;
  std::unique_ptr<async::asio::io_context> context_ = std::make_unique<async::asio::io_context>(1);
};

}  // namespace hubferry::test
