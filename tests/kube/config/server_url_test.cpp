#include "hubferry/kube/server_url.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hubferry/kube/config.hpp"

namespace hubferry::kube {
namespace {

TEST(ServerUrl, TakesApartWhatKubeconfigsHold) {
  EXPECT_EQ(parse_server_url("https://api.example.com:6443"), (ServerUrl{true, "api.example.com", "6443", ""}));
  EXPECT_EQ(parse_server_url("https://10.0.0.1"), (ServerUrl{true, "10.0.0.1", "443", ""}));
  EXPECT_EQ(parse_server_url("http://localhost/"), (ServerUrl{false, "localhost", "80", ""}));
  EXPECT_EQ(parse_server_url("https://[fd00::1]:443"), (ServerUrl{true, "fd00::1", "443", ""}));
  EXPECT_EQ(parse_server_url("https://[::1]"), (ServerUrl{true, "::1", "443", ""}));
  EXPECT_EQ(parse_server_url("https://rancher/k8s/clusters/c-1//"),
            (ServerUrl{true, "rancher", "443", "/k8s/clusters/c-1"}));
}

TEST(ServerUrl, WritesOneSpellingPerServer) {
  EXPECT_EQ(parse_server_url("https://a:443/").text(), "https://a");
  EXPECT_EQ(parse_server_url("https://[::1]:6443/p/").text(), "https://[::1]:6443/p");
  EXPECT_EQ(parse_server_url("http://a:443").authority(), "a:443");
  EXPECT_EQ(parse_server_url("https://[::1]").authority(), "[::1]");
}

// A Host header and a certificate know the address only; which interface leads there is nobody else's business.
TEST(ServerUrl, TheZoneOfAnIpv6AddressIsForConnectingOnly) {
  for (const auto* text : {"https://[fe80::1%25eth0]:6443", "https://[fe80::1%eth0]:6443"}) {
    const auto url = parse_server_url(text);
    EXPECT_EQ(url.host, "fe80::1%eth0");
    EXPECT_EQ(url.host_without_zone(), "fe80::1");
    EXPECT_EQ(url.authority(), "[fe80::1]:6443");
    EXPECT_EQ(url.text(), "https://[fe80::1%25eth0]:6443");
    EXPECT_EQ(parse_server_url(url.text()), url);
  }
}

TEST(ServerUrl, RefusesEverythingElseWithoutRepeatingIt) {
  const std::vector<std::string> refused{"",
                                         "api.example.com:6443",
                                         "ftp://a",
                                         "https://",
                                         "https://:6443",
                                         "https://a:",
                                         "https://a:0",
                                         "https://a:65536",
                                         "https://a:64x",
                                         "https://a:-1",
                                         "https://a:1:2",
                                         "https://::1",
                                         "https://[::1",
                                         "https://[]",
                                         "https://[::1]6443",
                                         "https://[a.b]",
                                         std::string{"https://[::1\0]", 14},
                                         "https://[fe80::1%25]",
                                         "https://[fe80::1%]",
                                         "https://[fe80::1%25a%b]",
                                         "https://[fe80::1%25a:b]",
                                         "https://a b",
                                         "https://a/b c",
                                         "https://a/?watch",
                                         "https://a/#f",
                                         "https://us@er:hunter2@a",
                                         "https://a\r\nHost: b",
                                         "https:///path",
                                         "HTTPS//a",
                                         "https://a\x01"};
  for (const auto& text : refused) {
    try {
      parse_server_url(text);
      ADD_FAILURE() << text;
    } catch (const ConfigError& e) {
      EXPECT_EQ(std::string{e.what()}.find("hunter2"), std::string::npos);
      EXPECT_NE(std::string{e.what()}, "");
    }
  }
}

}  // namespace
}  // namespace hubferry::kube
