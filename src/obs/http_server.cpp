#include "hubferry/obs/http_server.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <list>
#include <stdexcept>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/obs/bind_address.hpp"
#include "obs/http_connection.hpp"
#include "obs/http_message.hpp"

namespace hubferry::obs {

namespace asio = async::asio;
using asio::ip::tcp;
using async::Awaitable;
using async::error_code;

namespace {

// When accepting fails, as it does without free descriptors: long enough not to spin, short enough for a probe.
constexpr auto pause_after_failure = std::chrono::milliseconds(100);
constexpr auto warn_interval = std::chrono::seconds(30);

error_code open_and_bind(tcp::acceptor& acceptor, const tcp::endpoint& endpoint, bool both_families) {
  error_code ec;
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec && both_families) acceptor.set_option(asio::ip::v6_only(false), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (ec) {
    error_code ignored;
    acceptor.close(ignored);
  }
  return ec;
}

error_code open_all_interfaces(tcp::acceptor& acceptor, std::uint16_t port) {
  const auto ec = open_and_bind(acceptor, {tcp::v6(), port}, true);
  // A machine may be without IPv6. Any other failure is about the port, and IPv4 would only hide it.
  if (ec == asio::error::address_family_not_supported || ec == asio::error::no_protocol_option ||
      ec == boost::system::errc::address_not_available)
    return open_and_bind(acceptor, {tcp::v4(), port}, false);
  return ec;
}

error_code open_host(tcp::acceptor& acceptor, const BindAddress& address) {
  error_code ec;
  const auto ip = asio::ip::make_address(address.host, ec);
  if (!ec) return open_and_bind(acceptor, {ip, address.port}, false);
  tcp::resolver resolver{acceptor.get_executor()};
  const auto found = resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, ec);
  if (ec) return ec;
  // "localhost" is usually both; more clients speak IPv4.
  const auto v4 =
      std::find_if(found.begin(), found.end(), [](const auto& entry) { return entry.endpoint().address().is_v4(); });
  return open_and_bind(acceptor, (v4 != found.end() ? v4 : found.begin())->endpoint(), false);
}

/// Lifetime: the handler lives in the server's State, as do its captures.
HttpExchangeHandler answering_at_once(HttpHandler handler) {
  return [handler = std::move(handler)](const HttpExchange& exchange) -> Awaitable<HttpReply> {
    HttpReply reply;
    reply.response = handler(exchange.request);
    co_return reply;
  };
}

}  // namespace

struct HttpServer::State {
  using Connection = std::shared_ptr<HttpConnection>;

  State(const Executor& ex, async::Clock& the_clock, Options the_options, HttpExchangeHandler the_handler)
      : clock(the_clock),
        options(std::move(the_options)),
        handler(std::move(the_handler)),
        address(parse_bind_address(options.address)),
        acceptor(ex) {}

  static Awaitable<> accept_all(std::shared_ptr<State> self, async::TaskScope& scope);
  static Awaitable<> serve(std::shared_ptr<State> self, Connection connection);

  void admit(const std::shared_ptr<State>& self, async::TaskScope& scope, tcp::socket socket);
  bool make_room();
  void refuse(tcp::socket& socket) const;
  Awaitable<> recover(error_code ec);

  async::Clock& clock;
  const Options options;
  const HttpExchangeHandler handler;
  const std::optional<BindAddress> address;
  tcp::acceptor acceptor;
  std::list<Connection> connections;
  async::TimePoint next_warning = async::TimePoint::min();
};

Awaitable<> HttpServer::State::accept_all(std::shared_ptr<State> self, async::TaskScope& scope) {
  constexpr auto with_error = asio::as_tuple(asio::deferred);
  for (;;) {
    tcp::socket socket{self->acceptor.get_executor()};
    const auto [ec] = co_await self->acceptor.async_accept(socket, with_error);
    if (ec)
      co_await self->recover(ec);
    else
      self->admit(self, scope, std::move(socket));
  }
}

void HttpServer::State::admit(const std::shared_ptr<State>& self, async::TaskScope& scope, tcp::socket socket) {
  const auto staying = std::count_if(connections.begin(), connections.end(),
                                     [](const Connection& connection) { return !connection->dropped(); });
  if (static_cast<std::size_t>(staying) >= options.max_connections && !make_room()) {
    refuse(socket);
    return;
  }
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  auto connection = std::make_shared<HttpConnection>(std::move(socket), clock, options, handler);
  connections.push_back(connection);
  scope.spawn(serve(self, std::move(connection)));
}

Awaitable<> HttpServer::State::serve(std::shared_ptr<State> self, Connection connection) {
  // Also when cancelled, or destroyed together with the loop.
  struct Leave {
    State& state;
    const Connection& connection;
    ~Leave() { state.connections.remove(connection); }
  };
  const Leave leave{*self, connection};
  try {
    co_await connection->run();
  } catch (...) {
    const auto error = std::current_exception();
    if (async::is_cancellation(error)) throw;
    // One client's failure must not affect the others.
    self->options.log.warn("HTTP connection failed", {{"error", error}});
  }
}

/// Drops the longest idle connection, else the longest silent or stalled one. False when all are busy.
bool HttpServer::State::make_room() {
  HttpConnection* victim = nullptr;
  for (const auto& connection : connections) {
    if (connection->dropped() || connection->streaming()) continue;
    const bool stalled = connection->waiting_since() + options.stalled_after <= clock.now();
    const bool silent = connection->silent() && connection->waiting_since() + options.silent_after <= clock.now();
    if (!connection->idle() && !stalled && !silent) continue;
    const bool better = victim == nullptr || connection->idle() > victim->idle() ||
                        (connection->idle() == victim->idle() && connection->waiting_since() < victim->waiting_since());
    if (better) victim = connection.get();
  }
  if (victim == nullptr) return false;
  options.log.debug("connection limit reached, dropping the connection that has waited longest",
                    {{"idle", victim->idle()}, {"limit", options.max_connections}});
  victim->drop();
  return true;
}

/// Best effort, without waiting: a flood of connections must not cost anything.
void HttpServer::State::refuse(tcp::socket& socket) const {
  options.log.debug("connection limit reached, refusing a new connection", {{"limit", options.max_connections}});
  const HttpResponse response{.status = 503, .body = "too many connections\n"};
  const auto message =
      response_head(response, {.keep_alive = false, .gzipped = false, .http10 = false}, clock.wall_now()) +
      response.body;
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(message), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

Awaitable<> HttpServer::State::recover(error_code ec) {
  // The client disconnected before it was accepted: no reason to pause.
  if (ec == asio::error::connection_aborted || ec == asio::error::connection_reset) co_return;
  if (clock.now() >= next_warning) {
    options.log.warn("cannot accept connections", {{"error", ec.message()}});
    next_warning = async::later(clock.now(), warn_interval);
  }
  make_room();
  co_await clock.sleep_for(pause_after_failure);
}

HttpServer::HttpServer(Executor executor, async::Clock& clock, Options options, Handler handler)
    : HttpServer(std::move(executor), clock, std::move(options), answering_at_once(std::move(handler))) {}

HttpServer::HttpServer(Executor executor, async::Clock& clock, Options options, HttpExchangeHandler handler)
    : state_(std::make_shared<State>(executor, clock, std::move(options), std::move(handler))) {}

HttpServer::~HttpServer() = default;

bool HttpServer::enabled() const {
  return state_->address.has_value();
}

void HttpServer::listen() {
  if (!enabled()) return;
  const auto& address = *state_->address;
  const auto ec =
      address.host.empty() ? open_all_interfaces(state_->acceptor, address.port) : open_host(state_->acceptor, address);
  if (ec) throw std::runtime_error("cannot listen on " + state_->options.address + ": " + ec.message());
}

std::uint16_t HttpServer::port() const {
  error_code ignored;
  return state_->acceptor.local_endpoint(ignored).port();
}

Awaitable<> HttpServer::run() {
  const auto state = state_;
  if (!state->acceptor.is_open()) co_return;
  // Close the port at once, so that clients are refused. A connection that was cancelled before its first turn is
  // still in the list.
  struct Leave {
    State& state;
    ~Leave() {
      error_code ignored;
      state.acceptor.close(ignored);
      state.connections.clear();
    }
  };
  const Leave leave{*state};
  auto accept = [state](async::TaskScope& scope) { return State::accept_all(state, scope); };
  co_await async::with_scope(accept);
}

std::size_t HttpServer::connections() const {
  return state_->connections.size();
}

}  // namespace hubferry::obs
