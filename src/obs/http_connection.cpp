#include "obs/http_connection.hpp"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <optional>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/vanished_peer.hpp"
#include "obs/http_message.hpp"

namespace hubferry::obs {

namespace asio = async::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using async::Awaitable;
using async::error_code;

namespace {

constexpr auto with_error = asio::as_tuple(asio::deferred);

// After a refusal: how much of what the client is still sending is read and discarded, so that it can read the
// response. Closing at once would reset the connection first.
constexpr auto linger_time = std::chrono::seconds(1);
constexpr std::size_t linger_bytes = 64UL * 1024;

std::string joined(const http::fields& fields, http::field name) {
  std::string all;
  const auto [first, last] = fields.equal_range(name);
  for (auto field = first; field != last; ++field) {
    if (!all.empty()) all += ',';
    all.append(field->value().data(), field->value().size());
  }
  return all;
}

HttpReply refusal(int status, const std::string& why) {
  HttpReply reply;
  reply.response = {.status = status, .body = why + "\n"};
  return reply;
}

/// The response to a request that cannot be read. nullopt: the client is gone, or too slow, and gets none.
std::optional<HttpReply> refusal_for(const error_code& ec) {
  if (ec == http::error::header_limit || ec == http::error::buffer_overflow)
    return refusal(431, "the request's header is too large");
  if (ec == http::error::body_limit) return refusal(413, "requests must not have a body");
  if (ec == http::error::bad_version) return refusal(505, "this server speaks HTTP/1.0 and HTTP/1.1");
  if (ec == http::error::partial_message || ec == http::error::end_of_stream) return std::nullopt;
  if (ec.category() == http::make_error_code(http::error::bad_value).category())
    return refusal(400, "not an HTTP request");
  return std::nullopt;
}

}  // namespace

struct HttpConnection::Stream {
  Stream(asio::ip::tcp::socket socket, std::size_t buffer_bytes) : tcp(std::move(socket)), buffer(buffer_bytes) {}

  beast::tcp_stream tcp;
  beast::flat_buffer buffer;  // may hold the beginning of the next request
};

/// What of a request matters for sending the answer.
struct HttpConnection::Incoming {
  bool head = false;
  bool keep_alive = false;
  bool accepts_gzip = false;
  bool http10 = false;
};

HttpConnection::HttpConnection(asio::ip::tcp::socket socket, async::Clock& clock, const HttpServer::Options& options,
                               const HttpExchangeHandler& handler)
    : clock_(clock),
      options_(options),
      handler_(handler),
      // The parser needs the whole header in the buffer; what is beyond is a pipelined request's.
      stream_(std::make_unique<Stream>(std::move(socket), 2 * options.max_header_bytes)),
      waiting_since_(clock.now()) {}

HttpConnection::~HttpConnection() = default;

void HttpConnection::drop() {
  dropped_ = true;
  stream_->tcp.close();
}

void HttpConnection::now_waiting(bool idle) {
  idle_ = idle;
  waiting_since_ = clock_.now();
}

Awaitable<> HttpConnection::run() {
  bool more = true;
  while (more && !dropped_) more = co_await serve_one();
  stream_->tcp.close();
}

/// False when the connection is over.
Awaitable<bool> HttpConnection::serve_one() {
  auto& [tcp, buffer] = *stream_;
  if (!co_await await_first_byte()) co_return false;

  http::request_parser<http::empty_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(options_.max_header_bytes));
  const auto [ec, bytes] = co_await http::async_read_header(tcp, buffer, parser, with_error);
  Incoming incoming;
  if (ec) {
    auto answer = refusal_for(ec);
    if (!answer || dropped_) co_return false;
    co_await send(std::move(*answer), incoming);
    co_await linger();
    co_return false;
  }

  const auto& message = parser.get();
  incoming.head = message.method() == http::verb::head;
  incoming.http10 = message.version() < 11;
  incoming.accepts_gzip = accepts_gzip(joined(message, http::field::accept_encoding));
  // Any transfer coding means a body. Without chunks its end is unknown: what follows cannot be parsed as a request.
  const bool has_body = message.count(http::field::transfer_encoding) > 0 || parser.content_length().value_or(0) > 0;
  if (has_body) {
    auto answer = refusal(413, "requests must not have a body");
    co_await send(std::move(answer), incoming);
    co_await linger();
    co_return false;
  }

  incoming.keep_alive = message.keep_alive();
  HttpReply reply;
  if (!incoming.head && message.method() != http::verb::get) {
    reply = refusal(405, "only GET and HEAD are answered here");
  } else if (!incoming.http10 && message.count(http::field::host) != 1) {
    reply = refusal(400, "a request in HTTP/1.1 names one host");
  } else if (auto request = parse_target({message.target().data(), message.target().size()})) {
    request->accept = joined(message, http::field::accept);
    request->accepts_gzip = incoming.accepts_gzip;
    const HttpExchange exchange{std::move(*request), joined(message, http::field::host),
                                joined(message, http::field::authorization)};
    now_waiting(false);
    tcp.expires_never();
    reply = co_await handle(exchange);
  } else {
    reply = refusal(400, "the request's target is malformed");
  }
  if (reply.stream != nullptr && !incoming.head) {
    co_await send_stream(std::move(reply));
    co_return false;
  }
  const bool sent = co_await send(std::move(reply), incoming);
  served_any_ = true;
  co_return sent&& incoming.keep_alive;
}

/// Also sets the time by which the whole header must have come.
Awaitable<bool> HttpConnection::await_first_byte() {
  auto& [tcp, buffer] = *stream_;
  silent_ = !served_any_;
  now_waiting(served_any_ && buffer.size() == 0);
  tcp.expires_after(options_.header_time);
  if (!idle_ && !silent_) co_return true;
  if (idle_) tcp.expires_after(options_.idle_time);
  const auto [ec, bytes] = co_await tcp.async_read_some(buffer.prepare(1024), with_error);
  buffer.commit(bytes);
  if (idle_) tcp.expires_after(options_.header_time);
  silent_ = false;
  now_waiting(false);
  co_return !ec && !dropped_;
}

/// False when the client did not take the answer.
Awaitable<bool> HttpConnection::send(HttpReply reply, const Incoming& request) {
  auto& tcp = stream_->tcp;
  auto& response = reply.response;
  HeadOptions head{.keep_alive = request.keep_alive, .gzipped = false, .http10 = request.http10};
  if (request.accepts_gzip && response.body.size() >= options_.gzip_from_bytes) {
    response.body = gzip(response.body);
    head.gzipped = true;
  }
  const std::string header = response_head(response, head, clock_.wall_now(), reply.headers);
  const std::size_t body_size = request.head ? 0 : response.body.size();
  const std::array<asio::const_buffer, 2> buffers{asio::buffer(header), asio::buffer(response.body.data(), body_size)};
  now_waiting(false);
  tcp.expires_after(options_.write_time);
  const auto [ec, bytes] = co_await asio::async_write(tcp, buffers, with_error);
  co_return !ec && !dropped_;
}

/// Until the stream is over, or its client gone. The end of the connection is the end of the answer.
Awaitable<> HttpConnection::send_stream(HttpReply reply) {
  streaming_ = true;
  const HeadOptions head{.keep_alive = false, .gzipped = false, .http10 = false, .has_length = false};
  std::string first = response_head(reply.response, head, clock_.wall_now(), reply.headers) + reply.response.body;
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    auto until_client_leaves = [](Stream& stream, async::TaskScope& all) -> Awaitable<> {
      char waste[512];
      // A client has nothing more to say: what it sends all the same ends its stream, too. Beside Beast's timer, which
      // the first write would set for this read as well.
      co_await stream.tcp.socket().async_read_some(asio::buffer(waste), with_error);
      all.stop();
    };
    async::notice_vanished_peer(stream_->tcp.socket());
    scope.spawn(until_client_leaves(*stream_, scope));
    co_await send_parts(*reply.stream, std::move(first));
    scope.stop();
  };
  co_await async::with_scope(body);
}

Awaitable<> HttpConnection::send_parts(HttpBodyStream& stream, std::string first) {
  auto& tcp = stream_->tcp;
  std::optional<std::string> part = std::move(first);
  while (part && !dropped_) {
    tcp.expires_after(options_.write_time);
    const auto [ec, bytes] = co_await asio::async_write(tcp, asio::buffer(*part), with_error);
    if (ec) co_return;
    part = co_await stream.next();
  }
}

Awaitable<> HttpConnection::linger() {
  auto& tcp = stream_->tcp;
  error_code ignored;
  tcp.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  tcp.expires_after(linger_time);
  char waste[4096];
  for (std::size_t total = 0; total < linger_bytes;) {
    const auto buffer = asio::buffer(waste);
    const auto [ec, bytes] = co_await tcp.async_read_some(buffer, with_error);
    if (ec || dropped_) co_return;
    total += bytes;
  }
}

Awaitable<HttpReply> HttpConnection::handle(const HttpExchange& exchange) const {
  try {
    co_return co_await handler_(exchange);
  } catch (...) {
    const auto error = std::current_exception();
    if (async::is_cancellation(error)) throw;
    options_.log.error("HTTP handler failed", {{"path", exchange.request.path}, {"error", error}});
  }
  co_return refusal(500, "internal error");
}

}  // namespace hubferry::obs
