#pragma once

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <stdexcept>
#include <thread>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/obs/http_server.hpp"

namespace hubferry::obs {

/// The future's value, or an exception where that takes unreasonably long.
template <typename T>
T soon(std::future<T> future) {
  if (future.wait_for(std::chrono::seconds{20}) != std::future_status::ready)
    throw std::runtime_error("what the test waits for does not come");
  return future.get();
}

/// More than the kernel's buffers on both sides hold.
inline constexpr std::size_t large = 24UL * 1024 * 1024;

/// The pages of a server under test.
inline HttpResponse echo(const HttpRequest& request) {
  if (request.path == "/throw") throw std::runtime_error("the page is broken");
  if (request.path == "/large") return {.body = std::string(large, 'x')};
  if (request.path == "/page") return {.body = "hello"};
  if (request.path == "/long") return {.body = std::string(5000, 'x')};
  return HttpResponse::not_found("try /page");
}

inline constexpr auto get_page = "GET /page HTTP/1.1\r\nHost: test\r\n\r\n";

/// An HttpServer on the loopback interface with a thread of its own, so that a test can talk to it with blocking calls.
class ServerOnThread {
 public:
  static HttpServer::Options on_loopback() {
    HttpServer::Options options;
    options.address = "127.0.0.1:0";
    return options;
  }

  ServerOnThread(HttpServer::Options options, HttpHandler handler)
      : loop_(loops_.next()), server_(loop_, clock_, std::move(options), std::move(handler)) {
    start();
  }
  ServerOnThread(HttpServer::Options options, HttpExchangeHandler handler)
      : loop_(loops_.next()), server_(loop_, clock_, std::move(options), std::move(handler)) {
    start();
  }
  ~ServerOnThread() { stop(); }

  std::uint16_t port() const { return port_; }

  /// Cancels run() and waits for its end: what it ended with.
  std::exception_ptr stop() {
    if (stopped_) return nullptr;
    stopped_ = true;
    async::asio::post(loop_, [this] { cancel_.emit(async::asio::cancellation_type::terminal); });
    return soon(ended_.get_future());
  }

  std::size_t connections() {
    // Shared: a client that gives up leaves it behind.
    auto answer = std::make_shared<std::promise<std::size_t>>();
    async::asio::post(loop_, [this, answer] { answer->set_value(server_.connections()); });
    return soon(answer->get_future());
  }

  /// Waits until `accept(connections())`; false when that takes unreasonably long.
  template <typename Accept>
  bool await_connections(Accept accept) {
    const auto limit = clock_.now() + std::chrono::seconds{20};
    while (!accept(connections())) {
      if (clock_.now() > limit) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return true;
  }

 private:
  void start() {
    server_.listen();
    port_ = server_.port();
    async::asio::co_spawn(loop_, server_.run(),
                          async::asio::bind_cancellation_slot(
                              cancel_.slot(), [this](std::exception_ptr error) { ended_.set_value(error); }));
  }

  async::RealClock clock_;
  async::asio::cancellation_signal cancel_;
  std::promise<std::exception_ptr> ended_;
  bool stopped_ = false;
  std::uint16_t port_ = 0;
  async::LoopPool loops_{1};
  async::Executor loop_;
  HttpServer server_;
};

}  // namespace hubferry::obs
