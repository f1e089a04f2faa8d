#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hubferry/async/clock.hpp"
#include "hubferry/obs/http_exchange.hpp"
#include "hubferry/obs/http_types.hpp"
#include "hubferry/obs/logger.hpp"

namespace hubferry::obs {

/// A small HTTP/1.1 server for pages that are only read: metrics, health, the console.
///
/// Made to be exposed to slow, broken and hostile clients: everything that a client can make it do is limited in size,
/// time and number. GET and HEAD are answered, request bodies are refused, nothing else is understood.
/// At the connection limit a new connection replaces the one that has been idle longest, else the one that has been
/// stalled longest; if all are busy, the new one gets a 503.
///
/// Executor: everything on the one given, which must be a single loop; call listen(), port() and run() from there, or
/// before that loop runs. Real sockets, so real time: the Clock gives dates and pauses.
class HttpServer {
 public:
  using Executor = async::Executor;
  using Request = HttpRequest;
  using Handler = HttpHandler;

  struct Options {
    /// See parse_bind_address(). Empty or "0": the server is off.
    std::string address;
    Logger log;
    std::size_t max_connections = 128;
    std::size_t max_header_bytes = 16UL * 1024;
    /// From the first byte of a request, or from the connection's start, to the end of the request's header.
    async::Duration header_time = std::chrono::seconds(10);
    /// For one whole answer. Prometheus gives up on a scrape after 10 s by default.
    async::Duration write_time = std::chrono::seconds(10);
    /// Between two requests. Above the usual scrape interval of a minute, so that scrapers keep their connection.
    async::Duration idle_time = std::chrono::seconds(150);
    /// A connection that has waited this long in the middle of a request may be dropped for a new one.
    async::Duration stalled_after = std::chrono::seconds(1);
    /// The same for one that has not sent a single byte: a client sends its first request at once.
    async::Duration silent_after = std::chrono::milliseconds(100);
    /// Answers of at least this size are compressed for clients that accept it.
    std::size_t gzip_from_bytes = 1024;
  };

  /// Throws std::invalid_argument for a malformed address.
  HttpServer(Executor executor, async::Clock& clock, Options options, Handler handler);
  /// The same for a handler that waits, or streams its answers. A stream ends when its client does not take what it is
  /// sent within `write_time`, and is never dropped for a new connection.
  HttpServer(Executor executor, async::Clock& clock, Options options, HttpExchangeHandler handler);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  /// False when the address says that the server is off: listen() and run() do nothing then.
  [[nodiscard]] bool enabled() const;

  /// Opens the port. Throws std::runtime_error with a message that names the address.
  void listen();
  /// The port that listen() opened: for addresses with port 0. 0 when it is off.
  [[nodiscard]] std::uint16_t port() const;

  /// Serves until cancelled. All connections have ended when it returns.
  async::Awaitable<> run();

  /// How many clients are connected.
  [[nodiscard]] std::size_t connections() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with run(), whose frame may go down with its loop only
};

}  // namespace hubferry::obs
