#include "hubferry/async/deadline.hpp"

#include <boost/asio/error.hpp>

namespace hubferry::async {

void throw_timed_out() {
  throw boost::system::system_error(asio::error::timed_out);
}

namespace detail {

Awaitable<> run_until_deadline(Clock& clock, TimePoint deadline, Awaitable<> task) {
  if (deadline <= clock.now()) throw_timed_out();
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
  if (!finished) throw_timed_out();
}

}  // namespace detail

}  // namespace hubferry::async
