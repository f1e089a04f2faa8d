#include "hubferry/async/shutdown.hpp"

#include <pthread.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/loops.hpp"

namespace hubferry::async {

namespace {

/// The same signal again within this time is one request to stop: a supervisor and a process group may both send it.
/// A person who sees no effect takes longer.
constexpr auto one_request = std::chrono::milliseconds{100};

bool is_ignored(int signal) {
  struct sigaction present{};
  return sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_IGN;
}

/// What each signal does. All but `end` run on the loop of the body.
struct SignalAnswers {
  std::function<void(int signal)> stop;
  std::function<void()> cancel;
  /// Does not return.
  std::function<void(const std::string& why, int code)> end;
};

/// Waits for signals in its own thread: the second signal must work even if the loop hangs.
class SignalThread {
 public:
  SignalThread(const ShutdownPolicy& policy, SignalAnswers answers) : policy_(policy), answers_(std::move(answers)) {
    // Ignored under nohup: the process is to outlive the terminal.
    if (!is_ignored(SIGHUP)) signals_.add(SIGHUP);
    await_signal();
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "signals");
      context_.run();
    });
  }
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;
  ~SignalThread() {
    context_.stop();
    thread_.join();
  }

 private:
  void await_signal() {
    signals_.async_wait([this](error_code ec, int signal) {
      if (!ec) on_signal(signal);
    });
  }

  void on_signal(int signal) {
    const TimePoint now = RealClock{}.now();
    if (signal == first_signal_ && now - first_at_ < one_request) {
      await_signal();
      return;
    }
    if (first_signal_ != 0)
      answers_.end("second signal (" + std::string(strsignal(signal)) + "): exiting at once", 128 + signal);
    first_signal_ = signal;
    first_at_ = now;
    await_signal();
    answers_.stop(signal);
    after(policy_.grace, [this] {
      answers_.cancel();
      after(policy_.unwind, [this] { answers_.end("tasks did not unwind after cancellation: exiting", 1); });
    });
  }

  void after(Duration delay, std::function<void()> action) {
    const TimePoint when = later(RealClock{}.now(), delay);
    deadline_.expires_at(std::chrono::steady_clock::time_point{when.time_since_epoch()});
    deadline_.async_wait([action = std::move(action)](error_code ec) {
      if (!ec) action();
    });
  }

  const ShutdownPolicy& policy_;
  SignalAnswers answers_;
  int first_signal_ = 0;
  TimePoint first_at_{};
  asio::io_context context_{1};
  asio::signal_set signals_{context_, SIGINT, SIGTERM};
  asio::steady_timer deadline_{context_};
  std::thread thread_;
};

/// One run of run_main(): the loop of the body, and what signals do to it.
class MainRun {
 public:
  explicit MainRun(ShutdownPolicy policy)
      : policy_(std::move(policy)), context_(std::make_unique<asio::io_context>(1)) {}

  ~MainRun() {
    LoopDestruction mark;
    context_.reset();
  }

  int run(std::function<Awaitable<int>(Event&)> body) {
    auto on_end = [this](std::exception_ptr error, int code) {
      error_ = error;
      code_ = code;
      context_->stop();
    };
    auto run_body = [&]() { return body(stop_); };
    asio::co_spawn(*context_, std::move(run_body), asio::bind_cancellation_slot(cancel_.slot(), std::move(on_end)));
    {
      const SignalThread signals{policy_, answers()};
      context_->run();
    }
    if (error_ && !(signalled_ && is_cancellation(error_))) std::rethrow_exception(error_);
    return error_ ? 0 : code_;
  }

 private:
  SignalAnswers answers() {
    auto stop = [this](int signal) {
      policy_.say("received signal (" + std::string(strsignal(signal)) + "): shutting down gracefully within " +
                  format_duration(policy_.grace));
      signalled_ = true;
      stop_.set();
    };
    auto cancel = [this] {
      policy_.say("grace period over: cancelling what still runs");
      cancel_.emit(asio::cancellation_type::terminal);
    };
    return {.stop = [this, stop](int signal) { asio::post(*context_, [stop, signal] { stop(signal); }); },
            .cancel = [this, cancel] { asio::post(*context_, cancel); },
            .end =
                [this](const std::string& why, int code) {
                  try {
                    policy_.say(why);
                  } catch (const std::exception&) {
                    // The process exits even if it cannot log why.
                  }
                  std::_Exit(code);
                }};
  }

  ShutdownPolicy policy_;
  Event stop_;
  asio::cancellation_signal cancel_;
  bool signalled_ = false;
  std::exception_ptr error_;
  int code_ = 0;
  std::unique_ptr<asio::io_context> context_;
};

}  // namespace

int run_main(std::function<Awaitable<int>(Event& stop)> body, ShutdownPolicy policy) {
  MainRun main{std::move(policy)};
  return main.run(std::move(body));
}

}  // namespace hubferry::async
