#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "hubferry/async/semaphore.hpp"
#include "sim/apiserver/http/request_handler.hpp"

namespace hubferry::sim {

/// What all connections of a frontend share.
struct SessionContext {
  HttpHandler handler;
  async::Duration write_timeout;
  boost::asio::ssl::context* tls = nullptr;  // null: plain HTTP
  std::size_t connections = 0;
};

/// Serves one connection to its end. Errors of the connection end it quietly; only cancellation throws.
/// `place` is kept until then.
async::Awaitable<> serve_connection(SessionContext& context, boost::asio::ip::tcp::socket socket,
                                    async::Semaphore::Permit place);

}  // namespace hubferry::sim
