#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hubferry/async/event.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/kube/http_api.hpp"

namespace hubferry::app {

/// A connection to one API server for an interactive command: it gives up sooner than a controller and logs nothing.
class ServerClient {
 public:
  explicit ServerClient(kube::ClientConfig config);

  kube::Api& api() { return *api_; }
  /// The loop of its connections.
  [[nodiscard]] const async::Executor& loop() const { return loop_; }
  /// A connection to another server, with the same limits. `name`: of the server, for messages. May throw
  /// kube::ConfigError.
  std::shared_ptr<kube::Api> connect(std::string name, kube::ClientConfig config);
  kube::Env env() { return {clock_, random_, metrics_, {}}; }

 private:
  async::RealClock clock_;
  async::Random random_ = async::Random::from_entropy();
  obs::Metrics metrics_;
  async::LoopPool loops_{1};
  async::Executor loop_ = loops_.next();
  std::unique_ptr<kube::Api> api_;
};

/// Throws std::runtime_error with a message for the user: the server, the cause, and what to do.
[[noreturn]] void throw_for(const kube::Error& error, const kube::Api& api);

/// Runs `task` and returns 0. If `stop` is set before the task ends, cancels it and returns 130.
async::Awaitable<int> unless_stopped(async::Event& stop, async::Awaitable<> task);

/// Runs `command` as the process's main task and returns its exit code, or 130 if a signal interrupts it before its
/// end.
int run_interruptibly(const std::function<async::Awaitable<int>()>& command);

}  // namespace hubferry::app
