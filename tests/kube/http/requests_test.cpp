#include <gmock/gmock.h>

#include "kube/http/http_fixture.hpp"

namespace hubferry::test {
namespace {

using testing::HasSubstr;
using testing::Not;

using HttpRequests = HttpTest;

TEST_F(HttpRequests, AGetBringsTheObjectAndKeepsTheConnection) {
  ScriptedServer server{answer_all};
  auto api = connect(server);
  for (int i = 0; i < 5; ++i) {
    const auto object = get(*api);
    ASSERT_TRUE(object) << object.error();
    EXPECT_EQ(object->key(), key_a);
  }
  EXPECT_EQ(server.accepted(), 1);
  EXPECT_THAT(server.requests().at(0), HasSubstr("GET /api/v1/namespaces/ns/configmaps/a HTTP/1.1\r\n"));
  EXPECT_THAT(server.requests().at(0), HasSubstr("User-Agent: hubferry\r\n"));
  EXPECT_EQ(metrics_
                .counter_family("rest_client_requests_total", "HTTP requests by status code, method and host.",
                                {"code", "method", "host"}, 50'000)
                .with({"200", "GET", server.url().substr(7)})
                .value(),
            5);
}

TEST_F(HttpRequests, AnErrorNamesVerbAndPathAndNoToken) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.reply(404, R"({"kind":"Status","reason":"NotFound","message":"configmaps \"a\" not found","code":404})");
  }};
  kube::ClientConfig config;
  config.token = "hush-hush";
  auto api = connect(server, config);
  const auto object = get(*api);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::not_found);
  EXPECT_EQ(object.error().message, "GET /api/v1/namespaces/ns/configmaps/a: configmaps \"a\" not found");
  EXPECT_THAT(object.error().describe(), Not(HasSubstr("hush")));
  EXPECT_THAT(server.requests().at(0), HasSubstr("Authorization: Bearer hush-hush\r\n"));
}

TEST_F(HttpRequests, AServerThatIsNotThereIsUnreachable) {
  std::string url;
  {
    ScriptedServer server{answer_all};
    url = server.url();
  }
  kube::ClientConfig config;
  config.server = url;
  auto api = connect(config);
  for (const auto& result : {get(*api), create(*api)}) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::unreachable) << result.error();
    EXPECT_THAT(result.error().message, HasSubstr("refused"));
  }
}

TEST_F(HttpRequests, ANameThatDoesNotExistIsUnreachable) {
  kube::ClientConfig config;
  config.server = "http://no-such-host.invalid:1";
  auto api = connect(config);
  const auto object = get(*api);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::unreachable) << object.error();
  EXPECT_THAT(object.error().message, HasSubstr("looking up no-such-host.invalid"));
}

TEST_F(HttpRequests, SlowHeadersMeetTheDeadline) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.send("HTTP/1.1 200 OK\r\nX-Slow: ");
    session.wait_until_gone();
  }};
  options_.request_timeout = 300ms;
  auto api = connect(server);
  const auto object = get(*api);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::unreachable);
  EXPECT_THAT(object.error().message, HasSubstr("in time"));
  EXPECT_EQ(create(*api).error().kind, ErrorKind::ambiguous);
  EXPECT_TRUE(server.wait_until_idle()) << "the connection must not be kept";
}

TEST_F(HttpRequests, TheRequestsOwnDeadlineWins) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.wait_until_gone();
  }};
  auto api = connect(server);
  kube::Request request;
  request.resource = kube::resources::config_maps;
  request.key = key_a;
  request.deadline = clock_.now() + 50ms;
  const auto late = run(api->call(request));
  EXPECT_EQ(late.error().kind, ErrorKind::unreachable);
  // By now it has passed: nothing is even tried.
  const int before = server.accepted();
  const auto too_late = run(api->call(request));
  EXPECT_EQ(too_late.error().kind, ErrorKind::unreachable);
  EXPECT_EQ(server.accepted(), before);
}

TEST_F(HttpRequests, TheRateLimitSpreadsRequests) {
  ScriptedServer server{answer_all};
  options_.qps = 50;
  options_.burst = 1;
  auto api = connect(server);
  const auto start = clock_.now();
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(get(*api));
  EXPECT_GE(clock_.now() - start, 95ms);
}

TEST_F(HttpRequests, ThePrefixOfTheServersUrlIsPartOfEveryPath) {
  ScriptedServer server{answer_all};
  kube::ClientConfig config;
  config.server = server.url() + "/k8s/clusters/c-1/";
  auto api = connect(config);
  EXPECT_TRUE(get(*api));
  EXPECT_THAT(server.requests().at(0), HasSubstr("GET /k8s/clusters/c-1/api/v1/namespaces/ns/configmaps/a HTTP"));
}

TEST_F(HttpRequests, AServerUrlThatCannotWorkIsAConfigError) {
  kube::ClientConfig config;
  config.server = "localhost:6443";
  config.source = "/etc/x.kubeconfig";
  try {
    connect(config);
    ADD_FAILURE() << "expected a ConfigError";
  } catch (const kube::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/etc/x.kubeconfig: server: "));
  }
}

TEST_F(HttpRequests, CallsFromAnotherLoopComeBackToIt) {
  ScriptedServer server{answer_all};
  async::LoopPool elsewhere{1};
  kube::ClientConfig config;
  config.server = server.url();
  auto api = kube::make_http_api(config, options_, elsewhere.next(), env_);
  const auto home = std::this_thread::get_id();
  auto body = [&]() -> Awaitable<> {
    const auto object = co_await api->get(kube::resources::config_maps, key_a);
    EXPECT_TRUE(object);
    EXPECT_EQ(std::this_thread::get_id(), home);
  };
  run(body());
  api.reset();
  EXPECT_TRUE(server.wait_until_idle()) << "destroying the client must close its connections";
}

}  // namespace
}  // namespace hubferry::test
