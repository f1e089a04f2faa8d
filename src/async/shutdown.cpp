#include "hubferry/async/shutdown.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/loops.hpp"

namespace hubferry::async {

namespace {

bool is_ignored(int signal) {
  struct sigaction present{};
  return sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_IGN;
}

/// One run of run_main(): who may still end the process, and how.
class MainRun {
 public:
  explicit MainRun(ShutdownPolicy policy)
      : policy_(std::move(policy)),
        context_(std::make_unique<asio::io_context>(1)),
        signals_(std::in_place, *context_, SIGINT, SIGTERM),
        deadline_(std::in_place, *context_) {
    // Whoever started us with nohup wants us to outlive the terminal.
    if (!is_ignored(SIGHUP)) signals_->add(SIGHUP);
  }

  ~MainRun() {
    LoopDestruction mark;
    signals_.reset();
    deadline_.reset();
    context_.reset();
  }

  int run(std::function<Awaitable<int>(Event&)> body) {
    await_signal();
    auto on_end = [this](std::exception_ptr error, int code) {
      error_ = error;
      code_ = code;
      signals_->cancel();
      deadline_->cancel();
      context_->stop();
    };
    auto run_body = [&]() { return body(stop_); };
    asio::co_spawn(*context_, std::move(run_body), asio::bind_cancellation_slot(cancel_.slot(), std::move(on_end)));
    context_->run();
    if (error_ && !(signalled_ && is_cancellation(error_))) std::rethrow_exception(error_);
    return error_ ? 0 : code_;
  }

 private:
  void await_signal() {
    signals_->async_wait([this](error_code ec, int signal) {
      if (!ec) on_signal(signal);
    });
  }

  void on_signal(int signal) {
    const std::string name = strsignal(signal);
    if (signalled_) {
      policy_.say("second signal (" + name + "): ending at once");
      std::_Exit(128 + signal);
    }
    signalled_ = true;
    policy_.say("received signal (" + name + "): stopping in order, " + format_duration(policy_.grace) + " at most");
    await_signal();
    stop_.set();
    after(policy_.grace, [this] {
      policy_.say("not stopped in time: cancelling what still runs");
      cancel_.emit(asio::cancellation_type::terminal);
      after(policy_.unwind, [this] {
        policy_.say("something does not unwind: ending the process");
        std::_Exit(1);
      });
    });
  }

  void after(Duration delay, std::function<void()> action) {
    deadline_->expires_after(delay);
    deadline_->async_wait([action = std::move(action)](error_code ec) {
      if (!ec) action();
    });
  }

  ShutdownPolicy policy_;
  Event stop_;
  asio::cancellation_signal cancel_;
  bool signalled_ = false;
  std::exception_ptr error_;
  int code_ = 0;
  std::unique_ptr<asio::io_context> context_;
  std::optional<asio::signal_set> signals_;
  std::optional<asio::steady_timer> deadline_;
};

}  // namespace

int run_main(std::function<Awaitable<int>(Event& stop)> body, ShutdownPolicy policy) {
  MainRun main{std::move(policy)};
  return main.run(std::move(body));
}

}  // namespace hubferry::async
