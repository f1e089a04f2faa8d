#pragma once

#include <list>
#include <string>

#include "hubferry/async/wait_list.hpp"

namespace hubferry::hubagent {

/// Limits the watches on single objects that are open at once on a hub. Migrations take turns: however many clusters
/// one of them waits for, a slot that becomes free goes to the migration that has waited longest for its turn.
/// Cancellation: as async::Semaphore.
class WatchSlots {
 public:
  /// The right to have a watch open, returned on destruction.
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
    friend class WatchSlots;
    explicit Permit(WatchSlots* slots) : slots_(slots) {}
    WatchSlots* slots_ = nullptr;
  };

  explicit WatchSlots(std::size_t slots) : free_(slots) {}

  async::Awaitable<Permit> acquire(std::string migration);

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

  std::size_t free_;
  std::size_t promised_ = 0;  // free slots that belong to waiters already woken
  std::list<Queue> queues_;   // the next one to be served first
};

}  // namespace hubferry::hubagent
