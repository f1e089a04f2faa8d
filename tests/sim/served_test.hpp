#pragma once

#include <sys/wait.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/sim/http_frontend.hpp"
#include "sim/sim_test.hpp"

namespace hubferry::sim {

/// A server with its HTTP frontend in a thread of its own, for clients in other processes.
class Served {
 public:
  explicit Served(HttpOptions options = {}, Options server_options = {}, obs::Logger log = {})
      : server_(std::move(server_options), kube::Env{clock_, random_, metrics_, std::move(log)}),
        frontend_(server_, context_.get_executor(), std::move(options)),
        scope_(context_.get_executor()) {
    scope_.spawn(frontend_.serve());
    thread_ = std::thread{[this] { context_.run(); }};
  }
  ~Served() {
    async::asio::post(context_, [this] {
      scope_.stop();
      async::asio::co_spawn(context_, scope_.join(), [](const std::exception_ptr&) {});
    });
    thread_.join();
  }

  HttpFrontend& frontend() { return frontend_; }
  /// Only from the server's own thread: see on_loop().
  Server& server() { return server_; }

  /// Runs the task returned by `make(server, env)` in the server's thread, and waits for its end.
  template <typename Make>
  void run(Make make) {
    std::promise<void> done;
    async::asio::post(context_, [&] {
      auto task = make(server_, kube::Env{clock_, random_, metrics_, obs::Logger{}});
      async::asio::co_spawn(context_, std::move(task), [&](const std::exception_ptr& error) {
        if (error) {
          done.set_exception(error);
        } else {
          done.set_value();
        }
      });
    });
    done.get_future().get();
  }

  std::string kubeconfig_for(const User& user, bool by_certificate = false) {
    std::string text;
    on_loop([&] { text = frontend_.kubeconfig_for(user, by_certificate); });
    return text;
  }

  /// Runs `work` in the server's thread and waits for it.
  template <typename Work>
  void on_loop(Work work) {
    std::promise<void> done;
    async::asio::post(context_, [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

 private:
  async::RealClock clock_;
  async::Random random_{11};
  obs::Metrics metrics_;
  async::asio::io_context context_{1};
  Server server_;
  HttpFrontend frontend_;
  async::TaskScope scope_;
  std::thread thread_;
};

/// What a command printed, on both streams, and how it ended.
struct Ran {
  int status = -1;
  std::string output;
};

inline Ran run(const std::string& command) {
  Ran ran;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return ran;
  std::array<char, 4096> buffer;
  while (const auto got = std::fread(buffer.data(), 1, buffer.size(), pipe)) ran.output.append(buffer.data(), got);
  ran.status = WEXITSTATUS(::pclose(pipe));
  return ran;
}

}  // namespace hubferry::sim
