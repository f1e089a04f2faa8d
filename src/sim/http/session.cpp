#include "sim/http/session.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/openssl.hpp"
#include "sim/certificates.hpp"

namespace hubferry::sim {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace {

constexpr std::size_t largest_body = 16UL * 1024 * 1024;
constexpr std::chrono::minutes idle_timeout{5};

/// Whom a client certificate names; nobody without one.
std::optional<User> certified_user(SSL* ssl) {
  const kube::openssl::Certificate certificate{SSL_get1_peer_certificate(ssl)};
  if (certificate == nullptr) return std::nullopt;
  return user_of(X509_get_subject_name(certificate.get()));
}

HttpRequest to_request(http::request<http::string_body>& from) {
  HttpRequest request;
  const auto text = [&](http::field field) {
    const auto value = from[field];
    return std::string{value.data(), value.size()};
  };
  request.method.assign(from.method_string().data(), from.method_string().size());
  request.target.assign(from.target().data(), from.target().size());
  request.accept = text(http::field::accept);
  request.content_type = text(http::field::content_type);
  request.user_agent = text(http::field::user_agent);
  request.authorization = text(http::field::authorization);
  request.body = std::move(from.body());
  return request;
}

template <typename Stream>
async::Awaitable<> notice_close(Stream& stream, Watch& watch) {
  // A client sends nothing during a watch: whatever arrives, or the end, is the end of it.
  std::array<char, 64> ignored;
  boost::system::error_code ec;
  co_await stream.async_read_some(asio::buffer(ignored), asio::redirect_error(asio::use_awaitable, ec));
  watch.cut();
}

template <typename Stream>
async::Awaitable<> send_events(SessionContext& context, Stream& stream, HttpResponse& response, unsigned version) {
  http::response<http::empty_body> head{http::status::ok, version};
  head.set(http::field::content_type, "application/json");
  head.chunked(true);
  head.keep_alive(false);
  http::response_serializer<http::empty_body> serializer{head};
  co_await http::async_write_header(stream, serializer, asio::deferred);
  while (true) {
    auto items = co_await response.watch->next();
    std::string lines;
    if (!items)
      lines = HttpHandler::encode_error(items.error());
    else
      for (const auto& item : *items) lines += response.encode(item);
    if (lines.empty()) break;
    beast::get_lowest_layer(stream).expires_after(context.write_timeout);
    auto chunk = http::make_chunk(asio::buffer(lines));
    co_await asio::async_write(stream, chunk, asio::deferred);
    beast::get_lowest_layer(stream).expires_never();
    if (!items) break;
  }
  if (response.watch->broken()) co_return;  // as a broken connection: without the last chunk
  auto last = http::make_chunk_last();
  co_await asio::async_write(stream, last, asio::deferred);
}

template <typename Stream>
async::Awaitable<> stream_watch(SessionContext& context, Stream& stream, HttpResponse response, unsigned version) {
  beast::get_lowest_layer(stream).expires_never();
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(notice_close(stream, *response.watch));
    co_await send_events(context, stream, response, version);
    scope.stop();
  };
  co_await async::with_scope(body);
}

template <typename Stream>
async::Awaitable<> serve_requests(SessionContext& context, Stream& stream, std::optional<User> certified) {
  beast::flat_buffer buffer;
  buffer.reserve(16UL * 1024);
  auto& lowest = beast::get_lowest_layer(stream);
  while (true) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(largest_body);
    lowest.expires_after(idle_timeout);
    co_await http::async_read(stream, buffer, parser, asio::deferred);
    lowest.expires_never();
    auto& message = parser.get();
    const bool keep_alive = message.keep_alive();
    const unsigned version = message.version();
    const bool head = message.method() == http::verb::head;
    auto request = to_request(message);
    request.certified = certified;
    auto response = co_await context.handler.handle(std::move(request));
    if (response.reset) {
      boost::system::error_code ignored;
      lowest.socket().set_option(asio::socket_base::linger(true, 0), ignored);
      lowest.socket().close(ignored);
      co_return;
    }
    if (response.watch) {
      co_await stream_watch(context, stream, std::move(response), version);
      co_return;
    }
    http::response<http::string_body> reply{static_cast<http::status>(response.status), version};
    reply.set(http::field::content_type, response.content_type);
    if (response.retry_after_seconds)
      reply.set(http::field::retry_after, std::to_string(*response.retry_after_seconds));
    reply.keep_alive(keep_alive);
    reply.body() = std::move(response.body);
    reply.prepare_payload();
    if (head) reply.body().clear();
    lowest.expires_after(context.write_timeout);
    co_await http::async_write(stream, reply, asio::deferred);
    if (!keep_alive) co_return;
  }
}

async::Awaitable<> serve_plain(SessionContext& context, asio::ip::tcp::socket socket) {
  beast::tcp_stream stream{std::move(socket)};
  co_await serve_requests(context, stream, std::nullopt);
  boost::system::error_code ignored;
  stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

async::Awaitable<> serve_tls(SessionContext& context, asio::ip::tcp::socket socket) {
  beast::ssl_stream<beast::tcp_stream> stream{std::move(socket), *context.tls};
  auto& lowest = beast::get_lowest_layer(stream);
  lowest.expires_after(std::chrono::seconds{10});
  co_await stream.async_handshake(asio::ssl::stream_base::server, asio::use_awaitable);
  lowest.expires_never();
  auto certified = certified_user(stream.native_handle());
  co_await serve_requests(context, stream, std::move(certified));
  boost::system::error_code ignored;
  if (lowest.socket().is_open()) {
    lowest.expires_after(std::chrono::seconds{1});
    co_await stream.async_shutdown(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

}  // namespace

async::Awaitable<> serve_connection(SessionContext& context, asio::ip::tcp::socket socket,
                                    [[maybe_unused]] async::Semaphore::Permit place) {
  struct Count {
    std::size_t& count;
    explicit Count(std::size_t& counted) : count(counted) { ++count; }
    ~Count() { --count; }
  } counted{context.connections};
  boost::system::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  std::exception_ptr failure;
  try {
    if (context.tls != nullptr)
      co_await serve_tls(context, std::move(socket));
    else
      co_await serve_plain(context, std::move(socket));
  } catch (const boost::system::system_error&) {
    failure = std::current_exception();
  } catch (const std::exception& bug) {
    failure = std::current_exception();
    context.handler.log().error("a connection ended early", {{"error", bug.what()}});
  }
  // The client went away, or spoke no HTTP: nobody is left to be told.
  const bool cancelled = async::is_cancelled(co_await asio::this_coro::cancellation_state);
  if (failure && cancelled) std::rethrow_exception(failure);
}

}  // namespace hubferry::sim
