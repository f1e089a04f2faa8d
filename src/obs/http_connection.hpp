#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "hubferry/obs/http_server.hpp"

namespace hubferry::obs {

/// One client of an HttpServer: reads its requests and answers them, one after the other.
/// Lifetime: must outlive run(). Cancellation: terminal, at once. Errors: none; a connection that breaks just ends.
class HttpConnection {
 public:
  HttpConnection(async::asio::ip::tcp::socket socket, async::Clock& clock, const HttpServer::Options& options,
                 const HttpExchangeHandler& handler);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  ~HttpConnection();

  async::Awaitable<> run();

  /// Breaks the connection; run() returns soon after.
  void drop();
  [[nodiscard]] bool dropped() const { return dropped_; }

  /// Waits for a further request, having answered all before.
  [[nodiscard]] bool idle() const { return idle_; }
  /// Has sent nothing at all yet.
  [[nodiscard]] bool silent() const { return silent_; }
  /// Sends an answer that has no end yet.
  [[nodiscard]] bool streaming() const { return streaming_; }
  /// Since when it waits for the client to do something.
  [[nodiscard]] async::TimePoint waiting_since() const { return waiting_since_; }

 private:
  struct Stream;
  struct Incoming;

  async::Awaitable<bool> serve_one();
  async::Awaitable<bool> await_first_byte();
  async::Awaitable<bool> send(HttpReply reply, const Incoming& request);
  async::Awaitable<> send_stream(HttpReply reply);
  async::Awaitable<> send_parts(HttpBodyStream& stream, std::string first);
  async::Awaitable<> linger();
  async::Awaitable<HttpReply> handle(const HttpExchange& exchange) const;
  void now_waiting(bool idle);

  async::Clock& clock_;
  const HttpServer::Options& options_;
  const HttpExchangeHandler& handler_;
  std::unique_ptr<Stream> stream_;
  bool dropped_ = false;
  bool idle_ = false;
  bool silent_ = true;
  bool streaming_ = false;
  bool served_any_ = false;
  async::TimePoint waiting_since_;
};

}  // namespace hubferry::obs
