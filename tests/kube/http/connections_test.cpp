#include <netinet/tcp.h>
#include <sys/socket.h>

#include <gmock/gmock.h>

#include "hubferry/async/vanished_peer.hpp"
#include "kube/http/http_fixture.hpp"

namespace hubferry::test {
namespace {

namespace asio = boost::asio;

using testing::HasSubstr;

class HttpConnections : public HttpTest {
 protected:
  Awaitable<> get_one(kube::Api& api, int& good) {
    const auto object = co_await api.get(kube::resources::config_maps, key_a);
    if (object) ++good;
  }

  Awaitable<> get_many(kube::Api& api, int count, int& good) {
    async::TaskScope scope{co_await async::asio::this_coro::executor};
    for (int i = 0; i < count; ++i) scope.spawn(get_one(api, good));
    co_await scope.join();
  }

  Awaitable<> call_and_ignore(kube::Api& api) { (void)co_await api.get(kube::resources::config_maps, key_a); }

  Awaitable<> watch_and_ignore(kube::Api& api) {
    auto stream = co_await api.watch(kube::resources::config_maps, {}, kube::object_decoder());
    if (stream) (void)co_await (*stream)->next();
  }
};

TEST_F(HttpConnections, TwoHundredCallsAtOnceShareABoundedPool) {
  ScriptedServer server{answer_all};
  options_.max_connections = 8;
  auto api = connect(server);
  int good = 0;
  run(get_many(*api, 200, good));
  EXPECT_EQ(good, 200);
  EXPECT_LE(server.most_open(), 8);
  EXPECT_EQ(server.accepted(), server.most_open()) << "connections are kept, not made anew";
}

TEST_F(HttpConnections, CallsBeyondThePoolWaitNoLongerThanTheirDeadline) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.wait_until_gone();
  }};
  options_.max_connections = 2;
  options_.request_timeout = 100ms;
  auto api = connect(server);
  int good = 0;
  run(get_many(*api, 20, good));
  EXPECT_EQ(good, 0);
  EXPECT_LE(server.most_open(), 2);
}

TEST_F(HttpConnections, IdleConnectionsAreClosedAfterAWhile) {
  ScriptedServer server{answer_all};
  options_.idle_connection = 20ms;
  auto api = connect(server);
  int good = 0;
  run(get_many(*api, 10, good));
  EXPECT_EQ(good, 10);
  // The loop must run on meanwhile: it is the client that closes.
  for (int waits = 0; server.open() > 0 && waits < 4000; ++waits) run(clock_.sleep_for(5ms));
  EXPECT_EQ(server.open(), 0);
  EXPECT_TRUE(get(*api));
}

TEST_F(HttpConnections, NothingIsLeakedByFaultsOfAllKinds) {
  options_.request_timeout = 1s;
  const auto files = open_files();
  for (int round = 0; round < 3; ++round) {
    ScriptedServer server{[](Session& session) {
      session.read_request();
      switch (session.index() % 6) {
        case 0:
          session.reset();
          break;
        case 1:
          session.send("HTTP/1.1 200 OK\r\nContent-Le");
          break;
        case 2:
          session.send("garbage\r\n\r\n");
          break;
        case 3:
          session.reply(503, "{}");
          break;
        default:
          session.reply(200, object_a);
      }
    }};
    auto api = connect(server);
    int good = 0;
    run(get_many(*api, 60, good));
    EXPECT_GT(good, 0);
    api.reset();
    run(clock_.sleep_for(1ms));
    EXPECT_TRUE(server.wait_until_idle());
  }
  EXPECT_LE(open_files(), files + 3) << "the loop's own epoll, timer and event descriptors are all that may remain";
}

// A task that waits must not keep the loop turning.
TEST_F(HttpConnections, WaitingForAnAnswerIsNotABusyLoop) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.send("HTTP/1.1 200 OK\r\n");
    session.wait_until_gone();
  }};
  options_.request_timeout = 300ms;
  auto api = connect(server);
  const auto before = loop_.turns();
  EXPECT_FALSE(get(*api));
  EXPECT_LT(loop_.turns() - before, 100U);
}

TEST_F(HttpConnections, ACallIsCancellableAtEachStage) {
  const Authority authority{"test authority"};
  const auto identity = authority.issue({"IP:127.0.0.1"});
  kube::ClientConfig config;
  config.ca_pem = authority.certificate_pem();
  const ScriptedServer::Script stages[] = {
      [](Session& session) { session.wait_until_gone(); },  // in the handshake
      [](Session& session) {
        session.read_request();
        session.wait_until_gone();  // before the answer
      },
      [](Session& session) {
        session.read_request();
        session.send("HTTP/1.1 200 OK\r\nContent-");
        session.wait_until_gone();
      },
      [](Session& session) {
        session.read_request();
        session.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{");
        session.wait_until_gone();
      },
  };
  for (const auto& stage : stages) {
    std::atomic<bool> reached = false;
    ScriptedServer server{identity, [&](Session& session) {
                            reached = session.index() >= 0;
                            stage(session);
                          }};
    auto api = connect(server, config);
    const auto start = clock_.now();
    // A moment more than the connection takes, so that the stage is reached (missing it tests another one).
    expect_cancellable(call_and_ignore(*api), [&] { return reached && clock_.now() - start > 30ms; });
    EXPECT_TRUE(server.wait_until_idle()) << "a cancelled call must close its connection";
  }
}

TEST_F(HttpConnections, ACallIsCancellableWhileItConnects) {
  kube::ClientConfig config;
  config.server = "http://192.0.2.1:6443";  // a documentation address: packets go nowhere, or are refused at once
  options_.max_retries = 100;
  auto api = connect(config);
  const auto start = clock_.now();
  expect_cancellable(call_and_ignore(*api), [&] { return clock_.now() - start > 30ms; });
}

TEST_F(HttpConnections, ACallIsCancellableWhileItWaitsForItsTurn) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.wait_until_gone();
  }};
  options_.max_connections = 1;
  auto api = connect(server);
  auto both = [&]() -> Awaitable<> {
    int good = 0;
    co_await get_many(*api, 2, good);
  };
  expect_cancellable(both(), [&] { return !server.requests().empty(); });
  EXPECT_TRUE(server.wait_until_idle());
}

TEST_F(HttpConnections, ACallIsCancellableBetweenTwoAttempts) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.reply(429, "{}", "Content-Type: application/json\r\nRetry-After: 4\r\n");
    session.wait_until_gone();
  }};
  auto api = connect(server);
  const auto start = clock_.now();
  expect_cancellable(call_and_ignore(*api), [&] { return !server.requests().empty() && clock_.now() - start > 30ms; });
}

TEST_F(HttpConnections, AWatchIsCancellableBeforeAndAfterItsHead) {
  for (const bool with_head : {false, true}) {
    ScriptedServer server{[with_head](Session& session) {
      session.read_request();
      if (with_head) session.start_chunked();
      session.wait_until_gone();
    }};
    auto api = connect(server);
    const auto start = clock_.now();
    expect_cancellable(watch_and_ignore(*api),
                       [&] { return !server.requests().empty() && clock_.now() - start > 30ms; });
    run(clock_.sleep_for(1ms));
    EXPECT_TRUE(server.wait_until_idle());
  }
}

// A watch on a machine that lost its power would wait for an hour.
TEST_F(HttpConnections, TheKernelProbesForAPeerThatHasVanished) {
  asio::io_context loop;
  asio::ip::tcp::socket socket{loop, asio::ip::tcp::v4()};
  async::notice_vanished_peer(socket);
  const auto option = [&](int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(getsockopt(socket.native_handle(), level, name, &value, &size), 0);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  const int until_noticed =
      option(IPPROTO_TCP, TCP_KEEPIDLE) + option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT);
  EXPECT_EQ(until_noticed, 60);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 60'000);
}

TEST_F(HttpConnections, ACancelledCallFromAnotherLoopUnwindsThereToo) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.wait_until_gone();
  }};
  async::LoopPool elsewhere{1};
  kube::ClientConfig config;
  config.server = server.url();
  auto api = kube::make_http_api(config, options_, elsewhere.next(), env_);
  expect_cancellable(call_and_ignore(*api), [&] { return !server.requests().empty(); });
  EXPECT_TRUE(server.wait_until_idle());
}

}  // namespace
}  // namespace hubferry::test
