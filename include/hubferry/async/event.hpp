#pragma once

#include "hubferry/async/wait_list.hpp"

namespace hubferry::async {

/// A latch: once set, every wait returns at once, until reset.
class Event {
 public:
  void set() {
    set_ = true;
    waiters_.wake_all();
  }
  void reset() { set_ = false; }
  [[nodiscard]] bool is_set() const { return set_; }

  Awaitable<> wait() {
    while (!set_) co_await waiters_.wait();
  }

 private:
  bool set_ = false;
  WaitList waiters_;
};

/// "Look again": wakes one waiter, or the next to come. Many notifications before a wait count as one.
/// No wake-up is lost between looking at the data and waiting.
class Notify {
 public:
  void notify() {
    pending_ = true;
    waiters_.wake_one();
  }

  /// Returns once per burst of notifications. With several waiters each burst wakes one of them.
  Awaitable<> wait();

 private:
  bool pending_ = false;
  WaitList waiters_;
};

}  // namespace hubferry::async
