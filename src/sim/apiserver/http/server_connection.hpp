#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "hubferry/async/semaphore.hpp"
#include "sim/apiserver/http/request_handler.hpp"

namespace hubferry::sim {

/// Shared by all connections of a frontend.
struct ConnectionContext {
  RequestHandler handler;
  async::Duration write_timeout;
  boost::asio::ssl::context* tls = nullptr;  // null: plain HTTP
  std::size_t connections = 0;
};

/// Serves one connection until it ends. Connection errors end it silently; only cancellation throws.
/// Holds `slot` until then.
async::Awaitable<> serve_connection(ConnectionContext& context, boost::asio::ip::tcp::socket socket,
                                    async::Semaphore::Permit slot);

}  // namespace hubferry::sim
