#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "hubferry/async/clock.hpp"

namespace hubferry::kube::http {

/// Connects to the first endpoint that answers. They are tried in turn with a short head start for each, as RFC 8305
/// has it: an address that swallows packets costs a quarter of a second, not the whole timeout.
/// Errors: system_error of the last failure. Cancellation: terminal.
async::Awaitable<boost::asio::ip::tcp::socket> connect_any(std::vector<boost::asio::ip::tcp::endpoint> endpoints,
                                                           async::Clock& clock);

}  // namespace hubferry::kube::http
