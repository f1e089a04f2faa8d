// The HTTP server with more clients than it has places for, and with many at once.
#include <gmock/gmock.h>

#include <thread>

#include "hubferry/async/types.hpp"
#include "server_on_thread.hpp"
#include "support/tcp_client.hpp"

namespace hubferry::obs {
namespace {

using namespace std::chrono_literals;
using test::TcpClient;
using testing::EndsWith;
using testing::StartsWith;

HttpServer::Options with_four_places() {
  auto options = ServerOnThread::on_loopback();
  options.max_connections = 4;
  options.stalled_after = 1h;
  options.silent_after = 1h;
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

// A scanner opens connections and says nothing, faster than they become stalled.
TEST(HttpServer, WhenFullOfSilentClientsTheOldestMakesRoom) {
  auto options = with_four_places();
  options.silent_after = 0s;
  ServerOnThread server{options, echo};
  std::vector<TcpClient> silent;
  for (int i = 0; i < 140; ++i) {
    silent.emplace_back(server.port());
    if (i % 10 != 0) continue;
    TcpClient probe{server.port()};
    EXPECT_THAT(probe.get("/page", "Connection: close\r\n"), EndsWith("hello"));
  }
  silent[0].await_close();
}

// A handful of clients that hold every place must not make the kubelet believe that the process is dead.
TEST(HttpServer, WhenFullOfStalledClientsTheOldestMakesRoom) {
  auto options = with_four_places();
  options.stalled_after = 0s;
  ServerOnThread server{options, echo};
  std::vector<TcpClient> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(server.port()).send("GET /page HT");
  EXPECT_TRUE(server.await_connections([](std::size_t count) { return count >= 4; }));
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
  EXPECT_TRUE(server.await_connections([](std::size_t count) { return count <= 4; }));
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
  EXPECT_TRUE(server.await_connections([](std::size_t count) { return count >= 4; }));
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

}  // namespace
}  // namespace hubferry::obs
