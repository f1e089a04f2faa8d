#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/wait_list.hpp"

namespace hubferry::test {

/// Hands values from producers to consumers in order, at most `capacity` waiting.
/// close() lets consumers take what is left, then gives them nullopt.
/// Cancellation: a cancelled consumer has taken nothing, a cancelled producer has put nothing.
template <typename T>
class Queue {
 public:
  explicit Queue(std::size_t capacity) : capacity_(capacity) {}

  /// Waits for room. False when the queue is closed: the value is dropped.
  async::Awaitable<bool> push(T value) {
    while (!closed_ && values_.size() >= capacity_) {
      co_await producers_.wait();
      if (async::is_cancelled(co_await async::asio::this_coro::cancellation_state)) {
        producers_.wake_one();  // pass the wake-up on to another waiter
        async::throw_cancelled();
      }
    }
    co_return try_push(std::move(value));
  }

  /// False when full or closed.
  bool try_push(T value) {
    if (closed_ || values_.size() >= capacity_) return false;
    values_.push_back(std::move(value));
    consumers_.wake_one();
    return true;
  }

  /// The oldest value, or nullopt when closed and empty.
  async::Awaitable<std::optional<T>> pop() {
    while (values_.empty()) {
      if (closed_) co_return std::nullopt;
      co_await consumers_.wait();
      if (async::is_cancelled(co_await async::asio::this_coro::cancellation_state)) {
        if (!values_.empty()) consumers_.wake_one();
        async::throw_cancelled();
      }
    }
    std::optional<T> value{std::move(values_.front())};
    values_.pop_front();
    producers_.wake_one();
    co_return value;
  }

  void close() {
    closed_ = true;
    consumers_.wake_all();
    producers_.wake_all();
  }

  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] std::size_t size() const { return values_.size(); }

 private:
  std::size_t capacity_;
  std::deque<T> values_;
  bool closed_ = false;
  async::WaitList consumers_;
  async::WaitList producers_;
};

}  // namespace hubferry::test
