#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include "hubferry/async/event.hpp"
#include "hubferry/async/semaphore.hpp"
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

Awaitable<Semaphore::Permit> Semaphore::acquire() {
  if (free_ == promised_ || !waiters_.empty()) {
    co_await waiters_.wait();
    --promised_;
  }
  --free_;
  co_return Permit{this};
}

void Semaphore::give_back() {
  ++free_;
  if (waiters_.wake_one()) ++promised_;
}

}  // namespace hubferry::async
