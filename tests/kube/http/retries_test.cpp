// Answers after which a request is made again, or is not.
#include <gtest/gtest.h>

#include "kube/http/http_fixture.hpp"

namespace hubferry::test {
namespace {

using HttpRetries = HttpTest;

TEST_F(HttpRetries, RetryAfterIsHonouredForReadsAndWrites) {
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

TEST_F(HttpRetries, ARetryAfterBeyondTheDeadlineIsHandedToTheCaller) {
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

// Who fails on the way, and who cannot reach the server behind, does not know what became of a write.
TEST_F(HttpRetries, AServerErrorOnAWriteIsAmbiguousAndNotRetried) {
  const std::string status = R"({"kind":"Status","reason":"InternalError","code":500,"message":"etcd timed out"})";
  const std::pair<int, std::string> answers[] = {
      {500, "{}"}, {500, status}, {502, "no"}, {503, "upstream"}, {504, "{}"}};
  for (const auto& [code, body] : answers) {
    ScriptedServer server{[&](Session& session) {
      while (true) {
        session.read_request();
        session.reply(code, body);
      }
    }};
    auto api = connect(server);
    const auto written = create(*api);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().kind, ErrorKind::ambiguous) << written.error();
    EXPECT_EQ(written.error().status, code);
    EXPECT_EQ(server.requests().size(), 1U);
    EXPECT_EQ(get(*api).error().kind, ErrorKind::retry_later) << code;
  }
}

TEST_F(HttpRetries, ARetryAfterOfZeroStillBacksOff) {
  ScriptedServer server{[](Session& session) {
    while (true) {
      session.read_request();
      session.reply(503, "{}", "Content-Type: application/json\r\nRetry-After: 0\r\n");
    }
  }};
  auto api = connect(server);
  const auto start = clock_.now();
  EXPECT_EQ(create(*api).error().kind, ErrorKind::retry_later);
  EXPECT_GE(clock_.now() - start, 100ms);
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(HttpRetries, ARefusedTokenIsReadAgainOnce) {
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

TEST_F(HttpRetries, ATokenThatStaysRefusedIsAnError) {
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

}  // namespace
}  // namespace hubferry::test
