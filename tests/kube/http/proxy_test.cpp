#include <gmock/gmock.h>

#include "hubferry/kube/base64.hpp"
#include "kube/http/http_fixture.hpp"
#include "support/tunnel.hpp"

namespace hubferry::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class HttpProxy : public HttpTest {
 protected:
  static std::string proxy_url(int port, const std::string& user = {}) {
    return "http://" + user + "127.0.0.1:" + std::to_string(port);
  }
  /// A request by a proxy that gives `answer` to CONNECT.
  kube::Result<kube::Object> ask_through(const std::string& answer) {
    ScriptedServer proxy{[&](Session& session) {
      session.read_request();
      session.send(answer);
      session.wait_until_gone();
    }};
    kube::ClientConfig config;
    config.server = "https://hub.example:6443";
    config.proxy_url = proxy_url(proxy.port(), "alice:hunter2@");
    options_.max_retries = 0;
    auto api = connect(config);
    return get(*api);
  }
};

// The proxy resolves the name: it need not be known here.
TEST_F(HttpProxy, AServerIsReachedByConnectAndItsCertificateIsItsOwn) {
  const Authority authority{"test authority"};
  ScriptedServer server{authority.issue({"DNS:hub.example"}), answer_all};
  Tunnel proxy{server.port()};
  kube::ClientConfig config;
  config.server = "https://hub.example:6443";
  config.ca_pem = authority.certificate_pem();
  config.token = "of-the-server";
  config.proxy_url = proxy_url(proxy.port(), "alice:hunter2@");
  auto api = connect(config);
  const auto object = get(*api);
  EXPECT_TRUE(object) << object.error();
  EXPECT_THAT(
      proxy.heads(),
      ElementsAre(AllOf(HasSubstr("CONNECT hub.example:6443 HTTP/1.1\r\n"), HasSubstr("Host: hub.example:6443\r\n"),
                        HasSubstr("Proxy-Authorization: Basic " + kube::encode_base64("alice:hunter2") + "\r\n"),
                        Not(HasSubstr("of-the-server")))));
  EXPECT_THAT(server.requests(), ElementsAre(AllOf(HasSubstr("GET /api/v1/"), Not(HasSubstr("Proxy-Auth")))));
}

TEST_F(HttpProxy, WhatAProxyRefusesIsNamedWithoutTheCredential) {
  const auto refused = ask_through("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::unreachable);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("proxy 127.0.0.1:"), HasSubstr("refused to connect (403)"),
                                             HasSubstr("hub.example:6443"), Not(HasSubstr("hunter2"))));
  const auto denied = ask_through("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
  ASSERT_FALSE(denied);
  EXPECT_THAT(denied.error().message, AllOf(HasSubstr("wants other credentials (407)"), Not(HasSubstr("hunter2"))));
}

TEST_F(HttpProxy, AProxyThatIsNoneIsAnError) {
  for (const auto& answer : {std::string{"SSH-2.0-server\r\n\r\n"}, std::string(20000, 'x'),
                             std::string{"HTTP/1.1 200 OK\r\n\r\nand more"}, std::string{"HTTP/1.1 xyz\r\n\r\n"}}) {
    const auto object = ask_through(answer);
    ASSERT_FALSE(object);
    EXPECT_EQ(object.error().kind, ErrorKind::unreachable) << object.error();
  }
}

}  // namespace
}  // namespace hubferry::test
