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

// More than the kernel's buffers on both sides hold.
constexpr std::size_t large = 24UL * 1024 * 1024;

HttpResponse echo(const HttpRequest& request) {
  if (request.path == "/throw") throw std::runtime_error("the page is broken");
  if (request.path == "/large") return {.body = std::string(large, 'x')};
  if (request.path == "/page") return {.body = "hello"};
  if (request.path == "/long") return {.body = std::string(5000, 'x')};
  return HttpResponse::not_found("try /page");
}

constexpr auto get_page = "GET /page HTTP/1.1\r\nHost: test\r\n\r\n";

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
        "Content-Length: 5\r\nExpect: 100-continue\r\n"}) {
    TcpClient client{server.port()};
    client.send("GET /page HTTP/1.1\r\nHost: test\r\n" + header + "\r\nhello");
    EXPECT_THAT(client.receive_all(), StartsWith("HTTP/1.1 413")) << header;
  }
}

// Whoever sends much must get to see the refusal instead of a reset connection.
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

TEST(HttpServer, AnEndlessHeaderIsCutOff) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  TcpClient client{server.port()};
  client.send("GET /page HTTP/1.1\r\n");
  while (client.send("X-Field: value\r\n")) {
  }
}

TEST(HttpServer, ALineThatNeverEndsIsCutOff) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  TcpClient client{server.port()};
  while (client.send(std::string(1000, 'x'))) {
  }
}

HttpServer::Options impatient() {
  auto options = ServerOnThread::on_loopback();
  options.header_time = 1s;
  options.write_time = 1s;
  options.idle_time = 1s;
  return options;
}

TEST(HttpServer, ASilentClientIsCutOff) {
  ServerOnThread server{impatient(), echo};
  TcpClient silent{server.port()};
  EXPECT_EQ(silent.receive_all(), "");
}

TEST(HttpServer, HalfARequestIsCutOff) {
  ServerOnThread server{impatient(), echo};
  TcpClient client{server.port()};
  client.send("GET /page HTTP/1.1\r\nHo");
  EXPECT_EQ(client.receive_all(), "");
}

TEST(HttpServer, AnIdleConnectionIsClosed) {
  ServerOnThread server{impatient(), echo};
  TcpClient client{server.port()};
  EXPECT_THAT(client.get("/page"), EndsWith("hello"));
  EXPECT_EQ(client.receive_all(), "");
}

// The limit is on the whole header: every byte would otherwise buy the next second.
TEST(HttpServer, AClientThatDripsBytesIsCutOffAndDisturbsNobody) {
  auto options = impatient();
  options.header_time = 3s;  // for the well-behaved clients, on a machine that is busy otherwise
  ServerOnThread server{options, echo};
  TcpClient dripping{server.port()};
  const std::string request = "GET /page HTTP/1.1\r\nX: " + std::string(100'000, 'x');
  std::size_t sent = 0;
  while (!dripping.closed_by_now()) {
    dripping.send(request.substr(sent++, 1));
    TcpClient other{server.port()};
    EXPECT_THAT(other.get("/page"), EndsWith("hello"));
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_LT(sent, request.size());
}

TEST(HttpServer, AClientThatDoesNotReadItsAnswerIsCutOff) {
  ServerOnThread server{impatient(), echo};
  TcpClient client{server.port()};
  client.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
  while (server.connections() == 0) std::this_thread::sleep_for(1ms);
  while (server.connections() > 0) std::this_thread::sleep_for(20ms);
  EXPECT_LT(client.receive_all().size(), large) << "it was closed in the middle";
}

TEST(HttpServer, AClientThatLeavesEarlyDoesNoHarm) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  for (const auto* part : {"", "G", "GET /page HTTP/1.1\r\n", "GET /large HTTP/1.1\r\n\r\n"})
    for (int i = 0; i < 20; ++i) TcpClient{server.port()}.send(part);
  TcpClient client{server.port()};
  EXPECT_THAT(client.get("/page"), EndsWith("hello"));
}

HttpServer::Options with_four_places() {
  auto options = ServerOnThread::on_loopback();
  options.max_connections = 4;
  options.stalled_after = 1h;
  return options;
}

TEST(HttpServer, WhenFullTheLongestIdleConnectionMakesRoom) {
  ServerOnThread server{with_four_places(), echo};
  std::vector<TcpClient> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back(server.port());
    EXPECT_THAT(clients.back().get("/page"), EndsWith("hello"));
  }
  TcpClient fifth{server.port()};
  EXPECT_THAT(fifth.get("/page"), EndsWith("hello"));
  clients[0].await_close();
  for (int i = 1; i < 4; ++i) EXPECT_THAT(clients[static_cast<std::size_t>(i)].get("/page"), EndsWith("hello"));
}

TEST(HttpServer, WhenFullOfBusyClientsANewOneIsRefused) {
  ServerOnThread server{with_four_places(), echo};
  std::vector<TcpClient> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(server.port()).send("GET /page HT");
  TcpClient fifth{server.port()};
  EXPECT_THAT(fifth.receive_all(), StartsWith("HTTP/1.1 503"));
  for (auto& client : clients) {
    client.send("TP/1.1\r\nHost: test\r\n\r\n");
    EXPECT_THAT(client.receive_response(), EndsWith("hello"));
  }
}

// A handful of clients that hold every place must not make the kubelet believe that the process is dead.
TEST(HttpServer, WhenFullOfStalledClientsTheOldestMakesRoom) {
  auto options = with_four_places();
  options.stalled_after = 0s;
  ServerOnThread server{options, echo};
  std::vector<TcpClient> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(server.port()).send("GET /page HT");
  while (server.connections() < 4) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 4; ++i) {
    TcpClient probe{server.port()};
    EXPECT_THAT(probe.get("/page", "Connection: close\r\n"), EndsWith("hello"));
  }
  clients[0].await_close();
}

TEST(HttpServer, SurvivesAFloodOfConnections) {
  auto options = with_four_places();
  options.stalled_after = 0s;
  ServerOnThread server{options, echo};
  std::vector<TcpClient> clients;
  for (int i = 0; i < 500; ++i) clients.emplace_back(server.port()).send("GET /page HT");
  TcpClient probe{server.port()};
  EXPECT_THAT(probe.get("/page"), EndsWith("hello"));
  while (server.connections() > 4) std::this_thread::sleep_for(1ms);
}

TEST(HttpServer, CancellationEndsEveryConnectionWhateverItDoes) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  TcpClient silent{server.port()};
  TcpClient half{server.port()};
  half.send("GET /page HT");
  TcpClient idle{server.port()};
  EXPECT_THAT(idle.get("/page"), EndsWith("hello"));
  TcpClient slow_reader{server.port()};
  slow_reader.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
  while (server.connections() < 4) std::this_thread::sleep_for(1ms);
  const auto error = server.stop();
  EXPECT_TRUE(async::is_cancellation(error)) << async::describe(error);
  silent.await_close();
  half.await_close();
  idle.await_close();
  slow_reader.await_close();
  EXPECT_THROW(TcpClient{server.port()}, std::runtime_error) << "and nobody listens any more";
}

// The accept is posted, the connection spawned, and its first turn comes after the cancellation.
TEST(HttpServer, CancellationWhileClientsComeInLeavesNothing) {
  for (int round = 0; round < 20; ++round) {
    ServerOnThread server{ServerOnThread::on_loopback(), echo};
    std::vector<TcpClient> clients;
    for (int i = 0; i < 10; ++i) clients.emplace_back(server.port()).send(get_page);
    server.stop();
    EXPECT_EQ(server.connections(), 0U);
    for (auto& client : clients) client.await_close();
  }
}

TEST(HttpServer, ManyClientsAtOnceAreAllAnswered) {
  ServerOnThread server{ServerOnThread::on_loopback(), echo};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      TcpClient client{server.port()};
      for (int request = 0; request < 200; ++request) EXPECT_THAT(client.get("/page"), EndsWith("hello"));
    });
  for (auto& thread : threads) thread.join();
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
    ended.get_future().get();
  }
}

}  // namespace
}  // namespace hubferry::obs
