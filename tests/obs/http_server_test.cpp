#include "hubferry/obs/http_server.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "hubferry/async/types.hpp"
#include "hubferry/obs/log_sink.hpp"
#include "server_on_thread.hpp"
#include "support/tcp_client.hpp"

namespace hubferry::obs {
namespace {

using namespace std::chrono_literals;
using test::TcpClient;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(HttpServer, AnswersAGet) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  TcpClient client{server.port()};
  EXPECT_THAT(client.get("/page"), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\nContent-Length: 5\r\n"),
                                         HasSubstr("\r\nDate: "), EndsWith("\r\n\r\nhello")));
}

TEST(HttpServer, KeepsAConnectionUntilTheClientWantsItClosed) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  TcpClient client{server.port()};
  for (int i = 0; i < 100; ++i) EXPECT_THAT(client.get("/page"), EndsWith("hello"));
  EXPECT_THAT(client.get("/page", "Connection: close\r\n"), HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_EQ(client.receive_all(), "");
}

TEST(HttpServer, SpeaksHttp10) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  TcpClient client{server.port()};
  client.send("GET /page HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.receive_all(), AllOf(StartsWith("HTTP/1.0 200"), EndsWith("hello")));
}

TEST(HttpServer, AHeadHasTheHeaderOfTheGet) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  TcpClient client{server.port()};
  client.send("HEAD /page HTTP/1.1\r\nHost: test\r\n\r\n");
  EXPECT_THAT(client.receive_response(true),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Content-Length: 5\r\n"), EndsWith("\r\n\r\n")));
  EXPECT_THAT(client.get("/page"), EndsWith("hello")) << "and no body is in the way of the next answer";
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  TcpClient client{server.port()};
  std::string requests;
  for (int i = 0; i < 500; ++i) {
    requests += get_page;
    requests += "GET /nowhere HTTP/1.1\r\nHost: test\r\n\r\n";
  }
  std::thread sender{[&] { client.send(requests); }};
  for (int i = 0; i < 500; ++i) {
    ASSERT_THAT(client.receive_response(), EndsWith("hello"));
    ASSERT_THAT(client.receive_response(), StartsWith("HTTP/1.1 404"));
  }
  sender.join();
}

TEST(HttpServer, CompressesOnlyWhatIsLargeAndForThoseWhoAsk) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  TcpClient client{server.port()};
  EXPECT_THAT(client.get("/long", "Accept-Encoding: gzip\r\n"), HasSubstr("\r\nContent-Encoding: gzip\r\n"));
  EXPECT_THAT(client.get("/page", "Accept-Encoding: gzip\r\n"), Not(HasSubstr("Content-Encoding")));
  EXPECT_THAT(client.get("/long"), Not(HasSubstr("Content-Encoding")));
}

TEST(HttpServer, OtherMethodsAreRefused) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  TcpClient client{server.port()};
  for (const auto* method : {"POST", "DELETE", "PUT", "OPTIONS", "TRACE", "PATCH", "BREW"}) {
    client.send(std::string(method) + " /page HTTP/1.1\r\nHost: test\r\n\r\n");
    EXPECT_THAT(client.receive_response(), AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("\r\nAllow: GET, HEAD\r\n")));
  }
}

TEST(HttpServer, BodiesAreRefused) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  for (const std::string header :
       {"Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 99999999999\r\n",
        "Content-Length: 5\r\nExpect: 100-continue\r\n",
        // Codings that say that there is a body, but not where it ends: what follows must not pass for a request.
        "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: chunked, gzip\r\n", "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding:\r\n", "Transfer-Encoding: chunked\r\nConnection: upgrade\r\nUpgrade: h2c\r\n"}) {
    TcpClient client{server.port()};
    client.send("GET /page HTTP/1.1\r\nHost: test\r\n" + header + "\r\n" + get_page);
    client.finish_sending();
    EXPECT_THAT(client.receive_all(), AllOf(StartsWith("HTTP/1.1 413"), Not(HasSubstr(" 200 ")))) << header;
  }
}

// A client that sends much must get to see the refusal instead of a reset connection.
TEST(HttpServer, AClientThatIsStillSendingItsBodySeesTheRefusal) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  TcpClient client{server.port()};
  client.send("POST /page HTTP/1.1\r\nHost: test\r\nContent-Length: 30000\r\n\r\n");
  client.send(std::string(30'000, 'x'));
  client.finish_sending();
  EXPECT_THAT(client.receive_all(), StartsWith("HTTP/1.1 413"));
}

TEST(HttpServer, AHandlerThatThrowsIsA500AndALogLine) {
  LogCapture capture;
  auto options = ServerOnThread::on_loopback();
  options.log = capture.logger();
  ServerOnThread server{options, echo};
  TcpClient client{server.port()};
  EXPECT_THAT(client.get("/throw"), AllOf(StartsWith("HTTP/1.1 500"), Not(HasSubstr("broken"))));
  EXPECT_TRUE(capture.contains("the page is broken"));
  EXPECT_THAT(client.get("/page"), EndsWith("hello"));
}

TEST(HttpServer, GarbageIsRefused) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  const std::string garbage[] = {
      "\r\n\r\n\r\n",
      "hello there\r\n\r\n",
      "GET\r\n\r\n",
      "GET /page\r\n\r\n",
      "GET  /page HTTP/1.1\r\n\r\n",
      "GET /page HTTP/1.1\r\nno colon\r\n\r\n",
      "GET /page HTTP/1.1\r\n: no name\r\n\r\n",
      "GET /page HTTP/1.1\r\nContent-Length: x\r\n\r\n",
      "GET /page HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "GET /page HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "GET /page HTTP/1.1\r\n\r\n",
      "GET /page HTTP/1.1\r\nHost: test\r\nHost: other\r\n\r\n",
      "GET /page HTTP/3.0\r\n\r\n",
      "GET page HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n",
      "GET /%zz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n",
      "GET /page HTTP/1.1\r\nX: " + std::string("\x01\x02\0\x7f", 4) + "\r\n\r\n",
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(200, '\xaa'),  // TLS
      std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      std::string(3000, '\0'),
  };
  for (const auto& text : garbage) {
    TcpClient client{server.port()};
    client.send(text);
    client.finish_sending();
    const auto answer = client.receive_all();
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 505") ||
                answer.starts_with("HTTP/1.0 4"))
        << testing::PrintToString(text) << " -> " << answer;
  }
  TcpClient client{server.port()};
  EXPECT_THAT(client.get("/page"), EndsWith("hello"));
}

TEST(HttpServer, AHugeHeaderIsRefused) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  for (const std::string& request : {"GET /page HTTP/1.1\r\nX: " + std::string(40'000, 'x') + "\r\n\r\n",
                                     "GET /" + std::string(40'000, 'x') + " HTTP/1.1\r\n\r\n"}) {
    TcpClient client{server.port()};
    client.send(request);
    EXPECT_THAT(client.receive_all(), StartsWith("HTTP/1.1 431"));
  }
}

/// Sends `part` again and again; false when the server takes more of it than any should.
bool is_cut_off(TcpClient& client, const std::string& part) {
  constexpr std::size_t far_too_much = 256UL * 1024 * 1024;
  for (std::size_t sent = 0; sent < far_too_much; sent += part.size())
    if (!client.send(part)) return true;
  return false;
}

TEST(HttpServer, AnEndlessHeaderIsCutOff) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  TcpClient client{server.port()};
  client.send("GET /page HTTP/1.1\r\n");
  EXPECT_TRUE(is_cut_off(client, "X-Field: value\r\n"));
}

TEST(HttpServer, ALineThatNeverEndsIsCutOff) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  TcpClient client{server.port()};
  EXPECT_TRUE(is_cut_off(client, std::string(1000, 'x')));
}

HttpServer::Options short_timeouts() {
  auto options = ServerOnThread::on_loopback();
  options.header_time = 1s;
  options.write_time = 1s;
  options.idle_time = 1s;
  return options;
}

TEST(HttpServer, ASilentClientIsCutOff) {
  ServerOnThread server{short_timeouts(), echo};
  TcpClient silent{server.port()};
  EXPECT_EQ(silent.receive_all(), "");
}

TEST(HttpServer, HalfARequestIsCutOff) {
  ServerOnThread server{short_timeouts(), echo};
  TcpClient client{server.port()};
  client.send("GET /page HTTP/1.1\r\nHo");
  EXPECT_EQ(client.receive_all(), "");
}

TEST(HttpServer, AnIdleConnectionIsClosed) {
  ServerOnThread server{short_timeouts(), echo};
  TcpClient client{server.port()};
  EXPECT_THAT(client.get("/page"), EndsWith("hello"));
  EXPECT_EQ(client.receive_all(), "");
}

// The limit is on the whole header: every byte would otherwise buy the next second.
TEST(HttpServer, AClientThatDripsBytesIsCutOffAndDisturbsNobody) {
  auto options = short_timeouts();
  options.header_time = 3s;  // for the well-behaved clients, on a machine that is busy otherwise
  ServerOnThread server{options, echo};
  TcpClient dripping{server.port()};
  const std::string request = "GET /page HTTP/1.1\r\nX: " + std::string(600, 'x');
  std::size_t sent = 0;
  while (!dripping.closed_by_now() && sent < request.size()) {
    dripping.send(request.substr(sent++, 1));
    TcpClient other{server.port()};
    EXPECT_THAT(other.get("/page"), EndsWith("hello"));
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_LT(sent, request.size());
}

/// Two parts, with a silence between them.
class SlowStream final : public HttpBodyStream {
 public:
  SlowStream(async::Clock& clock, async::Duration silence) : clock_(clock), silence_(silence) {}
  async::Awaitable<std::optional<std::string>> next() override {
    if (++part_ > 1) co_return std::nullopt;
    co_await clock_.sleep_for(silence_);
    co_return "second";
  }

 private:
  async::Clock& clock_;
  async::Duration silence_;
  int part_ = 0;
};

TEST(HttpServer, AStreamMayBeSilentForLongerThanAWriteMayTake) {
  auto options = short_timeouts();
  options.write_time = 100ms;
  async::RealClock clock;
  const HttpExchangeHandler slow = [&](const HttpExchange&) -> async::Awaitable<HttpReply> {
    HttpReply reply{.response = {.body = "first "}, .headers = {}, .stream = nullptr};
    reply.stream = std::make_unique<SlowStream>(clock, 400ms);
    co_return reply;
  };
  ServerOnThread server{options, slow};
  TcpClient client{server.port()};
  client.send(get_page);
  EXPECT_THAT(client.receive_all(), EndsWith("first second"));
}

TEST(HttpServer, AClientThatDoesNotReadItsAnswerIsCutOff) {
  ServerOnThread server{short_timeouts(), echo};
  TcpClient client{server.port()};
  client.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
  EXPECT_TRUE(server.await_connections([](std::size_t count) { return count > 0; }));
  EXPECT_TRUE(server.await_connections([](std::size_t count) { return count == 0; }));
  EXPECT_LT(client.receive_all().size(), large) << "it was closed in the middle";
}

TEST(HttpServer, AClientThatLeavesEarlyDoesNoHarm) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  for (const auto* part : {"", "G", "GET /page HTTP/1.1\r\n", "GET /large HTTP/1.1\r\nHost: test\r\n\r\n"})
    for (int i = 0; i < 20; ++i) TcpClient{server.port()}.send(part);
  TcpClient client{server.port()};
  EXPECT_THAT(client.get("/page"), EndsWith("hello"));
}

std::string listen_failure(const std::string& address) {
  async::RealClock clock;
  async::LoopPool loops{1};
  auto options = ServerOnThread::on_loopback();
  options.address = address;
  HttpServer server{loops.next(), clock, options, echo};
  try {
    server.listen();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no failure";
}

TEST(HttpServer, AnAddressThatCannotBeOpenedNamesItself) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  const auto taken = "127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(listen_failure(taken), "cannot listen on " + taken + ": Address already in use");
  EXPECT_THAT(listen_failure("192.0.2.1:0"), StartsWith("cannot listen on 192.0.2.1:0: "));
  EXPECT_THAT(listen_failure("no-such-host.invalid:80"), StartsWith("cannot listen on no-such-host.invalid:80: "));
  EXPECT_THROW(listen_failure("8080"), std::invalid_argument);
}

TEST(HttpServer, AllInterfacesIncludeTheIpv4Loopback) {
  auto options = ServerOnThread::on_loopback();
  options.address = ":0";
  ServerOnThread server{options, echo};
  TcpClient client{server.port()};
  EXPECT_THAT(client.get("/page"), EndsWith("hello"));
}

TEST(HttpServer, SwitchedOffItDoesNothing) {
  async::RealClock clock;
  async::LoopPool loops{1};
  const auto loop = loops.next();
  for (const auto* off : {"", "0"}) {
    HttpServer::Options options;
    options.address = off;
    HttpServer server{loop, clock, options, echo};
    EXPECT_FALSE(server.enabled());
    server.listen();
    EXPECT_EQ(server.port(), 0);
    std::promise<void> ended;
    async::asio::co_spawn(loop, server.run(), [&](std::exception_ptr) { ended.set_value(); });
    soon(ended.get_future());
  }
}

}  // namespace
}  // namespace hubferry::obs
