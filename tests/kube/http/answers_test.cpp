// What servers put into their answers.
#include <gmock/gmock.h>

#include "kube/http/http_fixture.hpp"

namespace hubferry::test {
namespace {

using testing::HasSubstr;

using HttpAnswers = HttpTest;

TEST_F(HttpAnswers, AnAnswerInChunksOrUntilTheEndOfTheConnectionIsRead) {
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

TEST_F(HttpAnswers, GarbageInsteadOfJsonIsABadResponseAndForAWriteAmbiguous) {
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

TEST_F(HttpAnswers, AWrongContentTypeIsNamed) {
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

TEST_F(HttpAnswers, WhatIsNoHttpIsABadResponse) {
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
TEST_F(HttpAnswers, HeadersAndChunkSizesWithoutAnEndComeToOne) {
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

TEST_F(HttpAnswers, CompressedAnswersAreInflatedWithinBounds) {
  const std::string padding(3'000'000, 'x');
  const std::string body =
      R"({"kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"},"data":{"x":")" + padding + "\"}}";
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

TEST_F(HttpAnswers, DamagedCompressionIsABadResponse) {
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

TEST_F(HttpAnswers, AnAnswerOverTheLimitIsRefused) {
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

// Only lists are large: a server, or somebody in between, that sends more must not exhaust our memory.
TEST_F(HttpAnswers, AnObjectOfMoreThanEightMebibytesIsRefusedAndAListIsNot) {
  const std::string padding(8UL * 1024 * 1024, 'x');
  const std::string large = R"({"kind":"ConfigMap","metadata":{"name":"a","namespace":"ns","resourceVersion":"7"},)"
                            R"("data":{"x":")" +
                            padding + "\"}}";
  ScriptedServer server{[&](Session& session) {
    while (true) {
      const auto request = session.read_request();
      if (request.starts_with("GET /api/v1/namespaces/ns/configmaps?"))
        session.reply(200, R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"12"},"items":[)" + large + "]}");
      else if (request.starts_with("POST"))
        session.reply(201, gzip(large), "Content-Type: application/json\r\nContent-Encoding: gzip\r\n");
      else
        session.reply(200, large);
    }
  }};
  auto api = connect(server);
  const auto object = get(*api);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::bad_response);
  EXPECT_THAT(object.error().message, HasSubstr("larger than allowed"));
  const auto created = create(*api);
  ASSERT_FALSE(created) << "compressed, it is small";
  EXPECT_THAT(created.error().message, HasSubstr("larger than 8388608 bytes"));
  kube::ListOptions options;
  options.ns = "ns";
  const auto page = run(api->list(kube::resources::config_maps, options, kube::object_decoder()));
  ASSERT_TRUE(page) << page.error();
  EXPECT_EQ(page->items.size(), 1U);
}

TEST_F(HttpAnswers, AListIsCutIntoDecodedItems) {
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

}  // namespace
}  // namespace hubferry::test
