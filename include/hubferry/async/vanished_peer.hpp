#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "hubferry/async/types.hpp"

namespace hubferry::async {

/// Lets the kernel detect within a minute that the peer has vanished: a stream may be silent for an hour, and neither
/// side would ever send anything that fails.
void notice_vanished_peer(asio::ip::tcp::socket& socket);

}  // namespace hubferry::async
