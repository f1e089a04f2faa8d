#include "hubferry/ui/console.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <future>

#include "app/status/migration_json.hpp"
#include "hubferry/async/loops.hpp"
#include "support/tcp_client.hpp"
#include "ui/assets.hpp"
#include "ui/request_guard.hpp"
#include "ui_samples.hpp"

namespace hubferry::ui {
namespace {

using test::TcpClient;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ConsoleOptions on_loopback() {
  ConsoleOptions options;
  options.address = "127.0.0.1:0";
  options.describe = app::migration_json;
  options.version = "1";
  return options;
}

/// A console with a thread of its own.
class RunningConsole {
 public:
  explicit RunningConsole(ConsoleOptions options = on_loopback())
      : loop_(loops_.next()), console(loop_, clock_, metrics_, std::move(options)) {
    console.listen();
    port = console.port();
    async::asio::co_spawn(
        loop_, console.run(),
        async::asio::bind_cancellation_slot(cancel_.slot(), [this](std::exception_ptr) { ended_.set_value(); }));
  }
  ~RunningConsole() {
    async::asio::post(loop_, [this] { cancel_.emit(async::asio::cancellation_type::terminal); });
    ended_.get_future().wait();
  }

  void put(const kube::Object& migration) { console.put(std::make_shared<const kube::Object>(migration)); }
  [[nodiscard]] std::string get(const std::string& target, const std::string& more = "",
                                const std::string& host = "127.0.0.1:80") const {
    TcpClient client{port};
    client.send("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n");
    return client.receive_response();
  }

 private:
  async::RealClock clock_;
  obs::Metrics metrics_;
  async::asio::cancellation_signal cancel_;
  std::promise<void> ended_;
  async::LoopPool loops_{1};
  async::Executor loop_;

 public:
  Console console;
  std::uint16_t port = 0;
};

/// Reads a stream of events.
class Watcher {
 public:
  explicit Watcher(std::uint16_t port) {
    socket_.connect({async::asio::ip::address_v4::loopback(), port});
    const std::string request = "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    async::asio::write(socket_, async::asio::buffer(request));
    head = until("\r\n\r\n");
  }
  std::string next() { return until("\n\n"); }
  void await_close() {
    async::error_code error;
    while (!error)
      async::asio::read(socket_, async::asio::dynamic_buffer(received_), async::asio::transfer_at_least(1), error);
  }

  std::string head;

 private:
  std::string until(const std::string& end) {
    const auto size = async::asio::read_until(socket_, async::asio::dynamic_buffer(received_), end);
    auto part = received_.substr(0, size);
    received_.erase(0, size);
    return part;
  }

  async::asio::io_context context_;
  async::asio::ip::tcp::socket socket_{context_};
  std::string received_;
};

TEST(Console, ThePageIsServedUnderAStrictPolicy) {
  const RunningConsole running;
  for (const auto* path : {"/", "/console.js", "/grid.js", "/console.css", "/icon.svg", "/api/state", "/nowhere"}) {
    const auto answer = running.get(path);
    EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'")) << path;
    EXPECT_THAT(answer, HasSubstr("frame-ancestors 'none'")) << path;
    EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff")) << path;
    EXPECT_THAT(answer, Not(HasSubstr("unsafe-"))) << path;
  }
  EXPECT_THAT(running.get("/"), HasSubstr("Content-Type: text/html"));
  EXPECT_THAT(running.get("/console.js"), HasSubstr("Content-Type: text/javascript"));
  EXPECT_THAT(running.get("/nowhere"), StartsWith("HTTP/1.1 404"));
}

std::string_view page_file(std::string_view name) {
  const auto files = page_files();
  const auto file = std::ranges::find(files, name, &PageFile::name);
  return file == files.end() ? std::string_view{} : file->content;
}

// Under the policy neither would work; and text must never become markup.
TEST(Console, ThePageHasNoInlineCodeNoForeignAssetAndNeverMakesMarkupOfText) {
  const std::string html{page_file("index.html")};
  for (const auto* word : {"<style", " style=", " onclick=", "http:", "https:", "//cdn"})
    EXPECT_THAT(html, Not(HasSubstr(word)));
  std::size_t size = 0;
  for (const auto& file : page_files()) {
    size += file.content.size();
    if (!file.name.ends_with(".js")) continue;
    for (const auto* word :
         {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "https:"})
      EXPECT_THAT(std::string{file.content}, Not(HasSubstr(word))) << file.name;
  }
  EXPECT_LT(size, 150'000U);
}

// A module that is found only when another asks for it is a round trip later.
TEST(Console, EveryModuleIsServedAndNamedByThePage) {
  const RunningConsole running;
  const std::string html{page_file("index.html")};
  for (const auto& file : page_files()) {
    const std::string name{file.name};
    EXPECT_THAT(running.get("/" + name), StartsWith("HTTP/1.1 200")) << name;
    if (!name.ends_with(".js")) continue;
    EXPECT_THAT(html, HasSubstr("=\"" + name + "\"")) << name;
    EXPECT_LT(std::ranges::count(file.content, '\n'), 300) << name;
  }
}

TEST(Console, ItIsReadOnly) {
  const RunningConsole running;
  for (const auto* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    TcpClient client{running.port};
    client.send(std::string{method} + " /api/state HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(client.receive_response(), StartsWith("HTTP/1.1 405")) << method;
  }
  TcpClient client{running.port};
  client.send("HEAD /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.receive_response(true), StartsWith("HTTP/1.1 200"));
}

TEST(Console, OnLoopbackAForeignNameIsRefused) {
  const RunningConsole running;
  EXPECT_THAT(running.get("/api/state", "", "evil.example.com"), StartsWith("HTTP/1.1 421"));
  EXPECT_THAT(running.get("/", "", "127.0.0.1.example.com:80"), StartsWith("HTTP/1.1 421"));
  for (const auto* host : {"127.0.0.1", "LocalHost:8082", "[::1]:80"})
    EXPECT_THAT(running.get("/api/state", "", host), StartsWith("HTTP/1.1 200")) << host;
}

TEST(RequestGuard, OnOtherAddressesTheNameIsTheAdministratorsChoice) {
  EXPECT_TRUE(is_expected_host("", "hubferry.example.com"));
  EXPECT_TRUE(is_expected_host("10.0.0.1", "hubferry.example.com"));
  EXPECT_FALSE(is_expected_host("localhost", "hubferry.example.com"));
  EXPECT_FALSE(is_expected_host("::1", "localhost.example.com"));
  EXPECT_FALSE(is_expected_host("127.0.0.1", ""));
}

TEST(Console, AStreamBeginsWithASnapshotAndThenHasTheChanges) {
  RunningConsole running;
  Watcher watcher{running.port};
  EXPECT_THAT(watcher.head, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(watcher.head, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(watcher.next(), StartsWith("event: snapshot\ndata: {"));
  running.put(migration_object("Registering", {"a", "b"}));
  std::string event = watcher.next();
  while (event.starts_with("event: hubs")) event = watcher.next();
  EXPECT_THAT(event, StartsWith("event: migration\n"));
  running.console.arrive({"default", "move"}, "b");
  while (event.find("\"d\":[1]") == std::string::npos) event = watcher.next();
  EXPECT_THAT(event, StartsWith("event: clusters\n"));
}

TEST(Console, OneClusterIsServedWithItsHistory) {
  RunningConsole running;
  running.put(migration_object("Registering", {"a", "b&c"}));
  EXPECT_THAT(running.get("/api/clusters?migration=default%2Fmove"), HasSubstr(R"("names":["a","b&c"],"states":"mm")"));
  EXPECT_THAT(running.get("/api/cluster?migration=default/move&name=b%26c"), HasSubstr(R"("state":"migrating")"));
  EXPECT_THAT(running.get("/api/cluster?migration=default/move&name=z"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(running.get("/api/clusters?migration=default/gone"), StartsWith("HTTP/1.1 404"));
}

TEST(Console, TooManyViewersAreRefusedUntilOneLeaves) {
  auto options = on_loopback();
  options.max_viewers = 2;
  const RunningConsole running{std::move(options)};
  auto first = std::make_unique<Watcher>(running.port);
  Watcher second{running.port};
  EXPECT_THAT(running.get("/api/events"), StartsWith("HTTP/1.1 503"));
  first.reset();
  // The server learns of it at once, but on its own thread.
  for (;;) {
    const Watcher third{running.port};
    if (third.head.starts_with("HTTP/1.1 200")) break;
  }
}

TEST(Console, TheConsoleEndsWhileViewersAreConnected) {
  auto running = std::make_unique<RunningConsole>();
  Watcher watcher{running->port};
  watcher.next();
  running.reset();
  watcher.await_close();
}

TEST(Console, ItsUrlIsOneThatABrowserOnThisMachineOpens) {
  async::RealClock clock;
  obs::Metrics metrics;
  async::LoopPool loops{1};
  auto options = on_loopback();
  options.address = ":0";
  Console console{loops.next(), clock, metrics, std::move(options)};
  console.listen();
  EXPECT_EQ(console.url(), "http://127.0.0.1:" + std::to_string(console.port()) + "/");
}

}  // namespace
}  // namespace hubferry::ui
