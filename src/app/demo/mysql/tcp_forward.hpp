#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/event.hpp"

namespace hubferry::app {

/// A network that may be cut: nothing passes any more, in either direction, and no connection ends by it.
struct Network {
  bool is_cut = false;
  async::Event ended;  // what waits in a cut network ends too
};

/// Forwards between `client` and a server until either side ends: then both are closed. Also if the server does not
/// accept the connection within a second.
async::Awaitable<> forward(async::asio::ip::tcp::socket client, async::asio::ip::tcp::endpoint server,
                           async::Clock& clock, std::shared_ptr<Network> network);

}  // namespace hubferry::app
