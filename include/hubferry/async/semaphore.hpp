#pragma once

#include <cstddef>

#include "hubferry/async/wait_list.hpp"

namespace hubferry::async {

/// Limits concurrency. Fair: permits go to waiters in the order of their acquire() calls.
/// Cancellation: a cancelled waiter leaves the queue; one that was granted a permit in the same turn returns it when
/// it unwinds.
class Semaphore {
 public:
  /// The right to proceed, returned on destruction.
  class [[nodiscard]] Permit {
   public:
    Permit() = default;
    Permit(Permit&& other) noexcept : semaphore_(std::exchange(other.semaphore_, nullptr)) {}
    Permit& operator=(Permit&& other) noexcept {
      release();
      semaphore_ = std::exchange(other.semaphore_, nullptr);
      return *this;
    }
    ~Permit() { release(); }

    void release() {
      if (auto* semaphore = std::exchange(semaphore_, nullptr)) semaphore->give_back();
    }

   private:
    friend class Semaphore;
    explicit Permit(Semaphore* semaphore) : semaphore_(semaphore) {}
    Semaphore* semaphore_ = nullptr;
  };

  explicit Semaphore(std::size_t permits) : free_(permits), total_(permits) {}

  Awaitable<Permit> acquire();

  [[nodiscard]] std::size_t free() const { return free_; }
  [[nodiscard]] std::size_t total() const { return total_; }

 private:
  void give_back();

  std::size_t free_;
  std::size_t total_;
  std::size_t promised_ = 0;  // free permits that belong to waiters already woken
  WaitList waiters_;
};

}  // namespace hubferry::async
