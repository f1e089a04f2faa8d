#include "kube/config/process.hpp"

#include <sys/wait.h>

#include <boost/asio/deferred.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <csignal>
#include <optional>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"

namespace hubferry::kube {

namespace {

using async::asio::posix::stream_descriptor;
using namespace std::chrono_literals;

constexpr std::size_t most_errors = std::size_t{16} << 10;
constexpr auto poll_interval = 20ms;  // without a pidfd

/// One end of a pipe and what came out of it.
class Collector {
 public:
  Collector(const async::Executor& executor, int descriptor) : descriptor_(executor, descriptor) {}

  /// Until the other end is closed.
  async::Awaitable<> collect() {
    while (take()) co_await descriptor_.async_wait(stream_descriptor::wait_read, async::asio::deferred);
  }

  /// Takes what is there, at most one block a turn; false at the end.
  bool take() {
    char block[65536];
    const auto count = ::read(descriptor_.native_handle(), block, sizeof block);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    content_.append(block, static_cast<std::size_t>(count));
    return count > 0 && on_grown();
  }

  std::string& content() { return content_; }

 protected:
  ~Collector() = default;
  virtual bool on_grown() = 0;

 private:
  stream_descriptor descriptor_;
  std::string content_;
};

class Output final : public Collector {
 public:
  Output(const async::Executor& executor, int descriptor, std::size_t most)
      : Collector(executor, descriptor), most_(most) {}

 private:
  bool on_grown() override {
    if (content().size() > most_) throw OutputTooLong("it wrote more than " + std::to_string(most_) + " bytes");
    return true;
  }

  std::size_t most_;
};

/// Keeps the end: the last line is what a program died of.
class Errors final : public Collector {
 public:
  using Collector::Collector;

 private:
  bool on_grown() override {
    if (content().size() > most_errors) content().erase(0, content().size() - most_errors);
    return true;
  }
};

class ChildProcess {
 public:
  ChildProcess(const async::Executor& executor, const ProcessRequest& request, async::Clock& clock)
      : ChildProcess(executor, request, clock, spawn(request)) {}
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Last resort, when the frame is destroyed under a running call: a killed process is reaped within moments.
  ~ChildProcess() {
    if (ended_) return;
    kill();
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  async::Awaitable<> communicate() {
    auto body = [this](async::TaskScope& scope) -> async::Awaitable<> {
      scope.spawn(output_.collect());
      scope.spawn(errors_.collect());
      co_await wait_for_end();
      scope.stop();
    };
    co_await async::with_scope(body);
    // What it wrote before it ended is in the pipes; more than a pipe holds is not ours to wait for.
    output_.take();
    errors_.take();
  }

  async::Awaitable<> wait_for_end() {
    while (!has_ended()) {
      if (pidfd_.is_open()) {
        co_await pidfd_.async_wait(stream_descriptor::wait_read, async::asio::deferred);
      } else {
        co_await clock_.sleep_for(poll_interval);
      }
    }
  }

  /// With everything that it started, unless that has moved to another group, or is in ours.
  void kill() {
    if (!ended_) ::kill(own_group_ ? -pid_ : pid_, SIGKILL);
  }

  ProcessResult result() {
    return {.exit_code = WIFEXITED(status_) ? WEXITSTATUS(status_) : -1,
            .signal = WIFSIGNALED(status_) ? WTERMSIG(status_) : 0,
            .output = std::move(output_.content()),
            .errors = std::move(errors_.content())};
  }

 private:
  ChildProcess(const async::Executor& executor, const ProcessRequest& request, async::Clock& clock, Spawned spawned)
      : clock_(clock),
        pid_(spawned.pid),
        own_group_(!request.on_terminal),
        output_(executor, spawned.output, request.most_output),
        errors_(executor, spawned.errors),
        pidfd_(executor) {
    if (spawned.pidfd >= 0) pidfd_.assign(spawned.pidfd);
  }

  bool has_ended() {
    if (ended_) return true;
    const auto waited = ::waitpid(pid_, &status_, WNOHANG);
    if (waited == pid_) ended_ = true;
    if (waited < 0 && errno == ECHILD) {
      // Other code of this process ignores SIGCHLD or waits for all children.
      ended_ = true;
      status_ = unknown_status;
    }
    return ended_;
  }

  static constexpr int unknown_status = 0x7f;  // neither exited nor signalled

  async::Clock& clock_;
  pid_t pid_;
  bool own_group_;
  Output output_;
  Errors errors_;
  stream_descriptor pidfd_;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace

async::Awaitable<ProcessResult> run_process(ProcessRequest request, async::Clock& clock, async::TimePoint deadline) {
  const auto executor = co_await async::asio::this_coro::executor;
  ChildProcess child{executor, request, clock};
  std::exception_ptr failure;
  try {
    co_await async::with_deadline(clock, deadline, child.communicate());
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    // A cancelled coroutine throws at its next co_await; the process must be reaped all the same.
    const bool throws = co_await async::asio::this_coro::throw_if_cancelled();
    co_await async::asio::this_coro::throw_if_cancelled(false);
    child.kill();
    co_await async::shielded(child.wait_for_end());
    co_await async::asio::this_coro::throw_if_cancelled(throws);
    std::rethrow_exception(failure);
  }
  co_return child.result();
}

}  // namespace hubferry::kube
