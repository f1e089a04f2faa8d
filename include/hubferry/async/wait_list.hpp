#pragma once

#include <boost/asio/append.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <memory>

#include "hubferry/async/types.hpp"

namespace hubferry::async {

class WaitList;

namespace detail {

class ParkedRegistry;

/// One parked coroutine: a link in a WaitList, allocated together with its completion handler. Its loop knows it too:
/// a coroutine that is parked on an object of its own frame must go when the loop goes.
class Parked {
 public:
  Parked(const Parked&) = delete;
  Parked& operator=(const Parked&) = delete;

  /// Unlinks, frees this node, and posts the coroutine's resumption.
  virtual void resume(error_code ec) = 0;
  /// Frees this node without resuming; the coroutine's frame is destroyed with its handler.
  virtual void discard() noexcept = 0;

  void unlink() noexcept;
  void register_with(asio::execution_context& loop);

 protected:
  Parked() = default;
  ~Parked() = default;

 private:
  friend class async::WaitList;
  friend class ParkedRegistry;
  WaitList* list_ = nullptr;
  Parked* prev_ = nullptr;
  Parked* next_ = nullptr;
  ParkedRegistry* registry_ = nullptr;
  Parked* registry_prev_ = nullptr;
  Parked* registry_next_ = nullptr;
};

}  // namespace detail

/// Coroutines that wait for something, first in first out: the one mechanism beneath every waiting primitive.
///
/// `co_await list.wait()` suspends until woken. A wake-up is only a hint: callers re-check what they wait for.
/// Executor: all calls on the loop of the waiting coroutines; resumption is posted, never run inside wake_*().
/// Cancellation: terminal, at once. A waiter that was woken and is cancelled in the same turn counts as woken;
/// its next co_await throws.
/// Lifetime: must outlive its waiters, except when their loop is being destroyed.
class WaitList {
 public:
  WaitList() = default;
  WaitList(const WaitList&) = delete;
  WaitList& operator=(const WaitList&) = delete;
  ~WaitList();

  [[nodiscard]] auto wait() {
    return asio::async_initiate<const asio::deferred_t, void(error_code)>(Initiation{this}, asio::deferred);
  }

  /// The same without an exception: a tuple with the error code.
  [[nodiscard]] auto try_wait() {
    using Token = asio::as_tuple_t<asio::deferred_t>;
    return asio::async_initiate<const Token, void(error_code)>(Initiation{this}, asio::as_tuple(asio::deferred));
  }

  /// Returns false when there are no waiters.
  bool wake_one();
  std::size_t wake_all();
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }

 private:
  friend class detail::Parked;

  struct Initiation {
    WaitList* list;
    template <typename Handler>
    void operator()(Handler&& handler) const;
  };

  void push_back(detail::Parked* waiter) noexcept;
  void remove(detail::Parked* waiter) noexcept;

  detail::Parked* head_ = nullptr;
  detail::Parked* tail_ = nullptr;
};

namespace detail {

template <typename Handler>
class ParkedHandler final : public Parked {
  using Allocator = typename std::allocator_traits<asio::associated_allocator_t<Handler>>::template rebind_alloc<
      ParkedHandler<Handler>>;
  using Traits = std::allocator_traits<Allocator>;

 public:
  explicit ParkedHandler(Handler&& handler) : handler_(std::move(handler)) {}

  static ParkedHandler* create(Handler&& handler) {
    Allocator allocator{asio::get_associated_allocator(handler)};
    auto* memory = Traits::allocate(allocator, 1);
    return new (memory) ParkedHandler(std::move(handler));
  }

  void resume(error_code ec) override {
    unlink();
    // From here on a cancellation must not find this node any more.
    asio::get_associated_cancellation_slot(handler_).clear();
    Handler handler = release();
    asio::post(asio::append(std::move(handler), ec));
  }

  void discard() noexcept override {
    unlink();
    Handler dropped = release();
  }

 private:
  Handler release() {
    Handler handler = std::move(handler_);
    Allocator allocator{asio::get_associated_allocator(handler)};
    this->~ParkedHandler();
    Traits::deallocate(allocator, this, 1);
    return handler;
  }

  Handler handler_;
};

}  // namespace detail

template <typename Handler>
void WaitList::Initiation::operator()(Handler&& handler) const {
  auto slot = asio::get_associated_cancellation_slot(handler);
  const auto executor = asio::get_associated_executor(handler);
  auto* waiter = detail::ParkedHandler<std::decay_t<Handler>>::create(std::forward<Handler>(handler));
  list->push_back(waiter);
  waiter->register_with(asio::query(executor, asio::execution::context));
  if (slot.is_connected()) {
    slot.assign([waiter](asio::cancellation_type type) {
      if ((type & asio::cancellation_type::terminal) != asio::cancellation_type::none)
        waiter->resume(asio::error::operation_aborted);
    });
  }
}

}  // namespace hubferry::async
