#include "kube/config/proxy.hpp"

#include <gmock/gmock.h>

#include "hubferry/kube/base64.hpp"

namespace hubferry::kube {
namespace {

using testing::HasSubstr;
using testing::Not;
using Variables = std::map<std::string, std::string>;

/// "host:port" of the proxy for a server, or "direct", or the error.
std::string route(const std::string& server, const Variables& variables, const std::string& proxy_url = {}) {
  ClientConfig config;
  config.source = "F";
  config.proxy_url = proxy_url;
  const auto environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional{found->second};
  };
  try {
    const auto choice = proxy_for(config, parse_server_url(server), environment);
    if (!choice.ignored.empty()) return "direct, without " + choice.ignored;
    return choice.proxy ? choice.proxy->display() : "direct";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(Proxies, TheEnvironmentNamesOneForEachScheme) {
  const Variables both{{"HTTPS_PROXY", "http://secure:3128"}, {"HTTP_PROXY", "http://plain:3128"}};
  EXPECT_EQ(route("https://a:6443", both), "secure:3128");
  EXPECT_EQ(route("http://a", both), "plain:3128");
  EXPECT_EQ(route("https://a", {{"HTTP_PROXY", "http://plain"}}), "direct");
  EXPECT_EQ(route("https://a", {{"https_proxy", "http://small"}}), "small:80");
  EXPECT_EQ(route("https://a", {{"https_proxy", "http://small"}, {"HTTPS_PROXY", "http://capital"}}), "capital:80");
  EXPECT_EQ(route("https://a", {{"HTTPS_PROXY", "bare:8080"}}), "bare:8080");
  EXPECT_EQ(route("https://a", {{"HTTPS_PROXY", ""}}), "direct");
  EXPECT_EQ(route("https://a", {{"HTTPS_PROXY", "http://[2001:db8::1]:3128"}}), "[2001:db8::1]:3128");
}

TEST(Proxies, TheKubeconfigWinsOverTheEnvironmentAndItsExceptions) {
  const Variables environment{{"HTTPS_PROXY", "http://of-environment"}, {"NO_PROXY", "*"}};
  EXPECT_EQ(route("https://a", environment, "http://of-kubeconfig:1"), "of-kubeconfig:1");
  EXPECT_EQ(route("https://127.0.0.1", {}, "http://of-kubeconfig:1"), "of-kubeconfig:1");
}

// A variable may be meant for other programs; a kubeconfig is meant for us.
TEST(Proxies, AKindThatIsNotSupportedIsIgnoredInTheEnvironmentOnly) {
  for (const std::string scheme : {"https", "socks5", "socks5h", "SOCKS5"}) {
    EXPECT_EQ(route("https://a", {{"HTTPS_PROXY", scheme + "://p:1080"}}), "direct, without HTTPS_PROXY");
    EXPECT_EQ(route("https://a", {{"HTTPS_PROXY", scheme + "://p:1080"}, {"NO_PROXY", "a"}}), "direct");
    EXPECT_THAT(route("https://a", {}, scheme + "://p:1080"), HasSubstr("F: proxy-url: "));
  }
  EXPECT_THAT(route("https://a", {{"HTTPS_PROXY", "http://p:0x"}}), HasSubstr("HTTPS_PROXY: "));
}

TEST(Proxies, ThisMachineIsReachedDirectly) {
  for (const auto* server : {"https://localhost:6443", "https://127.0.0.1", "https://127.1.2.3", "https://[::1]:6443"})
    EXPECT_EQ(route(server, {{"HTTPS_PROXY", "http://p"}}), "direct") << server;
}

TEST(Proxies, ExceptionsAreReadAsByGo) {
  const auto excluded = [](const std::string& no_proxy, const std::string& server) {
    return route(server, {{"HTTPS_PROXY", "http://p"}, {"NO_PROXY", no_proxy}}) == "direct";
  };
  EXPECT_TRUE(excluded("*", "https://a"));
  EXPECT_TRUE(excluded("b, example.com ,c", "https://example.com"));
  EXPECT_TRUE(excluded("example.com", "https://api.example.com:6443"));
  EXPECT_TRUE(excluded("EXAMPLE.com", "https://api.Example.COM"));
  EXPECT_FALSE(excluded("example.com", "https://notexample.com"));
  EXPECT_FALSE(excluded(".example.com", "https://example.com"));
  EXPECT_TRUE(excluded(".example.com", "https://api.example.com"));
  EXPECT_TRUE(excluded("*.example.com", "https://api.example.com"));
  EXPECT_TRUE(excluded("example.com:6443", "https://api.example.com:6443"));
  EXPECT_FALSE(excluded("example.com:6443", "https://api.example.com"));
  EXPECT_TRUE(excluded("10.0.0.0/8", "https://10.96.0.1:443"));
  EXPECT_FALSE(excluded("10.0.0.0/8", "https://11.0.0.1"));
  EXPECT_FALSE(excluded("10.0.0.0/8", "https://ten.example"));
  EXPECT_TRUE(excluded("192.0.2.7", "https://192.0.2.7:6443"));
  EXPECT_TRUE(excluded("192.0.2.7:6443", "https://192.0.2.7:6443"));
  EXPECT_FALSE(excluded("192.0.2.7:1", "https://192.0.2.7:6443"));
  EXPECT_TRUE(excluded("2001:db8::/32", "https://[2001:db8::5]:6443"));
  EXPECT_TRUE(excluded("2001:db8::5", "https://[2001:db8::5]"));
  EXPECT_TRUE(excluded("[2001:db8::5]:6443", "https://[2001:db8::5]:6443"));
  EXPECT_FALSE(excluded("10.0.0.0/99, ,nonsense/8,[", "https://10.0.0.1"));
  EXPECT_TRUE(is_excluded_from_proxy("svc", parse_server_url("https://kubernetes.default.svc")));
}

TEST(Proxies, ACredentialIsDecodedAndNeverShown) {
  const auto proxy = parse_proxy_url("http://alice:hunter%402@proxy:3128/");
  EXPECT_EQ(proxy.authorization, "Basic " + encode_base64("alice:hunter@2"));
  EXPECT_EQ(proxy.display(), "proxy:3128");
  for (const auto* wrong : {"http://alice:hunter2@", "http://alice:hunter2@a b", "socks5://alice:hunter2@p",
                            "https://alice:hunter2@p", "http://alice:hunter2%zz@p", "http://alice:hunter2@p:99999"}) {
    const auto complaint = route("https://a", {{"HTTPS_PROXY", wrong}});
    EXPECT_THAT(complaint, HasSubstr("HTTPS_PROXY")) << wrong;
    EXPECT_THAT(complaint, Not(HasSubstr("hunter2")));
    EXPECT_THAT(route("https://a", {}, wrong), testing::StartsWith("F: proxy-url: ")) << wrong;
  }
}

}  // namespace
}  // namespace hubferry::kube
