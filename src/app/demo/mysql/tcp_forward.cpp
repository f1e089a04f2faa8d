#include "app/demo/mysql/tcp_forward.hpp"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"

namespace hubferry::app {

namespace {

namespace asio = async::asio;
using asio::ip::tcp;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr auto forward_connect_timeout = std::chrono::seconds{1};

/// One direction.
async::Awaitable<> copy(tcp::socket& from, tcp::socket& to, Network& network) {
  std::array<char, 16'384> buffer{};
  for (;;) {
    const auto [ended, count] = co_await from.async_read_some(asio::buffer(buffer), as_result);
    if (network.is_cut) co_await network.ended.wait();
    if (ended || network.is_cut) break;
    const auto [broken, written] = co_await asio::async_write(to, asio::buffer(buffer, count), as_result);
    if (broken) break;
  }
  boost::system::error_code ignored;
  from.close(ignored);
  to.close(ignored);
}

}  // namespace

async::Awaitable<> forward(tcp::socket client, tcp::endpoint endpoint, async::Clock& clock,
                           std::shared_ptr<Network> network) {
  if (network->is_cut) co_await network->ended.wait();
  if (network->is_cut) co_return;
  tcp::socket server{client.get_executor()};
  auto connect = [&]() -> async::Awaitable<> {
    const auto [refused] = co_await server.async_connect(endpoint, as_result);
    if (refused) server.close();
  };
  const auto deadline = async::later(clock.now(), forward_connect_timeout);
  const bool answered = co_await async::before_deadline(clock, deadline, connect());
  if (!answered || !server.is_open()) co_return;
  // Otherwise each small packet may wait for the acknowledgement of the last.
  boost::system::error_code ignored;
  client.set_option(tcp::no_delay{true}, ignored);
  server.set_option(tcp::no_delay{true}, ignored);
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(copy(client, server, *network));
    scope.spawn(copy(server, client, *network));
    co_return;
  };
  co_await async::with_scope(body);
}

}  // namespace hubferry::app
