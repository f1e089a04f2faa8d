#include "kube/http/connect_any.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>
#include <optional>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"

namespace hubferry::kube::http {

namespace {

namespace asio = boost::asio;
using async::Awaitable;
using boost::asio::ip::tcp;

/// "Connection Attempt Delay" of RFC 8305.
constexpr auto head_start = std::chrono::milliseconds{250};

struct Race {
  std::optional<tcp::socket> winner;
  std::exception_ptr last_failure;
  std::size_t started = 0;
  std::size_t failed = 0;
  async::Notify changed;

  [[nodiscard]] bool is_over() const { return winner || failed == started; }
};

Awaitable<> run_attempt(Race& race, tcp::endpoint endpoint) {
  tcp::socket socket{co_await asio::this_coro::executor};
  try {
    co_await socket.async_connect(endpoint, asio::deferred);
    if (!race.winner) race.winner.emplace(std::move(socket));
  } catch (const boost::system::system_error& error) {
    if (error.code() == asio::error::operation_aborted) throw;
    race.last_failure = std::current_exception();
    ++race.failed;
  }
  race.changed.notify();
}

/// Until somebody wins, or one more has failed.
Awaitable<> wait_for_change(Race& race) {
  const auto failed = race.failed;
  while (!race.winner && race.failed == failed && !race.is_over()) co_await race.changed.wait();
}

}  // namespace

Awaitable<tcp::socket> connect_any(std::vector<tcp::endpoint> endpoints, async::Clock& clock) {
  Race race;
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (const auto& endpoint : endpoints) {
      ++race.started;
      scope.spawn(run_attempt(race, endpoint));
      const auto next = clock.now() + head_start;
      co_await async::before_deadline(clock, next, wait_for_change(race));
      if (race.winner) break;
    }
    while (!race.is_over()) co_await race.changed.wait();
    scope.stop();
  };
  co_await async::with_scope(std::move(body));
  if (race.winner) co_return std::move(*race.winner);
  if (!race.last_failure) throw boost::system::system_error(asio::error::host_not_found);
  std::rethrow_exception(race.last_failure);
}

}  // namespace hubferry::kube::http
