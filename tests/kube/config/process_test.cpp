#include "kube/config/process.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iterator>
#include <system_error>

#include "hubferry/async/task_scope.hpp"
#include "kube/config/manual_clock.hpp"
#include "support/coroutine_test.hpp"
#include "support/real_loop.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::kube {
namespace {

using async::Awaitable;
using namespace std::chrono_literals;

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {}));
}

/// Neither running nor about to: gone, or waiting to be reaped by the process that inherited it.
bool is_dead(const std::string& pid) {
  std::ifstream in{"/proc/" + pid + "/stat"};
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  return text.empty() || text.find(") Z ") != std::string::npos;
}

class Process : public testing::Test {
 protected:
  static ProcessRequest shell(const std::string& script) {
    ProcessRequest request;
    request.command = "/bin/sh";
    request.arguments = {"-c", script};
    return request;
  }

  ProcessResult run(ProcessRequest request) { return loop_.run(run_process(std::move(request), clock_, async::never)); }

  /// Waits, on real time, for a program to have written this file.
  Awaitable<> until_written(std::string name) {
    while (directory_.read(name).find('\n') == std::string::npos) co_await real_clock_.sleep_for(1ms);
  }

  Awaitable<> until_dead(std::string pid) {
    while (!is_dead(pid)) co_await real_clock_.sleep_for(1ms);
  }

  /// A script that starts a sleeper, writes both numbers, and waits forever.
  ProcessRequest hanging() {
    return shell("cd " + directory_.path().string() + "; sleep 1000 & echo $! > child; echo $$ > self; wait");
  }

  std::string pid_in(const std::string& name) {
    auto text = directory_.read(name);
    return text.substr(0, text.find('\n'));
  }

  test::TemporaryDirectory directory_;
  async::RealClock real_clock_;
  test::ManualClock clock_;
  test::RealLoop loop_;
};

TEST_F(Process, CollectsOutputErrorsAndExitCode) {
  const auto result = run(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.signal, 0);
}

TEST_F(Process, ReportsTheSignalThatEndedIt) {
  EXPECT_EQ(run(shell("kill -TERM $$")).signal, SIGTERM);
}

TEST_F(Process, WorksWithoutPidfds) {
  auto request = shell("echo out");
  request.use_pidfd = false;
  // Here the end is polled for, on the clock.
  EXPECT_EQ(loop_.run(run_process(std::move(request), real_clock_, async::never)).output, "out\n");
}

TEST_F(Process, FindsPlainNamesInThePath) {
  ProcessRequest request;
  request.command = "echo";
  request.arguments = {"a b", ""};
  EXPECT_EQ(run(request).output, "a b \n");
}

TEST_F(Process, SaysWhyItCannotStart) {
  const auto code_of = [&](const std::string& command) {
    ProcessRequest request;
    request.command = command;
    try {
      run(request);
    } catch (const std::system_error& e) {
      return e.code().value();
    }
    return 0;
  };
  EXPECT_EQ(code_of("hubferry-no-such-program"), ENOENT);
  EXPECT_EQ(code_of("/no/such/program"), ENOENT);
  EXPECT_EQ(code_of(directory_.write("plain", "text").string()), EACCES);
}

TEST_F(Process, HasNoInputAndOnlyItsOwnEnvironmentOnTop) {
  auto request = shell("read line || echo end; echo $HUBFERRY_TEST$HOME");
  request.environment = {{"HUBFERRY_TEST", "x"}, {"HOME", "y"}};
  EXPECT_EQ(run(request).output, "end\nxy\n");
}

// Asio does not mark its sockets close-on-exec: without care a plugin would get our connections.
TEST_F(Process, InheritsNoDescriptors) {
  const int plain = ::open("/dev/null", O_RDONLY);
  ASSERT_EQ(::dup2(plain, 77), 77);
  const auto result = run(shell("[ -e /proc/self/fd/77 ] && echo leaked; [ -e /proc/self/fd/2 ] && echo fine"));
  ::close(77);
  ::close(plain);
  EXPECT_EQ(result.output, "fine\n");
}

TEST_F(Process, MoreThanAPipeHoldsComesThroughWhole) {
  const auto result = run(shell("head -c 900000 /dev/zero"));
  EXPECT_EQ(result.output.size(), 900000u);
}

TEST_F(Process, TooMuchOutputEndsIt) {
  EXPECT_THROW(run(shell("cat /dev/zero")), OutputTooLong);
}

TEST_F(Process, KeepsTheEndOfEndlessErrors) {
  const auto result = run(shell("head -c 300000 /dev/zero | tr '\\0' x >&2; echo last >&2"));
  EXPECT_LE(result.errors.size(), 16384u);
  EXPECT_THAT(result.errors, testing::EndsWith("xlast\n"));
}

// A daemon that a plugin leaves behind holds the pipe open; the plugin's answer is complete all the same.
TEST_F(Process, DoesNotWaitForWhatAProcessLeavesBehind) {
  const auto result = run(shell("sleep 1000 & echo $! $$"));
  const auto space = result.output.find(' ');
  ASSERT_NE(space, std::string::npos);
  ::kill(std::stoi(result.output.substr(0, space)), SIGKILL);
}

TEST_F(Process, ClosedPipesAreNotTheEnd) {
  const auto result = run(shell("exec >&- 2>&-; sleep 0.05; exit 4"));
  EXPECT_EQ(result.exit_code, 4);
}

TEST_F(Process, IsKilledWithItsGroupAtTheDeadline) {
  auto work = [&]() -> Awaitable<> {
    const auto deadline = clock_.now() + 60s;
    bool timed_out = false;
    try {
      co_await run_process(hanging(), clock_, deadline);
    } catch (const boost::system::system_error&) {
      timed_out = async::is_timeout(std::current_exception());
    }
    EXPECT_TRUE(timed_out);
    EXPECT_EQ(::waitpid(std::stoi(pid_in("self")), nullptr, WNOHANG), -1) << "reaped already";
    co_await until_dead(pid_in("child"));
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(work());
    co_await until_written("self");
    clock_.advance(59s);
    co_await real_clock_.sleep_for(5ms);
    EXPECT_FALSE(is_dead(pid_in("self")));
    clock_.advance(1s);
  };
  loop_.run(async::with_scope(body));
}

TEST_F(Process, IsKilledAndReapedWhenItsCallerIsCancelled) {
  auto work = [&]() -> Awaitable<> { co_await run_process(hanging(), clock_, async::never); };
  auto body = [&]() -> Awaitable<> {
    async::TaskScope scope{co_await async::asio::this_coro::executor};
    scope.spawn(work());
    co_await until_written("self");
    scope.stop();
    co_await scope.join();
    EXPECT_EQ(::waitpid(std::stoi(pid_in("self")), nullptr, WNOHANG), -1);
    co_await until_dead(pid_in("child"));
  };
  loop_.run(body());
}

// Finished and cancelled in one turn: whichever is seen first, nothing is left running.
TEST_F(Process, CancellationInTheTurnOfTheEndLeavesNothingBehind) {
  run(shell("exit 0"));  // the loop opens its own descriptors at first use
  const auto before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    auto work = [&]() -> Awaitable<> { co_await run_process(shell("exit 0"), clock_, clock_.now() + 60s); };
    auto body = [&]() -> Awaitable<> {
      async::TaskScope scope{co_await async::asio::this_coro::executor};
      scope.spawn(work());
      co_await real_clock_.sleep_for(i * 200us);
      scope.stop();
      co_await scope.join();
    };
    loop_.run(body());
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

TEST_F(Process, LeavesOtherChildrenToOthers) {
  pid_t other = 0;
  char name[] = "true";
  char* arguments[] = {name, nullptr};
  ASSERT_EQ(::posix_spawnp(&other, "true", nullptr, nullptr, arguments, environ), 0);
  run(shell("exit 0"));
  int status = -1;
  EXPECT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
}

TEST_F(Process, LeaksNoDescriptors) {
  run(shell("exit 0"));
  const auto before = open_descriptors();
  for (int i = 0; i < 10; ++i) run(shell("echo x"));
  EXPECT_THROW(run(shell("cat /dev/zero")), OutputTooLong);
  ProcessRequest missing;
  missing.command = "/no/such/program";
  EXPECT_THROW(run(missing), std::system_error);
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace hubferry::kube
