#include "sim/apiserver/http/byte_stream.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

#include "hubferry/kube/openssl.hpp"
#include "sim/apiserver/certificate_authority.hpp"

namespace hubferry::sim {

namespace asio = boost::asio;
namespace beast = boost::beast;

namespace {

using Bytes = std::span<const asio::const_buffer>;

constexpr std::chrono::seconds handshake_timeout{10};
constexpr std::chrono::seconds shutdown_timeout{1};

/// Shared by plain and TLS streams: the socket with its timeouts.
template <typename Stream>
class StreamOf : public ByteStream {
 public:
  template <typename... Arguments>
  explicit StreamOf(Arguments&&... arguments) : stream_(std::forward<Arguments>(arguments)...) {}

  async::Awaitable<std::size_t> read_some(asio::mutable_buffer into) override {
    return stream_.async_read_some(into, asio::use_awaitable);
  }
  async::Awaitable<std::size_t> write(Bytes bytes) override {
    return asio::async_write(stream_, bytes, asio::use_awaitable);
  }
  void expires_after(async::Duration duration) override { lowest().expires_after(duration); }
  void expires_never() override { lowest().expires_never(); }
  void reset() override {
    boost::system::error_code ignored;
    lowest().socket().set_option(asio::socket_base::linger(true, 0), ignored);
    lowest().socket().close(ignored);
  }

 protected:
  beast::tcp_stream& lowest() { return beast::get_lowest_layer(stream_); }

  Stream stream_;
};

class PlainStream final : public StreamOf<beast::tcp_stream> {
 public:
  using StreamOf::StreamOf;

  async::Awaitable<std::optional<User>> open() override { co_return std::nullopt; }
  async::Awaitable<> close() override {
    boost::system::error_code ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    co_return;
  }
};

class TlsStream final : public StreamOf<beast::ssl_stream<beast::tcp_stream>> {
 public:
  using StreamOf::StreamOf;

  async::Awaitable<std::optional<User>> open() override {
    expires_after(handshake_timeout);
    co_await stream_.async_handshake(asio::ssl::stream_base::server, asio::use_awaitable);
    expires_never();
    const kube::openssl::Certificate certificate{SSL_get1_peer_certificate(stream_.native_handle())};
    if (certificate == nullptr) co_return std::nullopt;
    co_return user_of(X509_get_subject_name(certificate.get()));
  }
  async::Awaitable<> close() override {
    if (!lowest().socket().is_open()) co_return;
    expires_after(shutdown_timeout);
    boost::system::error_code ignored;
    co_await stream_.async_shutdown(asio::redirect_error(asio::use_awaitable, ignored));
  }
};

}  // namespace

std::unique_ptr<ByteStream> make_byte_stream(asio::ip::tcp::socket socket, asio::ssl::context* tls) {
  if (tls == nullptr) return std::make_unique<PlainStream>(std::move(socket));
  return std::make_unique<TlsStream>(std::move(socket), *tls);
}

}  // namespace hubferry::sim
