#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"

namespace hubferry::async {

namespace {

bool has_code(const std::exception_ptr& error, error_code code) noexcept {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const boost::system::system_error& e) {
    return e.code() == code;
  } catch (...) {
    return false;
  }
}

}  // namespace

bool is_cancellation(const std::exception_ptr& error) noexcept {
  return has_code(error, asio::error::operation_aborted);
}

bool is_timeout(const std::exception_ptr& error) noexcept {
  return has_code(error, asio::error::timed_out);
}

std::string describe(const std::exception_ptr& error) {
  if (!error) return "no error";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

void throw_cancelled() {
  throw boost::system::system_error(asio::error::operation_aborted);
}

Awaitable<> Notify::wait() {
  while (!pending_) {
    co_await waiters_.wait();
    if (is_cancelled(co_await asio::this_coro::cancellation_state)) {
      if (pending_) waiters_.wake_one();  // pass the wake-up on to another waiter
      throw_cancelled();
    }
  }
  pending_ = false;
}

void throw_timed_out() {
  throw boost::system::system_error(asio::error::timed_out);
}

namespace detail {

Awaitable<bool> finish_before(Clock& clock, TimePoint deadline, Awaitable<> task) {
  if (deadline <= clock.now()) co_return false;
  TaskScope scope{co_await asio::this_coro::executor};
  bool finished = false;
  auto work = [&]() -> Awaitable<> {
    co_await std::move(task);
    finished = true;
    scope.stop();
  };
  auto watch = [&]() -> Awaitable<> {
    if (co_await clock.try_sleep_until(deadline)) scope.stop();
  };
  scope.spawn(work());
  scope.spawn(watch());
  co_await scope.join();
  co_return finished;
}

}  // namespace detail

}  // namespace hubferry::async
