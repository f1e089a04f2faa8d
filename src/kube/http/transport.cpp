#include "kube/http/transport.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <vector>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/vanished_peer.hpp"
#include "kube/http/connect_any.hpp"
#include "kube/http/name_lookup.hpp"
#include "kube/http/tls_transport.hpp"

namespace hubferry::kube::http {

using asio::ip::tcp;

void Transport::close() noexcept {
  error_code ignored;
  socket().close(ignored);
}

Awaitable<error_code> Transport::wait_readable() {
  if (has_unread()) co_return error_code{};
  if (!socket().is_open()) co_return asio::error::operation_aborted;
  release_buffers();
  auto [failed] = co_await socket().async_wait(tcp::socket::wait_read, asio::as_tuple(asio::use_awaitable));
  co_return failed;
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

/// The endpoints of a host, in the order in which they should be tried.
Awaitable<std::vector<tcp::endpoint>> resolve(std::string host, std::string port, NameLookup& names,
                                              async::Clock& clock) {
  const auto number = static_cast<std::uint16_t>(std::stoul(port));
  error_code not_numeric;
  const auto address = asio::ip::make_address(host, not_numeric);
  std::vector<tcp::endpoint> endpoints;
  if (!not_numeric) {
    endpoints.emplace_back(address, number);
    co_return endpoints;
  }
  for (const auto& found : co_await names.find(std::move(host), clock)) endpoints.emplace_back(found, number);
  co_return endpoints;
}

/// Longer than any proxy's answer, even with a page that explains a refusal.
constexpr std::size_t max_proxy_answer = 16UL * 1024;

std::string connect_request(const ServerUrl& server, const Proxy& proxy) {
  const auto host = server.host_without_zone();
  const std::string target = (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + server.port;
  std::string text = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\nUser-Agent: hubferry\r\n";
  if (!proxy.authorization.empty()) text += "Proxy-Authorization: " + proxy.authorization + "\r\n";
  return text + "\r\n";
}

/// Why a proxy does not connect us; empty where it does.
std::string refusal_of_proxy(std::string_view answer, std::size_t end_of_head) {
  const auto status = answer.starts_with("HTTP/1.") && answer.size() > 12 ? answer.substr(9, 3) : std::string_view{};
  if (status == "407") return "wants other credentials (407)";
  if (status.empty() || !std::ranges::all_of(status, [](char c) { return c >= '0' && c <= '9'; }))
    return "did not answer in HTTP";
  if (!status.starts_with('2')) return "refused to connect (" + std::string{status} + ")";
  // The server does not speak first.
  if (answer.size() > end_of_head) return "sent more than its answer";
  return {};
}

/// Asks the proxy at the other end to connect us to the server. Returns why it does not, or nothing.
Awaitable<std::string> connect_through(tcp::socket& socket, ServerUrl server, Proxy proxy) {
  const std::string request = connect_request(server, proxy);
  co_await asio::async_write(socket, asio::buffer(request), asio::deferred);
  std::string answer;
  while (true) {
    if (const auto end = answer.find("\r\n\r\n"); end != std::string::npos) co_return refusal_of_proxy(answer, end + 4);
    if (answer.size() >= max_proxy_answer) co_return "did not answer in HTTP";
    std::array<char, 1024> block{};
    const auto size = co_await socket.async_read_some(asio::buffer(block), asio::deferred);
    answer.append(block.data(), size);
  }
}

/// Makes one connection; says how far it came.
class Connecting {
 public:
  Connecting(Route route, std::shared_ptr<TlsContext> tls, NameLookup& names, async::Clock& clock)
      : route_(std::move(route)), tls_(std::move(tls)), names_(names), clock_(clock) {}

  Awaitable<> run(Connected& connected) {
    const std::string host = peer();
    const TimePoint start = clock_.now();
    auto endpoints = co_await resolve(host, route_.proxy ? route_.proxy->port : route_.server.port, names_, clock_);
    connected.lookup_time = clock_.now() - start;
    doing_ = "connecting to";
    auto socket = co_await connect_any(std::move(endpoints), clock_);
    socket.set_option(tcp::no_delay{true});
    async::notice_vanished_peer(socket);
    address_ = socket.remote_endpoint().address();
    if (route_.proxy) {
      auto refusal = co_await connect_through(socket, route_.server, *route_.proxy);
      if (!refusal.empty()) {
        connected.failure = {"proxy " + route_.proxy->display() + " " + refusal + " to " + route_.server.authority()};
        co_return;
      }
    }
    if (!tls_) {
      names_.prefer(host, *address_);
      connected.transport = std::make_unique<PlainTransport>(std::move(socket));
      co_return;
    }
    doing_ = "the TLS handshake with";
    secure_ = std::make_unique<TlsTransport>(std::move(socket), std::move(tls_));
    co_await secure_->handshake();
    names_.prefer(host, *address_);
    connected.transport = std::move(secure_);
  }

  /// It has failed. An address that had accepted the connection is not the first one to try again.
  void blame_address() const {
    if (address_) names_.avoid(peer(), *address_);
  }

  [[nodiscard]] ConnectFailure describe(const error_code& error) const {
    if (secure_ && !secure_->refusal().empty()) return {secure_->refusal(), true};
    const auto server = route_.server.authority();
    const bool at_proxy = route_.proxy && !secure_;
    std::string message = doing_ + " " + (at_proxy ? "proxy " + route_.proxy->display() + " for " + server : server);
    message += error == asio::error::timed_out ? " took too long" : ": " + error.message();
    return {std::move(message), is_certificate_alert(error)};
  }

 private:
  /// Whom we connect to.
  [[nodiscard]] const std::string& peer() const { return route_.proxy ? route_.proxy->host : route_.server.host; }

  Route route_;
  std::shared_ptr<TlsContext> tls_;
  NameLookup& names_;
  async::Clock& clock_;
  std::string doing_ = "looking up";
  std::optional<asio::ip::address> address_;  // that has accepted the connection
  std::unique_ptr<TlsTransport> secure_;      // while it shakes hands
};

}  // namespace

Awaitable<Connected> connect(Route route, std::shared_ptr<TlsContext> tls, NameLookup& names, async::Clock& clock,
                             TimePoint deadline) {
  Connected connected;
  Connecting connecting{std::move(route), std::move(tls), names, clock};
  try {
    co_await async::with_deadline(clock, deadline, connecting.run(connected));
  } catch (const boost::system::system_error& error) {
    if (error.code() == asio::error::operation_aborted) throw;
    connecting.blame_address();
    connected.failure = connecting.describe(error.code());
  }
  co_return connected;
}

}  // namespace hubferry::kube::http
