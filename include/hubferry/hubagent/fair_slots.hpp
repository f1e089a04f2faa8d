#pragma once

#include <cstddef>
#include <list>
#include <string>

#include "hubferry/async/wait_list.hpp"

namespace hubferry::hubagent {

/// Limits what is done at once for the clusters of all migrations: watches on single objects of a hub, or clusters
/// between two hubs. Migrations take turns: however many clusters one of them has, a slot that becomes free goes to the
/// migration that has waited longest for its turn.
/// Cancellation: as async::Semaphore.
class FairSlots {
 public:
  /// One slot, returned on destruction.
  class [[nodiscard]] Permit {
   public:
    Permit() = default;
    Permit(Permit&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)) {}
    Permit& operator=(Permit&& other) noexcept {
      release();
      slots_ = std::exchange(other.slots_, nullptr);
      return *this;
    }
    ~Permit() { release(); }

    void release() {
      if (auto* slots = std::exchange(slots_, nullptr)) slots->give_back();
    }

   private:
    friend class FairSlots;
    explicit Permit(FairSlots* slots) : slots_(slots) {}
    FairSlots* slots_ = nullptr;
  };

  explicit FairSlots(std::size_t slots) : slots_(static_cast<std::ptrdiff_t>(slots)), free_(slots_) {}

  async::Awaitable<Permit> acquire(std::string migration);
  [[nodiscard]] bool all_taken() const { return free_ <= promised_; }

  /// With fewer than are taken, none is granted until enough are returned.
  void resize(std::size_t slots);

 private:
  /// The waiters of one migration.
  struct Queue {
    explicit Queue(std::string of) : migration(std::move(of)) {}

    std::string migration;
    std::size_t waiting = 0;
    async::WaitList waiters;
  };

  Queue& queue_of(const std::string& migration);
  void leave(Queue& queue);
  void give_back();
  void wake_waiters();

  std::ptrdiff_t slots_;
  std::ptrdiff_t free_;          // negative: more are taken than there are by now
  std::ptrdiff_t promised_ = 0;  // free slots that belong to waiters already woken
  std::list<Queue> queues_;      // the next one to be served first
};

}  // namespace hubferry::hubagent
