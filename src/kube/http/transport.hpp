#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/server_url.hpp"
#include "kube/config/proxy.hpp"

namespace hubferry::kube::http {

namespace asio = boost::asio;
using async::Awaitable;
using async::error_code;
using async::TimePoint;

class NameLookup;
class TlsContext;

/// A connected stream of bytes, plain or TLS. Executor: one loop.
/// Cancellation: terminal, as operation_aborted in the result; the stream is of no use afterwards.
class Transport {
 public:
  using IoResult = std::tuple<error_code, std::size_t>;

  virtual ~Transport() = default;

  virtual Awaitable<IoResult> read_some(asio::mutable_buffer buffer) = 0;
  /// Waits until a read would return something, or fail. Needs no buffer meanwhile.
  Awaitable<error_code> wait_readable();
  /// Gives back what is not needed while the connection waits.
  virtual void release_buffers() {}
  /// Writes all of it.
  virtual Awaitable<IoResult> write(asio::const_buffer bytes) = 0;
  /// Ends operations in flight with operation_aborted. Sends no close_notify: that would have to be waited for.
  void close() noexcept;

  /// False when the peer is known to have closed its side, or to have sent unexpected data. TLS may send tickets at any
  /// time; servers do so before their first answer, and a connection less does no harm.
  [[nodiscard]] bool still_good();
  /// True if bytes were received that no read has returned yet.
  [[nodiscard]] virtual bool has_unread() { return false; }

 protected:
  virtual asio::ip::tcp::socket& socket() = 0;
};

/// True if the server ended the handshake by an alert about our certificate. With TLS 1.3 the first read reports it.
[[nodiscard]] bool is_certificate_alert(const error_code& error);

/// Why no connection could be made.
struct ConnectFailure {
  std::string message;
  bool hopeless = false;  // retrying will not help: the certificate, the server's or ours
};

struct Connected {
  std::unique_ptr<Transport> transport;  // null: see failure
  ConnectFailure failure;
  async::Duration lookup_time{0};  // how long the name took
};

/// How a server is reached.
struct Route {
  ServerUrl server;
  std::optional<Proxy> proxy;
};

/// Makes a connection to a server: looks up its name, or that of the proxy, tries the addresses, shakes hands.
/// Cancellation: terminal, at once, also while the name is looked up.
Awaitable<Connected> connect(Route route, std::shared_ptr<TlsContext> tls, NameLookup& names, async::Clock& clock,
                             TimePoint deadline);

}  // namespace hubferry::kube::http
