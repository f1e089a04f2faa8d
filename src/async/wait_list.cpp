#include "hubferry/async/wait_list.hpp"

#include <boost/system/system_error.hpp>

namespace hubferry::async {

namespace detail {

/// All coroutines of one loop that are parked anywhere.
class ParkedRegistry final : public asio::execution_context::service {
 public:
  static inline asio::execution_context::id id;

  explicit ParkedRegistry(asio::execution_context& loop) : service(loop) {}

  void shutdown() override {
    while (head_ != nullptr) head_->discard();
  }

  void add(Parked* waiter) noexcept {
    waiter->registry_ = this;
    waiter->registry_next_ = head_;
    if (head_ != nullptr) head_->registry_prev_ = waiter;
    head_ = waiter;
  }

  void remove(Parked* waiter) noexcept {
    (waiter->registry_prev_ != nullptr ? waiter->registry_prev_->registry_next_ : head_) = waiter->registry_next_;
    if (waiter->registry_next_ != nullptr) waiter->registry_next_->registry_prev_ = waiter->registry_prev_;
    waiter->registry_ = nullptr;
  }

 private:
  Parked* head_ = nullptr;
};

void Parked::unlink() noexcept {
  if (list_ != nullptr) list_->remove(this);
  if (registry_ != nullptr) registry_->remove(this);
}

void Parked::register_with(asio::execution_context& loop) {
  asio::use_service<ParkedRegistry>(loop).add(this);
}

}  // namespace detail

WaitList::~WaitList() {
  // Only reached with waiters while their loop is torn down: their frames go with their handlers.
  while (head_ != nullptr) head_->discard();
}

bool WaitList::wake_one() {
  if (head_ == nullptr) return false;
  head_->resume({});
  return true;
}

std::size_t WaitList::wake_all() {
  std::size_t woken = 0;
  while (wake_one()) ++woken;
  return woken;
}

void WaitList::push_back(detail::Parked* waiter) noexcept {
  waiter->list_ = this;
  waiter->prev_ = tail_;
  waiter->next_ = nullptr;
  (tail_ != nullptr ? tail_->next_ : head_) = waiter;
  tail_ = waiter;
}

void WaitList::remove(detail::Parked* waiter) noexcept {
  (waiter->prev_ != nullptr ? waiter->prev_->next_ : head_) = waiter->next_;
  (waiter->next_ != nullptr ? waiter->next_->prev_ : tail_) = waiter->prev_;
  waiter->list_ = nullptr;
}

}  // namespace hubferry::async
