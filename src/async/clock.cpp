#include "hubferry/async/clock.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

namespace hubferry::async {

TimePoint RealClock::now() const {
  return TimePoint{std::chrono::steady_clock::now().time_since_epoch()};
}

WallTime RealClock::wall_now() const {
  return std::chrono::system_clock::now();
}

Awaitable<> RealClock::sleep_until(TimePoint when) {
  if (when <= now()) {
    co_await asio::post(asio::deferred);
    co_return;
  }
  const std::chrono::steady_clock::time_point expiry{when.time_since_epoch()};
  asio::steady_timer timer{co_await asio::this_coro::executor, expiry};
  co_await timer.async_wait(asio::deferred);
}

}  // namespace hubferry::async
