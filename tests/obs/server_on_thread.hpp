#pragma once

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <future>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/obs/http_server.hpp"

namespace hubferry::obs {

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
    server_.listen();
    port_ = server_.port();
    async::asio::co_spawn(loop_, server_.run(),
                          async::asio::bind_cancellation_slot(
                              cancel_.slot(), [this](std::exception_ptr error) { ended_.set_value(error); }));
  }
  ~ServerOnThread() { stop(); }

  std::uint16_t port() const { return port_; }

  /// Cancels run() and waits for its end: what it ended with.
  std::exception_ptr stop() {
    if (stopped_) return nullptr;
    stopped_ = true;
    async::asio::post(loop_, [this] { cancel_.emit(async::asio::cancellation_type::terminal); });
    return ended_.get_future().get();
  }

  std::size_t connections() {
    std::promise<std::size_t> answer;
    async::asio::post(loop_, [&] { answer.set_value(server_.connections()); });
    return answer.get_future().get();
  }

 private:
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
