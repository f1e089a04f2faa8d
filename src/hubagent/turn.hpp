#pragma once

#include "hubferry/async/wait_list.hpp"

namespace hubferry::hubagent {

/// One caller sends a request, the others wait for what it finds out. A caller that is cancelled leaves the question to
/// the next one. Executor: one loop.
class Turn {
 public:
  /// Held while asking; the other callers are woken at its end, however that comes.
  class [[nodiscard]] Asking {
   public:
    explicit Asking(Turn& turn) : turn_(turn) { turn_.taken_ = true; }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
    ~Asking() {
      turn_.taken_ = false;
      turn_.waiters_.wake_all();
    }

   private:
    Turn& turn_;
  };

  [[nodiscard]] bool taken() const { return taken_; }
  /// Until the caller that asks has ended.
  [[nodiscard]] auto wait() { return waiters_.wait(); }

 private:
  bool taken_ = false;
  async::WaitList waiters_;
};

}  // namespace hubferry::hubagent
