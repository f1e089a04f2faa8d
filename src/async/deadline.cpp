#include "hubferry/async/deadline.hpp"

#include <boost/asio/error.hpp>

namespace hubferry::async {

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
    co_await clock.sleep_until(deadline);
    scope.stop();
  };
  scope.spawn(work());
  scope.spawn(watch());
  co_await scope.join();
  co_return finished;
}

}  // namespace detail

}  // namespace hubferry::async
