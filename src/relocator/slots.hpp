#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "hubferry/async/event.hpp"

namespace hubferry::relocator {

class Slots;

/// The right to move one ClusterDeployment to a destination; returned on destruction.
class Slot {
 public:
  Slot(Slots& slots, std::string destination) : slots_(slots), destination_(std::move(destination)) {}
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot();

  [[nodiscard]] const std::string& destination() const { return destination_; }

 private:
  Slots& slots_;
  std::string destination_;
};

/// Limits how many move to one destination at once, which is a hub, whatever Secrets lead there. Relocators that share
/// a destination take turns: one with a thousand ClusterDeployments does not keep another one with two waiting.
/// Lifetime: outlives its Slots. Executor: one loop. Cancellation: a cancelled waiter leaves its queue.
class Slots {
 public:
  explicit Slots(std::size_t per_destination) : limit_(per_destination) {}

  async::Awaitable<std::shared_ptr<Slot>> acquire(std::string destination, std::string relocator);

  [[nodiscard]] std::size_t used(const std::string& destination) const;

 private:
  friend class Slot;
  struct Waiter {
    async::Event granted;
  };
  struct Destination {
    std::size_t used = 0;
    std::map<std::string, std::deque<Waiter*>> waiting;  // by relocator; no queue is empty
    std::string last;                                    // the relocator that was served last
  };
  class Waiting;

  void give_back(const std::string& destination);

  std::size_t limit_;
  std::map<std::string, Destination> destinations_;
};

}  // namespace hubferry::relocator
