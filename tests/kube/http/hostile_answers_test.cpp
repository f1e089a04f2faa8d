// Servers that lie, or answer what was not asked for. Any hub may be one: the manager must survive it.
#include <gmock/gmock.h>

#include "kube/http/http_fixture.hpp"

namespace hubferry::test {
namespace {

using testing::HasSubstr;

const std::string json_header = "Content-Type: application/json\r\n";

class HttpHostile : public HttpTest {
 protected:
  kube::Result<kube::ListPage> list(kube::Api& api) {
    return run(api.list(kube::resources::config_maps, {}, kube::object_decoder()));
  }
  /// Opens a watch and reads it to its end; the error, if there was one.
  kube::Result<std::vector<kube::WatchEvent>> watch(kube::Api& api) {
    auto stream = run(api.watch(kube::resources::config_maps, {}, kube::object_decoder()));
    if (!stream) return stream.error();
    return run((*stream)->next());
  }
};

// 2^62: what a header claims must never be reserved.
TEST_F(HttpHostile, AHugeContentLengthIsNotReserved) {
  for (const char* length : {"4611686018427387904", "17179869184"}) {
    ScriptedServer server{[length](Session& session) {
      session.read_request();
      session.send("HTTP/1.1 200 OK\r\n" + json_header + "Content-Length: " + length + "\r\n\r\n{");
    }};
    auto api = connect(server);
    EXPECT_EQ(get(*api).error().kind, ErrorKind::bad_response);
    EXPECT_EQ(create(*api).error().kind, ErrorKind::ambiguous);
    EXPECT_EQ(list(*api).error().kind, ErrorKind::bad_response);
    EXPECT_EQ(watch(*api).error().kind, ErrorKind::unreachable) << "a watch has no length; this one broke off";
  }
}

TEST_F(HttpHostile, AHugeChunkIsNotReserved) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.send("HTTP/1.1 200 OK\r\n" + json_header + "Transfer-Encoding: chunked\r\n\r\n4000000000000000\r\n{");
  }};
  auto api = connect(server);
  EXPECT_EQ(get(*api).error().kind, ErrorKind::bad_response);
  EXPECT_EQ(list(*api).error().kind, ErrorKind::bad_response);
  EXPECT_EQ(watch(*api).error().kind, ErrorKind::unreachable);
}

TEST_F(HttpHostile, ACompressedAnswerIsInflatedNoFurtherThanTheLimit) {
  const std::string bomb = gzip(std::string(300UL * 1024 * 1024, ' '));
  ScriptedServer server{[&](Session& session) {
    session.read_request();
    session.reply(200, bomb, json_header + "Content-Encoding: gzip\r\n");
  }};
  auto api = connect(server);
  const auto object = get(*api);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::bad_response);
  EXPECT_THAT(object.error().message, HasSubstr("larger than"));
}

}  // namespace
}  // namespace hubferry::test
