#include "hubferry/hubagent/fair_slots.hpp"

#include <algorithm>

namespace hubferry::hubagent {

FairSlots::Queue& FairSlots::queue_of(const std::string& migration) {
  const auto found = std::ranges::find(queues_, migration, &Queue::migration);
  return found != queues_.end() ? *found : queues_.emplace_back(migration);
}

void FairSlots::leave(Queue& queue) {
  if (--queue.waiting > 0) return;
  queues_.remove_if([&](const Queue& one) { return &one == &queue; });
}

async::Awaitable<FairSlots::Permit> FairSlots::acquire(std::string migration) {
  if (free_ > promised_) {
    --free_;
    co_return Permit{this};
  }
  auto& queue = queue_of(migration);
  ++queue.waiting;
  struct Leaving {
    FairSlots& slots;
    Queue& queue;
    ~Leaving() { slots.leave(queue); }
  } leaving{*this, queue};
  co_await queue.waiters.wait();
  --promised_;
  --free_;
  co_return Permit{this};
}

void FairSlots::give_back() {
  ++free_;
  wake_waiters();
}

void FairSlots::resize(std::size_t slots) {
  const auto wanted = static_cast<std::ptrdiff_t>(slots);
  free_ += wanted - slots_;
  slots_ = wanted;
  wake_waiters();
}

void FairSlots::wake_waiters() {
  while (free_ > promised_) {
    const auto next = std::ranges::find_if(queues_, [](const Queue& queue) { return !queue.waiters.empty(); });
    if (next == queues_.end()) return;
    ++promised_;
    next->waiters.wake_one();
    queues_.splice(queues_.end(), queues_, next);
  }
}

}  // namespace hubferry::hubagent
