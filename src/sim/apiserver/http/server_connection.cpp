#include "sim/apiserver/http/server_connection.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <sstream>

#include "hubferry/async/task_scope.hpp"
#include "sim/apiserver/http/byte_stream.hpp"

namespace hubferry::sim {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace {

constexpr std::size_t largest_body = 16UL * 1024 * 1024;
constexpr std::size_t read_size = 16UL * 1024;
constexpr std::chrono::minutes idle_timeout{5};

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

using RequestParser = http::request_parser<http::string_body>;

/// Reads one request. The rest of the buffer belongs to the next.
async::Awaitable<> read_request(ByteStream& stream, beast::flat_buffer& buffer, RequestParser& parser) {
  parser.eager(true);
  while (true) {
    boost::system::error_code ec;
    buffer.consume(parser.put(buffer.data(), ec));
    if (parser.is_done()) co_return;
    if (ec && ec != http::error::need_more) throw boost::system::system_error(ec);
    const auto space = buffer.prepare(read_size);
    buffer.commit(co_await stream.read_some(space));
  }
}

/// Status line and header, including the empty line.
std::string head_of(const HttpResponse& response, std::string_view length_field, bool keep_alive) {
  const auto reason = http::obsolete_reason(static_cast<http::status>(response.status));
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head.append(reason.data(), reason.size());
  head.append("\r\nContent-Type: ").append(response.content_type).append("\r\n").append(length_field);
  if (response.retry_after_seconds)
    head.append("\r\nRetry-After: ").append(std::to_string(*response.retry_after_seconds));
  return head.append("\r\nConnection: ").append(keep_alive ? "keep-alive" : "close").append("\r\n\r\n");
}

async::Awaitable<> notice_close(ByteStream& stream, Watch& watch) {
  // A client sends nothing during a watch: any data, or the end of the stream, ends the watch.
  std::array<char, 64> ignored;
  try {
    co_await stream.read_some(asio::buffer(ignored));
  } catch (const boost::system::system_error&) {
  }
  watch.cut();
}

async::Awaitable<> send_events(ConnectionContext& context, ByteStream& stream, HttpResponse& response) {
  const auto head = head_of(response, "Transfer-Encoding: chunked", false);
  const std::array head_bytes{asio::const_buffer(asio::buffer(head))};
  co_await stream.write(head_bytes);
  while (true) {
    auto items = co_await response.watch->next();
    std::string lines;
    if (!items)
      lines = RequestHandler::encode_error(items.error());
    else
      for (const auto& item : *items) lines += response.encode(item);
    if (lines.empty()) break;
    stream.expires_after(context.write_timeout);
    std::ostringstream size;
    size << std::hex << lines.size() << "\r\n";
    const auto before = std::move(size).str();
    lines += "\r\n";
    const std::array chunk{asio::const_buffer(asio::buffer(before)), asio::const_buffer(asio::buffer(lines))};
    co_await stream.write(chunk);
    stream.expires_never();
    if (!items) break;
  }
  if (response.watch->broken()) co_return;  // as a broken connection: without the last chunk
  constexpr std::string_view last_chunk = "0\r\n\r\n";
  const std::array last{asio::const_buffer(asio::buffer(last_chunk))};
  co_await stream.write(last);
}

async::Awaitable<> stream_watch(ConnectionContext& context, ByteStream& stream, HttpResponse response) {
  stream.expires_never();
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(notice_close(stream, *response.watch));
    co_await send_events(context, stream, response);
    scope.stop();
  };
  co_await async::with_scope(body);
}

async::Awaitable<> serve_requests(ConnectionContext& context, ByteStream& stream) {
  const auto certified = co_await stream.open();
  beast::flat_buffer buffer;
  while (true) {
    RequestParser parser;
    parser.body_limit(largest_body);
    stream.expires_after(idle_timeout);
    co_await read_request(stream, buffer, parser);
    stream.expires_never();
    auto& message = parser.get();
    const bool keep_alive = message.keep_alive();
    const bool only_head = message.method() == http::verb::head;
    auto request = to_request(message);
    request.certified = certified;
    auto response = co_await context.handler.handle(std::move(request));
    if (response.reset) {
      stream.reset();
      co_return;
    }
    if (response.watch) {
      co_await stream_watch(context, stream, std::move(response));
      co_return;
    }
    const auto head = head_of(response, "Content-Length: " + std::to_string(response.body.size()), keep_alive);
    if (only_head) response.body.clear();
    stream.expires_after(context.write_timeout);
    const std::array bytes{asio::const_buffer(asio::buffer(head)), asio::const_buffer(asio::buffer(response.body))};
    co_await stream.write(bytes);
    if (!keep_alive) co_return;
  }
}

}  // namespace

async::Awaitable<> serve_connection(ConnectionContext& context, asio::ip::tcp::socket socket,
                                    [[maybe_unused]] async::Semaphore::Permit slot) {
  struct Count {
    std::size_t& count;
    explicit Count(std::size_t& counted) : count(counted) { ++count; }
    ~Count() { --count; }
  } counted{context.connections};
  boost::system::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  const auto stream = make_byte_stream(std::move(socket), context.tls);
  std::exception_ptr failure;
  try {
    co_await serve_requests(context, *stream);
    co_await stream->close();
  } catch (const boost::system::system_error&) {
    failure = std::current_exception();
  } catch (const std::exception& bug) {
    failure = std::current_exception();
    context.handler.log().error("connection failed", {{"error", bug.what()}});
  }
  // The client disconnected, or did not speak HTTP: the error is not reported to anyone.
  const bool cancelled = async::is_cancelled(co_await asio::this_coro::cancellation_state);
  if (failure && cancelled) std::rethrow_exception(failure);
}

}  // namespace hubferry::sim
