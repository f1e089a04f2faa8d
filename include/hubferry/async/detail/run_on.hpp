#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <exception>
#include <optional>
#include <utility>

namespace hubferry::async {
namespace detail {

/// What the two loops share of one crossing. The signal is touched on the target loop only, the result is written
/// there before the resumption is posted, and read after it.
template <typename T>
struct Crossing {
  asio::cancellation_signal signal;
  std::optional<T> result;
  std::exception_ptr error;
};

struct Nothing {};

template <typename T, typename MakeTask>
struct StartCrossing {
  Executor home;
  Executor target;
  MakeTask* make_task;
  std::shared_ptr<Crossing<T>> crossing;

  template <typename Handler>
  void operator()(Handler&& handler) const {
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) {
      slot.assign([target = target, crossing = crossing](asio::cancellation_type type) {
        post_across(target, [crossing, type] { crossing->signal.emit(type); });
      });
    }
    // Posted before any cancellation can be: the two arrive on the target in this order.
    post_across(target, [home = home, target = target, crossing = crossing, make_task = std::move(*make_task),
                         handler = std::forward<Handler>(handler)]() mutable {
      auto& signal = crossing->signal;
      auto bring_home = [home, handler = std::move(handler)](std::exception_ptr error) mutable {
        post_across(home, [handler = std::move(handler), error]() mutable { std::move(handler)(error); });
      };
      auto run = [crossing, make_task = std::move(make_task)]() mutable -> Awaitable<> {
        // Not left to Asio, which would hold on to it for a while: an exception then dies on either loop.
        try {
          if constexpr (std::is_same_v<T, Nothing>)
            co_await make_task();
          else
            crossing->result.emplace(co_await make_task());
        } catch (...) {
          crossing->error = std::current_exception();
        }
      };
      asio::co_spawn(target, std::move(run), asio::bind_cancellation_slot(signal.slot(), std::move(bring_home)));
    });
  }
};

}  // namespace detail

template <typename MakeTask>
auto run_on(Executor target, MakeTask make_task) -> std::invoke_result_t<MakeTask&> {
  using T = typename std::invoke_result_t<MakeTask&>::value_type;
  using Stored = std::conditional_t<std::is_void_v<T>, detail::Nothing, T>;
  const Executor home = co_await asio::this_coro::executor;
  if (home == target) co_return co_await make_task();

  auto crossing = std::make_shared<detail::Crossing<Stored>>();
  detail::StartCrossing<Stored, MakeTask> start{home, target, &make_task, crossing};
  co_await asio::async_initiate<const asio::deferred_t, void(std::exception_ptr)>(start, asio::deferred);
  if (crossing->error) std::rethrow_exception(std::exchange(crossing->error, nullptr));
  if constexpr (!std::is_void_v<T>) co_return std::move(*crossing->result);
}

}  // namespace hubferry::async
