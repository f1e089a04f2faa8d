#include "kube/http/transport.hpp"

#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <vector>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/event.hpp"
#include "kube/http/tls_context.hpp"

namespace hubferry::kube::http {

using asio::ip::tcp;

void Transport::close() noexcept {
  error_code ignored;
  socket().close(ignored);
}

bool Transport::still_good() {
  if (!socket().is_open()) return false;
  pollfd state{socket().native_handle(), POLLIN | POLLRDHUP, 0};
  return poll(&state, 1, 0) <= 0;
}

bool is_certificate_alert(const error_code& error) {
  if (error.category() != asio::error::get_ssl_category()) return false;
  switch (ERR_GET_REASON(static_cast<unsigned long>(error.value()))) {
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return true;
    default:
      return false;
  }
}

void notice_vanished_peer(tcp::socket& socket) {
  // Three probes, ten seconds apart, after half a minute of silence; the same limit holds for unacknowledged data, for
  // which the kernel would retry for a quarter of an hour.
  constexpr int idle_seconds = 30;
  constexpr int probe_seconds = 10;
  constexpr int probes = 3;
  constexpr int most_milliseconds = (idle_seconds + probes * probe_seconds) * 1000;
  // Failures are no reason to go without a connection: the watch's own limit is still there.
  const auto set = [&](int level, int option, int value) {
    static_cast<void>(::setsockopt(socket.native_handle(), level, option, &value, sizeof value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, idle_seconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, probe_seconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, probes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, most_milliseconds);
}

namespace {

constexpr auto with_code = asio::as_tuple(asio::use_awaitable);

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(tcp::socket socket) : socket_(std::move(socket)) {}

  Awaitable<IoResult> read_some(asio::mutable_buffer buffer) override {
    return socket_.async_read_some(buffer, with_code);
  }
  Awaitable<IoResult> write(asio::const_buffer bytes) override { return asio::async_write(socket_, bytes, with_code); }

 private:
  tcp::socket& socket() override { return socket_; }

  tcp::socket socket_;
};

class TlsTransport final : public Transport {
 public:
  TlsTransport(tcp::socket socket, std::shared_ptr<TlsContext> tls)
      : tls_(std::move(tls)), stream_(std::move(socket), tls_->context()) {}
  TlsTransport(const TlsTransport&) = delete;
  TlsTransport& operator=(const TlsTransport&) = delete;
  ~TlsTransport() override {
    // OpenSSL treats a stream that ends without close_notify as broken, and would not resume its session.
    SSL_set_shutdown(stream_.native_handle(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  }

  /// Throws system_error; refusal() then says whether it was the certificate.
  Awaitable<> handshake() {
    tls_->prepare(stream_.native_handle());
    if (tls_->verifies()) {
      stream_.set_verify_callback([this](bool accepted, asio::ssl::verify_context& context) {
        if (!accepted && refusal_.empty()) refusal_ = tls_->explain_refusal(context.native_handle());
        return accepted;
      });
    }
    co_await stream_.async_handshake(asio::ssl::stream_base::client, asio::deferred);
  }
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  Awaitable<IoResult> read_some(asio::mutable_buffer buffer) override {
    return stream_.async_read_some(buffer, with_code);
  }
  Awaitable<IoResult> write(asio::const_buffer bytes) override { return asio::async_write(stream_, bytes, with_code); }
  [[nodiscard]] bool has_unread() override {
    // Decrypted, and received but not decrypted yet: Asio hands what it reads to OpenSSL's buffer.
    return SSL_pending(stream_.native_handle()) > 0 || BIO_ctrl_pending(SSL_get_rbio(stream_.native_handle())) > 0;
  }

 private:
  tcp::socket& socket() override { return stream_.next_layer(); }

  std::shared_ptr<TlsContext> tls_;
  asio::ssl::stream<tcp::socket> stream_;
  std::string refusal_;
};

/// A name being looked up. The system's resolver cannot be interrupted: a caller that is cancelled leaves it behind,
/// and its result is dropped.
struct Lookup {
  explicit Lookup(const async::Executor& executor) : resolver(executor) {}
  tcp::resolver resolver;
  async::Event done;
  error_code error;
  std::vector<tcp::endpoint> endpoints;
};

Awaitable<std::vector<tcp::endpoint>> resolve(std::string host, std::string port) {
  const auto number = static_cast<std::uint16_t>(std::stoul(port));
  error_code not_numeric;
  const auto address = asio::ip::make_address(host, not_numeric);
  if (!not_numeric) co_return std::vector<tcp::endpoint>{{address, number}};

  auto lookup = std::make_shared<Lookup>(co_await asio::this_coro::executor);
  struct CancelOnExit {
    Lookup& lookup;
    ~CancelOnExit() { lookup.resolver.cancel(); }
  } cancel_on_exit{*lookup};
  lookup->resolver.async_resolve(host, port, tcp::resolver::numeric_service,
                                 [lookup](error_code error, const tcp::resolver::results_type& results) {
                                   lookup->error = error;
                                   for (const auto& entry : results) lookup->endpoints.push_back(entry.endpoint());
                                   lookup->done.set();
                                 });
  co_await lookup->done.wait();
  if (lookup->error) throw boost::system::system_error(lookup->error);
  co_return std::move(lookup->endpoints);
}

Awaitable<> connect_socket(tcp::socket& socket, tcp::endpoint endpoint) {
  co_await socket.async_connect(endpoint, asio::deferred);
}

Awaitable<tcp::socket> connect_any(std::vector<tcp::endpoint> endpoints, async::Clock& clock, TimePoint deadline) {
  std::exception_ptr last;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    // An address that swallows packets must leave time for the others.
    const auto share = (deadline - clock.now()) / static_cast<int>(endpoints.size() - i);
    tcp::socket socket{co_await asio::this_coro::executor};
    try {
      auto attempt = connect_socket(socket, endpoints.at(i));
      co_await async::with_deadline(clock, clock.now() + share, std::move(attempt));
      socket.set_option(tcp::no_delay{true});
      notice_vanished_peer(socket);
      co_return socket;
    } catch (const boost::system::system_error& error) {
      if (error.code() == asio::error::operation_aborted) throw;
      last = std::current_exception();
    }
  }
  if (!last) throw boost::system::system_error(asio::error::host_not_found);
  std::rethrow_exception(last);
}

std::string describe_failure(const boost::system::system_error& error, const ServerUrl& url, std::string_view doing,
                             bool timed_out) {
  return std::string{doing} + " " + url.authority() +
         (timed_out ? std::string{" took too long"} : ": " + error.code().message());
}

}  // namespace

Awaitable<Connected> connect(ServerUrl url, std::shared_ptr<TlsContext> tls, async::Clock& clock, TimePoint deadline) {
  Connected connected;
  std::string_view doing = "looking up";
  std::unique_ptr<TlsTransport> secure;
  try {
    const TimePoint start = clock.now();
    auto lookup = resolve(url.host, url.port);
    auto endpoints = co_await async::with_deadline(clock, deadline, std::move(lookup));
    connected.lookup_time = clock.now() - start;
    doing = "connecting to";
    auto socket = co_await connect_any(std::move(endpoints), clock, deadline);
    if (!tls) {
      connected.transport = std::make_unique<PlainTransport>(std::move(socket));
    } else {
      doing = "the TLS handshake with";
      secure = std::make_unique<TlsTransport>(std::move(socket), std::move(tls));
      auto handshake = secure->handshake();
      co_await async::with_deadline(clock, deadline, std::move(handshake));
      connected.transport = std::move(secure);
    }
  } catch (const boost::system::system_error& error) {
    if (error.code() == asio::error::operation_aborted) throw;
    if (secure && !secure->refusal().empty())
      connected.failure = {secure->refusal(), true};
    else
      connected.failure = {describe_failure(error, url, doing, error.code() == asio::error::timed_out),
                           is_certificate_alert(error.code())};
  }
  co_return connected;
}

}  // namespace hubferry::kube::http
