#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <span>

#include "hubferry/async/types.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::sim {

/// A connection as bytes, plain or TLS. Behind a virtual interface so that HTTP is compiled once, not once per kind of
/// stream. Errors are thrown as system_error.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  /// The TLS handshake, if any. Returns the user of the client certificate, if there is one.
  virtual async::Awaitable<std::optional<User>> open() = 0;
  virtual async::Awaitable<std::size_t> read_some(boost::asio::mutable_buffer into) = 0;
  virtual async::Awaitable<std::size_t> write(std::span<const boost::asio::const_buffer> bytes) = 0;
  /// Orderly shutdown, after the last byte.
  virtual async::Awaitable<> close() = 0;

  /// Sets the timeout of the following reads and writes together.
  virtual void expires_after(async::Duration duration) = 0;
  virtual void expires_never() = 0;
  /// Resets the connection, as a crashed server does.
  virtual void reset() = 0;
};

/// `tls` null: plain HTTP.
std::unique_ptr<ByteStream> make_byte_stream(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls);

}  // namespace hubferry::sim
