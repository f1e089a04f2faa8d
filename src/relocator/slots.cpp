#include "relocator/slots.hpp"

#include <algorithm>

namespace hubferry::relocator {

/// A waiter in its queue. However the wait ends, it leaves nothing behind: neither its entry nor a slot that it was
/// granted and did not take.
class Slots::Waiting {
 public:
  Waiting(Slots& slots, std::string destination, std::string relocator)
      : slots_(slots), destination_(std::move(destination)), relocator_(std::move(relocator)) {
    slots_.destinations_[destination_].waiting[relocator_].push_back(&waiter_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (taken_) return;
    if (waiter_.granted.is_set()) {
      slots_.give_back(destination_);
      return;
    }
    auto& all = slots_.destinations_[destination_].waiting;
    auto& queue = all[relocator_];
    queue.erase(std::find(queue.begin(), queue.end(), &waiter_));
    if (queue.empty()) all.erase(relocator_);
  }

  async::Awaitable<> granted() { return waiter_.granted.wait(); }
  std::shared_ptr<Slot> take() {
    auto slot = std::make_shared<Slot>(slots_, destination_);
    taken_ = true;
    return slot;
  }

 private:
  Slots& slots_;
  std::string destination_;
  std::string relocator_;
  Waiter waiter_;
  bool taken_ = false;
};

Slot::~Slot() {
  slots_.give_back(destination_);
}

async::Awaitable<std::shared_ptr<Slot>> Slots::acquire(std::string destination, std::string relocator) {
  auto& there = destinations_[destination];
  if (there.used < limit_ && there.waiting.empty()) {
    ++there.used;
    there.last = relocator;
    co_return std::make_shared<Slot>(*this, destination);
  }
  Waiting waiting{*this, destination, relocator};
  co_await waiting.granted();
  co_return waiting.take();
}

std::size_t Slots::used(const std::string& destination) const {
  const auto found = destinations_.find(destination);
  return found == destinations_.end() ? 0 : found->second.used;
}

/// The slot goes to the next relocator by name after the one that was served last, and from there to its first waiter.
void Slots::give_back(const std::string& destination) {
  auto& there = destinations_[destination];
  if (there.waiting.empty()) {
    --there.used;
    return;
  }
  auto next = there.waiting.upper_bound(there.last);
  if (next == there.waiting.end()) next = there.waiting.begin();
  there.last = next->first;
  Waiter* const waiter = next->second.front();
  next->second.pop_front();
  if (next->second.empty()) there.waiting.erase(next);
  waiter->granted.set();
}

}  // namespace hubferry::relocator
