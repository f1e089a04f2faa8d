// Servers that answer what no MySQL server should. The operator connects to an address that it read a moment ago: who
// listens there may be somebody else by now.
#include <gmock/gmock.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fstream>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/sql/sql.hpp"
#include "support/real_loop.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::sql {
namespace {

namespace asio = async::asio;
using asio::ip::tcp;
using async::Awaitable;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

/// The little of the protocol that a client waits for before it sends a statement.
class HostileServer {
 public:
  explicit HostileServer(const async::Executor& executor)
      : acceptor_(executor, tcp::endpoint{asio::ip::address_v4::loopback(), 0}) {}

  /// Sent in place of the acceptance of the password, if not empty.
  std::string instead_of_ok;
  /// The packets in answer to each statement after the first, which sets up the session.
  std::vector<std::string> answer{ok()};
  /// After it, again and again.
  std::string flood;
  /// All that came from the client, after its greeting.
  std::string received;

  [[nodiscard]] Address address() const { return {"127.0.0.1", acceptor_.local_endpoint().port()}; }

  Awaitable<> run() {
    auto [failed, socket] = co_await acceptor_.async_accept(as_result);
    if (failed) co_return;
    co_await send(socket, 0, greeting());
    if (!co_await receive(socket)) co_return;
    received.clear();
    co_await send(socket, 2, instead_of_ok.empty() ? ok() : instead_of_ok);
    for (bool is_first = true; co_await receive(socket); is_first = false) {
      std::uint8_t number = 0;
      for (const auto& packet : is_first ? std::vector{ok()} : answer) co_await send(socket, ++number, packet);
      while (!is_first && !flood.empty() && co_await send(socket, ++number, flood)) {
      }
    }
  }

  static std::string ok() { return std::string("\0\0\0\2\0\0\0", 7); }

 private:
  static std::string greeting() {
    std::string text = std::string{"\x0a"} + "5.5.5-10.11.0-MariaDB" + '\0';
    text += std::string("\1\0\0\0", 4) + "12345678" + '\0';
    // Capabilities: the new protocol, LOCAL INFILE, authentication plugins.
    text += std::string("\xff\xf7", 2) + '\x21' + std::string("\2\0", 2) + std::string("\x7f\0", 2) + '\x15';
    text += std::string(10, '\0') + "123456789012" + '\0' + "mysql_native_password" + '\0';
    return text;
  }
  Awaitable<bool> send(tcp::socket& socket, std::uint8_t number, const std::string& payload) {
    std::string packet;
    for (const int shift : {0, 8, 16}) packet += static_cast<char>(payload.size() >> shift);
    packet += static_cast<char>(number) + payload;
    const auto [failed, size] = co_await asio::async_write(socket, asio::buffer(packet), as_result);
    co_return !failed;
  }
  Awaitable<bool> receive(tcp::socket& socket) {
    std::array<char, 65536> buffer{};
    const auto [ended, size] = co_await socket.async_read_some(asio::buffer(buffer), as_result);
    if (ended) co_return false;
    received.append(buffer.data(), size);
    co_return true;
  }

  tcp::acceptor acceptor_;
};

class HostileServerTest : public testing::Test {
 protected:
  HostileServerTest() { scope.spawn(server.run()); }
  ~HostileServerTest() override {
    scope.stop();
    loop.run(scope.join());
  }
  Result<Rows> connect_and_query() {
    auto attempt = [this]() -> Awaitable<Result<Rows>> {
      Credentials credentials{"root", obs::Secret{"the password"}};
      auto opened = co_await connector->connect(server.address(), credentials, async::later(clock.now(), 30s));
      if (!opened) co_return opened.error();
      co_return co_await (*opened)->query("SELECT 1", async::later(clock.now(), 30s));
    };
    return loop.run(attempt());
  }

  hubferry::test::RealLoop loop;
  async::RealClock clock;
  std::unique_ptr<Connector> connector = make_connector(clock);
  HostileServer server{loop.executor()};
  async::TaskScope scope{loop.executor()};
};

TEST_F(HostileServerTest, GetsAnAnswerFromTheClientAsAnyServerDoes) {
  const auto rows = connect_and_query();
  EXPECT_TRUE(rows) << rows.error().describe();
  EXPECT_THAT(server.received, HasSubstr("SELECT 1"));
}

// LOAD DATA LOCAL, which the server asks for though nobody sent it: the manager's token is such a file.
TEST_F(HostileServerTest, GetsNoFileOfThisProcess) {
  const hubferry::test::TemporaryDirectory directory;
  const auto file = (directory.path() / "token").string();
  std::ofstream{file} << "what nobody else may read";
  server.answer = {'\xfb' + file};
  EXPECT_FALSE(connect_and_query());
  EXPECT_THAT(server.received, Not(HasSubstr("what nobody else may read")));
}

// Another plugin than the usual one sends the password as it is.
TEST_F(HostileServerTest, DoesNotGetThePasswordAsPlainText) {
  for (const std::string plugin : {"mysql_clear_password", "dialog"}) {
    server.instead_of_ok = '\xfe' + plugin + '\0' + "\4Password: " + '\0';
    EXPECT_FALSE(connect_and_query()) << plugin;
    EXPECT_THAT(server.received, Not(HasSubstr("the password"))) << plugin;
    scope.spawn(server.run());
  }
}

// Logs, events and the status are text.
TEST_F(HostileServerTest, HasItsErrorReportedWithoutBytesThatAreNoText) {
  server.answer = {
      "\xff\x50\x04#HY000"
      "no\xff\xc3, \x1b"
      "[2J\n way"};
  const auto rows = connect_and_query();
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().describe(), "error 1104: no??, ?[2J? way");
}

// A result without an end: the memory of the manager has one.
TEST_F(HostileServerTest, DoesNotFillTheMemoryWithAResult) {
  const std::string column{"\3def\0\0\0\1c\0\x0c\x21\0\0\0\1\0\xfd\0\0\0\0\0", 23};
  const std::string end_of_columns{"\xfe\0\0\2\0", 5};
  server.answer = {"\1", column, end_of_columns};
  server.flood = std::string{"\xfd\0\0\x10", 4} + std::string(1 << 20, 'x');
  const auto rows = connect_and_query();
  ASSERT_FALSE(rows);
  EXPECT_THAT(rows.error().describe(), HasSubstr("too large"));
}

}  // namespace
}  // namespace hubferry::sql
