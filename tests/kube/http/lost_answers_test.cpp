// Connections that break before, under and after a request.
#include <gmock/gmock.h>

#include "kube/http/http_fixture.hpp"

namespace hubferry::test {
namespace {

using testing::HasSubstr;

using HttpLostAnswers = HttpTest;

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

TEST_F(HttpLostAnswers, AConnectionThatTheServerClosedBetweenRequestsIsReplacedEvenForWrites) {
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
TEST_F(HttpLostAnswers, AKeptConnectionThatBreaksUnderARequestIsReplacedForReadsOnly) {
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

TEST_F(HttpLostAnswers, AConnectionOnWhichTheServerSpeaksUnaskedIsNotUsedAgain) {
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

TEST_F(HttpLostAnswers, ConnectionCloseInTheAnswerIsObeyed) {
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

}  // namespace
}  // namespace hubferry::test
