#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/credentials.hpp"
#include "kube/config/manual_clock.hpp"
#include "kube/config/samples.hpp"
#include "support/coroutine_test.hpp"
#include "support/real_loop.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::kube {
namespace {

using async::Awaitable;
using namespace std::chrono_literals;
using test::exec_v1;
using testing::HasSubstr;

/// Real scripts on a clock that is moved by hand.
class ExecPluginTest : public testing::Test {
 protected:
  /// A plugin that notes each run in a file and then does what `body` says, with the run's number in $n.
  Credentials plugin(const std::string& body) {
    const auto script = directory_.write_script(
        "login", "cd \"" + directory_.path().string() + "\"\necho run >> runs\nn=$(wc -l < runs)\n" + body);
    config_.source = "F";
    config_.server = "https://a";
    config_.exec.emplace();
    config_.exec->api_version = exec_v1;
    config_.exec->command = script;
    config_.exec->environment = {{"PLUGIN_SETTING", "s3cr3t-setting"}};
    config_.exec->install_hint = "ask the\nadmins";
    return Credentials{config_, clock_};
  }

  static std::string answer(const std::string& status) {
    return "cat <<END\n{\"kind\":\"ExecCredential\",\"apiVersion\":\"" + exec_v1 + "\",\"status\":{" + status +
           "}}\nEND\n";
  }

  static std::string text_of(const Result<std::string>& result) {
    return result ? *result : "error: " + result.error().message;
  }

  std::string header(Credentials& credentials) { return text_of(loop_.run(credentials.authorization_header())); }

  std::size_t runs() {
    const auto text = directory_.read("runs");
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  Awaitable<> until_runs(std::size_t count) {
    while (runs() < count) co_await real_clock_.sleep_for(1ms);
  }

  Awaitable<> ask(Credentials& credentials, std::vector<std::string>& answers) {
    const auto result = co_await credentials.authorization_header();
    answers.push_back(text_of(result));
  }

  test::TemporaryDirectory directory_;
  ClientConfig config_;
  async::RealClock real_clock_;
  test::ManualClock clock_;
  test::RealLoop loop_;
};

TEST_F(ExecPluginTest, ATokenWithoutExpiryServesUntilItIsRefused) {
  auto credentials = plugin(answer("\"token\":\"t$n\""));
  EXPECT_EQ(header(credentials), "Bearer t1");
  clock_.advance(24h * 365);
  EXPECT_EQ(header(credentials), "Bearer t1");
  credentials.invalidate("Bearer older");
  EXPECT_EQ(header(credentials), "Bearer t1");
  credentials.invalidate("Bearer t1");
  EXPECT_EQ(header(credentials), "Bearer t2");
  EXPECT_EQ(runs(), 2u);
}

TEST_F(ExecPluginTest, ATokenIsRenewedTenSecondsBeforeItExpires) {
  auto credentials = plugin(answer("\"token\":\"t$n\",\"expirationTimestamp\":\"2030-01-01T00:0$n:00Z\""));
  EXPECT_EQ(header(credentials), "Bearer t1");
  clock_.advance(49s);
  EXPECT_EQ(header(credentials), "Bearer t1");
  clock_.advance(1s);
  EXPECT_EQ(header(credentials), "Bearer t2");
  clock_.advance(59s);
  EXPECT_EQ(header(credentials), "Bearer t2");
  clock_.advance(1s);
  EXPECT_EQ(header(credentials), "Bearer t3");
}

TEST_F(ExecPluginTest, ACertificateComesWithoutAHeader) {
  auto credentials = plugin(answer(R"("clientCertificateData":"cert $n\\n","clientKeyData":"key $n\\n")"));
  EXPECT_FALSE(credentials.client_certificate());
  EXPECT_EQ(header(credentials), "");
  EXPECT_EQ(credentials.client_certificate(), (ClientCertificate{"cert 1\n", "key 1\n"}));
  credentials.invalidate("");
  EXPECT_EQ(header(credentials), "");
  EXPECT_EQ(credentials.client_certificate(), (ClientCertificate{"cert 2\n", "key 2\n"}));
}

TEST_F(ExecPluginTest, ThePluginGetsItsExecInfo) {
  auto credentials =
      plugin("echo \"$KUBERNETES_EXEC_INFO\" > info; echo \"$PLUGIN_SETTING\" > setting\n" + answer("\"token\":\"t\""));
  EXPECT_EQ(header(credentials), "Bearer t");
  EXPECT_EQ(directory_.read("info"),
            R"({"apiVersion":")" + exec_v1 + R"(","kind":"ExecCredential","spec":{"interactive":false}})" + "\n");
  EXPECT_EQ(directory_.read("setting"), "s3cr3t-setting\n");
}

TEST_F(ExecPluginTest, ManyCallersShareOneRun) {
  auto credentials = plugin("while [ ! -e go ]; do sleep 0.01; done\n" + answer("\"token\":\"t$n\""));
  std::vector<std::string> answers;
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (int i = 0; i < 20; ++i) scope.spawn(ask(credentials, answers));
    co_await until_runs(1);
    directory_.write("go", "");
  };
  loop_.run(async::with_scope(body));
  EXPECT_EQ(answers, std::vector<std::string>(20, "Bearer t1"));
  EXPECT_EQ(runs(), 1u);
}

// A failure is shared, too: otherwise each of many waiting requests would start the broken plugin in turn.
TEST_F(ExecPluginTest, AFailureIsTheAnswerForASecond) {
  auto credentials = plugin("[ $n -ge 2 ] || { echo 'no network' >&2; exit 1; }\n" + answer("\"token\":\"t$n\""));
  const std::string failure = "error: F: exec plugin " + (directory_.path() / "login").string() +
                              " ended with exit code 1: no network (ask the admins)";
  std::vector<std::string> answers;
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (int i = 0; i < 3; ++i) scope.spawn(ask(credentials, answers));
    co_return;
  };
  loop_.run(async::with_scope(body));
  EXPECT_EQ(answers, std::vector<std::string>(3, failure));
  credentials.invalidate();
  EXPECT_EQ(header(credentials), failure);
  EXPECT_EQ(runs(), 1u);
  clock_.advance(1s);
  EXPECT_EQ(header(credentials), "Bearer t2");
}

TEST_F(ExecPluginTest, AFailedRenewalLeavesTheOldTokenUntilItExpires) {
  auto credentials =
      plugin("[ $n -eq 1 ] || exit 1\n" + answer("\"token\":\"t1\",\"expirationTimestamp\":\"2030-01-01T00:01:00Z\""));
  EXPECT_EQ(header(credentials), "Bearer t1");
  clock_.advance(55s);
  EXPECT_EQ(header(credentials), "Bearer t1");
  EXPECT_EQ(runs(), 2u);
  clock_.advance(5s);
  EXPECT_THAT(header(credentials), HasSubstr("ended with exit code 1"));
}

// A server that refuses everything must not make us start a process per request.
TEST_F(ExecPluginTest, RefusalsForceNoMoreThanOneRunASecond) {
  auto credentials = plugin(answer("\"token\":\"t$n\""));
  EXPECT_EQ(header(credentials), "Bearer t1");
  for (int i = 0; i < 5; ++i) {
    credentials.invalidate();
    EXPECT_EQ(header(credentials), "Bearer t2");
  }
  clock_.advance(1s);
  EXPECT_EQ(header(credentials), "Bearer t3");
}

// The same for a plugin that hands out what has expired already.
TEST_F(ExecPluginTest, AnExpiredAnswerIsUsedOnceAndAskedForAgainASecondLater) {
  auto credentials = plugin(answer("\"token\":\"t$n\",\"expirationTimestamp\":\"2029-12-31T00:00:00Z\""));
  EXPECT_EQ(header(credentials), "Bearer t1");
  EXPECT_EQ(header(credentials), "Bearer t1");
  clock_.advance(1s);
  EXPECT_EQ(header(credentials), "Bearer t2");
}

TEST_F(ExecPluginTest, AHangingPluginIsKilledAfterAMinute) {
  auto credentials = plugin("sleep 1000");
  std::vector<std::string> answers;
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(ask(credentials, answers));
    scope.spawn(ask(credentials, answers));
    co_await until_runs(1);
    clock_.advance(60s);
  };
  loop_.run(async::with_scope(body));
  const auto message = "error: F: exec plugin " + (directory_.path() / "login").string() +
                       " did not answer within 1m and was killed (ask the admins)";
  EXPECT_EQ(answers, std::vector<std::string>(2, message));
  EXPECT_EQ(runs(), 1u);
}

// Its callers' deadlines are those of requests; a login may take longer than any of them.
TEST_F(ExecPluginTest, ARunOutlivesTheCallersThatWaitedForIt) {
  auto credentials = plugin("while [ ! -e go ]; do sleep 0.01; done\n" + answer("\"token\":\"t$n\""));
  std::vector<std::string> answers;
  auto body = [&]() -> Awaitable<> {
    const auto executor = co_await async::asio::this_coro::executor;
    for (int i = 0; i < 3; ++i) {
      async::TaskScope impatient{executor};
      impatient.spawn(ask(credentials, answers));
      co_await until_runs(1);
      impatient.stop();
      co_await impatient.join();
    }
    EXPECT_EQ(answers, std::vector<std::string>{});
    directory_.write("go", "");
    co_await ask(credentials, answers);
  };
  loop_.run(body());
  EXPECT_EQ(answers, std::vector<std::string>{"Bearer t1"});
  EXPECT_EQ(runs(), 1u);
}

TEST_F(ExecPluginTest, TheEndOfTheCredentialsKillsARun) {
  plugin("echo $$ > pid; sleep 1000");
  auto credentials = std::make_unique<Credentials>(config_, clock_);
  std::vector<std::string> answers;
  auto body = [&]() -> Awaitable<> {
    const auto executor = co_await async::asio::this_coro::executor;
    async::TaskScope impatient{executor};
    impatient.spawn(ask(*credentials, answers));
    co_await until_runs(1);
    while (directory_.read("pid").find('\n') == std::string::npos) co_await real_clock_.sleep_for(1ms);
    impatient.stop();
    co_await impatient.join();
    credentials.reset();
    const auto pid = std::stoi(directory_.read("pid"));
    while (::kill(pid, 0) == 0) co_await real_clock_.sleep_for(1ms);
  };
  loop_.run(body());
}

/// Replaces our standard input by a text.
class StandardInput {
 public:
  explicit StandardInput(const std::string& text) : saved_(::dup(STDIN_FILENO)) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    (void)!::write(ends[1], text.data(), text.size());
    ::close(ends[1]);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;
  ~StandardInput() {
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

TEST_F(ExecPluginTest, OnATerminalItMayAskAPerson) {
  const std::string script =
      "echo \"$KUBERNETES_EXEC_INFO\" > info; read word || word=nothing\n" + answer("\"token\":\"$word\"");
  const StandardInput input{"typed\n"};
  plugin(script);
  for (const auto mode : {ExecPlugin::Interaction::never, ExecPlugin::Interaction::if_available}) {
    config_.exec->interaction = mode;
    config_.exec->person = ExecPlugin::Person::has_terminal;
    const bool asks = mode != ExecPlugin::Interaction::never;
    Credentials credentials{config_, clock_};
    EXPECT_EQ(header(credentials), asks ? "Bearer typed" : "Bearer nothing");
    EXPECT_THAT(directory_.read("info"), HasSubstr(asks ? "\"interactive\":true" : "\"interactive\":false"));
  }
  config_.exec->interaction = ExecPlugin::Interaction::always;
  config_.exec->person = ExecPlugin::Person::waits;
  Credentials credentials{config_, clock_};
  EXPECT_THAT(header(credentials), HasSubstr("asks a person (interactiveMode: Always), but there is no terminal"));
}

TEST_F(ExecPluginTest, AWaitingCallerCanBeCancelledAlone) {
  auto credentials = plugin("while [ ! -e go ]; do sleep 0.01; done\n" + answer("\"token\":\"t$n\""));
  std::vector<std::string> answers;
  auto body = [&]() -> Awaitable<> {
    const auto executor = co_await async::asio::this_coro::executor;
    async::TaskScope first{executor};
    async::TaskScope second{executor};
    first.spawn(ask(credentials, answers));
    second.spawn(ask(credentials, answers));
    co_await until_runs(1);
    second.stop();
    co_await second.join();
    directory_.write("go", "");
    co_await first.join();
  };
  loop_.run(body());
  EXPECT_EQ(answers, std::vector<std::string>{"Bearer t1"});
}

TEST_F(ExecPluginTest, GarbageIsAnErrorThatQuotesNothing) {
  auto credentials = plugin("echo hunter2");
  const auto message = header(credentials);
  EXPECT_THAT(message, HasSubstr("gave an invalid answer: its output is not JSON"));
  EXPECT_EQ(message.find("hunter2"), std::string::npos);
}

TEST_F(ExecPluginTest, EndlessOutputIsCutOff) {
  auto credentials = plugin("cat /dev/zero");
  EXPECT_THAT(header(credentials), HasSubstr("was killed: it wrote more than 1048576 bytes"));
}

TEST_F(ExecPluginTest, WhatItSaysWhenItDiesIsShownWithoutSecrets) {
  auto credentials = plugin("echo \"first line\" >&2; echo \"login with $PLUGIN_SETTING failed\" >&2; exit 7");
  EXPECT_THAT(header(credentials), HasSubstr("ended with exit code 7: login with [hidden] failed"));
}

TEST_F(ExecPluginTest, AMissingPluginIsExplained) {
  config_.source = "F";
  config_.exec.emplace();
  config_.exec->api_version = exec_v1;
  config_.exec->command = "hubferry-no-such-plugin";
  config_.exec->install_hint = "install it";
  Credentials credentials{config_, clock_};
  const auto result = loop_.run(credentials.authorization_header());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::unauthorized);
  EXPECT_EQ(result.error().message,
            "F: exec plugin hubferry-no-such-plugin cannot be started: No such file or directory (install it)");
}

}  // namespace
}  // namespace hubferry::kube
