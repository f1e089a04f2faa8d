#include <gmock/gmock.h>
#include <zlib.h>

#include "kube/http/http_fixture.hpp"

namespace hubferry::test {
namespace {

using kube::Result;
using testing::HasSubstr;
using testing::Not;

using HttpRequests = HttpTest;

void answer_all(Session& session) {
  while (true) {
    session.read_request();
    session.reply(200, object_a);
  }
}

std::string gzip(const std::string& plain) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(compressBound(plain.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

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

// Connection 0 is reset at one stage; whether connection 1 may be tried depends on verb and stage.
struct Fault {
  const char* name;
  void (*break_down)(Session&);
  bool write_is_ambiguous;
};

class HttpFaults : public HttpTest, public testing::WithParamInterface<Fault> {
 protected:
  ScriptedServer server_{[](Session& session) {
    if (session.index() == 0) GetParam().break_down(session);
    answer_all(session);
  }};
};

const Fault faults[] = {
    {"AtAccept", [](Session& session) { session.reset(); }, true},
    {"BeforeTheAnswer",
     [](Session& session) {
       session.read_request();
       session.reset();
     },
     true},
    {"ClosedBeforeTheAnswer",
     [](Session& session) {
       session.read_request();
       throw Session::Gone{};
     },
     true},
    {"InTheHeaders",
     [](Session& session) {
       session.read_request();
       session.send("HTTP/1.1 200 OK\r\nContent-Le");
       session.reset();
     },
     true},
    {"ClosedInTheHeaders",
     [](Session& session) {
       session.read_request();
       session.send("HTTP/1.1 200 OK\r\nContent-Le");
       throw Session::Gone{};
     },
     true},
    {"InTheBody",
     [](Session& session) {
       session.read_request();
       session.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"kin");
       session.reset();
     },
     true},
    {"ClosedInAChunk",
     [](Session& session) {
       session.read_request();
       session.start_chunked();
       session.send("20\r\n{\"kind");
       throw Session::Gone{};
     },
     true},
};

INSTANTIATE_TEST_SUITE_P(Reset, HttpFaults, testing::ValuesIn(faults),
                         [](const auto& info) { return std::string{info.param.name}; });

TEST_P(HttpFaults, AReadRecovers) {
  auto api = connect(server_);
  const auto object = get(*api);
  EXPECT_TRUE(object) << object.error();
  EXPECT_EQ(server_.accepted(), 2);
}

// A reset at accept may come before or after the request has left: then either is right, but never a second write
// after one that may have happened.
TEST_P(HttpFaults, AWriteIsReportedAsAmbiguousAndNotRepeated) {
  auto api = connect(server_);
  const auto object = create(*api);
  if (std::string_view{GetParam().name} == "AtAccept") {
    EXPECT_TRUE(object || object.error().kind == ErrorKind::ambiguous) << object.error();
    return;
  }
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::ambiguous) << object.error();
  EXPECT_THAT(object.error().message, HasSubstr("may or may not have taken effect"));
  EXPECT_EQ(server_.accepted(), 1);
}

TEST_F(HttpRequests, AConnectionThatTheServerClosedBetweenRequestsIsReplacedEvenForWrites) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.reply(200, object_a);
  }};
  auto api = connect(server);
  for (int i = 0; i < 4; ++i) {
    const auto object = create(*api);
    EXPECT_TRUE(object) << object.error();
    ASSERT_TRUE(server.wait_until_idle());
  }
  EXPECT_EQ(server.accepted(), 4);
}

// The race that cannot be avoided: the server gives up the connection while the request is on its way.
TEST_F(HttpRequests, AKeptConnectionThatBreaksUnderARequestIsReplacedForReadsOnly) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.reply(200, object_a);
    session.read_request();
    session.reset();
  }};
  options_.max_retries = 0;
  auto api = connect(server);
  EXPECT_TRUE(get(*api));
  EXPECT_TRUE(get(*api));
  EXPECT_EQ(server.accepted(), 2);
  const auto object = create(*api);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::ambiguous);
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(HttpRequests, AConnectionOnWhichTheServerSpeaksUnaskedIsNotUsedAgain) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.reply(
        200, object_a + "HTTP/1.1 200 OK\r\n\r\n",
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(object_a.size()) + "\r\nX-Was-");
    session.wait_until_gone();
  }};
  auto api = connect(server);
  EXPECT_TRUE(get(*api));
  EXPECT_TRUE(get(*api));
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(HttpRequests, ConnectionCloseInTheAnswerIsObeyed) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.reply(200, object_a, "Content-Type: application/json\r\nConnection: close\r\n");
    session.wait_until_gone();
  }};
  auto api = connect(server);
  EXPECT_TRUE(get(*api));
  EXPECT_TRUE(get(*api));
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(HttpRequests, AnAnswerInChunksOrUntilTheEndOfTheConnectionIsRead) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    if (session.index() == 0) {
      session.start_chunked();
      for (const char c : object_a) session.chunk({&c, 1});
      session.chunk("");
    } else {
      session.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + object_a);
    }
  }};
  auto api = connect(server);
  EXPECT_TRUE(get(*api));
  ASSERT_TRUE(server.wait_until_idle());
  EXPECT_TRUE(get(*api));
}

TEST_F(HttpRequests, GarbageInsteadOfJsonIsABadResponseAndForAWriteAmbiguous) {
  ScriptedServer server{[](Session& session) {
    while (true) {
      session.read_request();
      session.reply(200, "{\"kind\": ");
    }
  }};
  auto api = connect(server);
  EXPECT_EQ(get(*api).error().kind, ErrorKind::bad_response);
  EXPECT_EQ(create(*api).error().kind, ErrorKind::ambiguous);
  const auto page = run(api->list(kube::resources::config_maps, {}, kube::object_decoder()));
  EXPECT_EQ(page.error().kind, ErrorKind::bad_response);
}

TEST_F(HttpRequests, AWrongContentTypeIsNamed) {
  ScriptedServer server{[](Session& session) {
    while (true) {
      session.read_request();
      session.reply(200, "<html>please log in</html>", "Content-Type: text/html\r\n");
    }
  }};
  auto api = connect(server);
  EXPECT_EQ(get(*api).error().kind, ErrorKind::bad_response);
  const auto page = run(api->list(kube::resources::config_maps, {}, kube::object_decoder()));
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().kind, ErrorKind::bad_response);
  EXPECT_THAT(page.error().message, HasSubstr("text/html"));
  const auto text = run(api->get_path("/readyz"));
  ASSERT_TRUE(text);
  EXPECT_EQ(text->as_string(), "<html>please log in</html>");
}

TEST_F(HttpRequests, WhatIsNoHttpIsABadResponse) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.send("SSH-2.0-OpenSSH_9.2\r\n");
    session.wait_until_gone();
  }};
  auto api = connect(server);
  const auto object = get(*api);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::bad_response);
  EXPECT_THAT(object.error().message, HasSubstr("not HTTP"));
}

// A slow (sanitized) build may meet the deadline while it still parses: that is an end too.
TEST_F(HttpRequests, HeadersAndChunkSizesWithoutAnEndComeToOne) {
  for (const char* beginning : {"HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;"}) {
    ScriptedServer server{[beginning](Session& session) {
      session.read_request();
      session.send(beginning);
      while (true) session.send(std::string(10'000, 'x'));
    }};
    auto api = connect(server);
    const auto object = get(*api);
    ASSERT_FALSE(object);
    EXPECT_TRUE(object.error().kind == ErrorKind::bad_response || object.error().kind == ErrorKind::unreachable)
        << object.error();
  }
}

TEST_F(HttpRequests, SlowHeadersMeetTheDeadline) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.send("HTTP/1.1 200 OK\r\nX-Slow: ");
    session.wait_until_gone();
  }};
  options_.request_timeout = 100ms;
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

TEST_F(HttpRequests, RetryAfterIsHonouredForReadsAndWrites) {
  for (const int status : {429, 503}) {
    ScriptedServer server{[status](Session& session) {
      session.read_request();
      session.reply(status, "{}", "Content-Type: application/json\r\nRetry-After: 1\r\n");
      answer_all(session);
    }};
    auto api = connect(server);
    const auto start = clock_.now();
    const auto object = create(*api);
    EXPECT_TRUE(object) << object.error();
    EXPECT_GE(clock_.now() - start, 1s);
    EXPECT_EQ(server.requests().size(), 2U);
    EXPECT_EQ(server.accepted(), 1);
  }
}

TEST_F(HttpRequests, ARetryAfterBeyondTheDeadlineIsHandedToTheCaller) {
  ScriptedServer server{[](Session& session) {
    while (true) {
      session.read_request();
      session.reply(429, "{}", "Content-Type: application/json\r\nRetry-After: 7\r\n");
    }
  }};
  auto api = connect(server);
  const auto object = get(*api);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::retry_later);
  EXPECT_EQ(object.error().retry_after, 7s);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(HttpRequests, AGatewayTimeoutLeavesAWriteAmbiguous) {
  ScriptedServer server{[](Session& session) {
    while (true) {
      session.read_request();
      session.reply(504, "upstream timed out", "Content-Type: text/plain\r\n");
    }
  }};
  auto api = connect(server);
  EXPECT_EQ(get(*api).error().kind, ErrorKind::retry_later);
  EXPECT_EQ(create(*api).error().kind, ErrorKind::ambiguous);
}

TEST_F(HttpRequests, ARefusedTokenIsReadAgainOnce) {
  const auto file = std::filesystem::temp_directory_path() / ("hubferry-token-" + std::to_string(getpid()));
  const auto write = [&](const char* token) {
    FILE* out = std::fopen(file.c_str(), "w");
    std::fputs(token, out);
    std::fclose(out);
  };
  write("old");
  ScriptedServer server{[&](Session& session) {
    while (true) {
      const auto request = session.read_request();
      if (request.find("Bearer new") != std::string::npos) {
        session.reply(200, object_a);
      } else {
        write("new");
        session.reply(401, R"({"kind":"Status","reason":"Unauthorized","code":401})");
      }
    }
  }};
  kube::ClientConfig config;
  config.token_file = file;
  auto api = connect(server, config);
  const auto object = create(*api);
  EXPECT_TRUE(object) << object.error();
  EXPECT_EQ(server.requests().size(), 2U);
  std::filesystem::remove(file);
}

TEST_F(HttpRequests, ATokenThatStaysRefusedIsAnError) {
  ScriptedServer server{[](Session& session) {
    while (true) {
      session.read_request();
      session.reply(401, "{}");
    }
  }};
  auto api = connect(server);
  EXPECT_EQ(get(*api).error().kind, ErrorKind::unauthorized);
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(HttpRequests, CompressedAnswersAreInflatedWithinBounds) {
  const std::string padding(3'000'000, 'x');
  const std::string body = R"({"metadata":{"name":"a","namespace":"ns"},"data":{"x":")" + padding + "\"}}";
  const std::string compressed = gzip(body);
  ScriptedServer server{[&](Session& session) {
    while (true) {
      session.read_request();
      session.reply(200, compressed, "Content-Type: application/json\r\nContent-Encoding: gzip\r\n");
    }
  }};
  {
    auto api = connect(server);
    const auto object = get(*api);
    ASSERT_TRUE(object) << object.error();
    EXPECT_EQ(object->string_at({"data", "x"}).size(), padding.size());
    EXPECT_THAT(server.requests().at(0), HasSubstr("Accept-Encoding: gzip\r\n"));
  }
  options_.max_answer = 1'000'000;
  auto api = connect(server);
  const auto object = get(*api);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::bad_response);
  EXPECT_THAT(object.error().message, HasSubstr("larger than 1000000 bytes"));
}

TEST_F(HttpRequests, DamagedCompressionIsABadResponse) {
  const std::string compressed = gzip(object_a);
  ScriptedServer server{[&](Session& session) {
    session.read_request();
    session.reply(200, compressed.substr(0, compressed.size() / 2),
                  "Content-Type: application/json\r\nContent-Encoding: gzip\r\n");
    session.read_request();
    session.reply(200, "not gzip", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n");
  }};
  auto api = connect(server);
  EXPECT_EQ(get(*api).error().kind, ErrorKind::bad_response);
  EXPECT_EQ(get(*api).error().kind, ErrorKind::bad_response);
}

TEST_F(HttpRequests, AnAnswerOverTheLimitIsRefused) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.reply(200, std::string(100'000, ' '));
  }};
  options_.max_answer = 50'000;
  auto api = connect(server);
  const auto object = get(*api);
  EXPECT_EQ(object.error().kind, ErrorKind::bad_response);
  EXPECT_THAT(object.error().message, HasSubstr("larger than allowed"));
}

TEST_F(HttpRequests, AListIsCutIntoDecodedItems) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.reply(200, R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"12","continue":"more"},"items":[)" +
                           object_a + "," + object_a + "]}");
  }};
  auto api = connect(server);
  kube::ListOptions options;
  options.ns = "ns";
  const auto page = run(api->list(kube::resources::config_maps, options, kube::object_decoder()));
  ASSERT_TRUE(page) << page.error();
  EXPECT_EQ(page->items.size(), 2U);
  EXPECT_EQ(page->items.at(1).key, key_a);
  EXPECT_EQ(page->resource_version, "12");
  EXPECT_EQ(page->continue_token, "more");
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
