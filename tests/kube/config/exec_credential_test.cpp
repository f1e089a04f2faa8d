#include "kube/config/exec_credential.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/object.hpp"
#include "kube/config/samples.hpp"

namespace hubferry::kube {
namespace {

using test::exec_v1;

std::string answer(const std::string& status) {
  return R"({"kind":"ExecCredential","apiVersion":")" + exec_v1 + R"(","status":)" + status + "}";
}

std::string refusal(const std::string& output) {
  try {
    parse_exec_credential(output, exec_v1);
  } catch (const ConfigError& e) {
    EXPECT_EQ(std::string{e.what()}.find("hunter2"), std::string::npos) << e.what();
    return e.what();
  }
  return "accepted";
}

TEST(ExecCredential, ReadsATokenWithItsExpiry) {
  const auto credential = parse_exec_credential(
      answer(R"({"token":"t","expirationTimestamp":"2030-01-01T01:00:00+01:00"})") + "\n", exec_v1);
  EXPECT_EQ(credential.token, "t");
  EXPECT_EQ(credential.expires, async::parse_time("2030-01-01T00:00:00Z"));
  EXPECT_FALSE(credential.certificate);
}

TEST(ExecCredential, ReadsACertificateWithoutExpiry) {
  const auto credential =
      parse_exec_credential(answer(R"({"clientCertificateData":"c","clientKeyData":"k"})"), exec_v1);
  EXPECT_EQ(credential.certificate, (ClientCertificate{"c", "k"}));
  EXPECT_FALSE(credential.expires);
}

// Our time ends in 2262 and begins in 1677: plugins use both ends of the calendar to say always and never.
TEST(ExecCredential, ReadsTimesBeyondOurOwnRange) {
  EXPECT_FALSE(
      parse_exec_credential(answer(R"({"token":"t","expirationTimestamp":"9999-12-31T23:59:59Z"})"), exec_v1).expires);
  EXPECT_EQ(
      parse_exec_credential(answer(R"({"token":"t","expirationTimestamp":"0001-01-01T00:00:00Z"})"), exec_v1).expires,
      async::WallTime{});
}

TEST(ExecCredential, RefusesEverythingElseWithoutQuotingIt) {
  EXPECT_EQ(refusal(""), "it wrote nothing");
  EXPECT_EQ(refusal(" \n"), "it wrote nothing");
  EXPECT_THAT(refusal("hunter2"), testing::StartsWith("its output is not JSON"));
  EXPECT_THAT(refusal(answer(R"({"token":"hunter2"})") + "x"), testing::StartsWith("its output is not JSON"));
  EXPECT_EQ(refusal("[]"), "its output is not a JSON object");
  EXPECT_EQ(refusal("{}"), "its output is not of kind ExecCredential");
  EXPECT_EQ(refusal(R"({"kind":"ExecCredential","apiVersion":"v2"})"),
            "it answered in another apiVersion than client.authentication.k8s.io/v1");
  EXPECT_EQ(refusal(R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"})"),
            "its output has no status");
  EXPECT_EQ(refusal(answer("{}")), "it gave neither a token nor a client certificate");
  EXPECT_EQ(refusal(answer(R"({"token":7})")), "status.token is not a string");
  EXPECT_EQ(refusal(answer(R"({"token":"hunter2\n"})")), "status.token holds characters that no token has");
  EXPECT_EQ(refusal(answer(R"({"clientKeyData":"hunter2"})")),
            "it gave only one of clientCertificateData and clientKeyData");
  EXPECT_EQ(refusal(answer(R"({"token":"t","expirationTimestamp":"hunter2"})")),
            "status.expirationTimestamp is not an RFC 3339 time");
}

TEST(ExecCredential, TheInfoForThePluginSaysThatThereIsNoTerminal) {
  ClientConfig config;
  config.server = "https://a";
  config.ca_pem = "ca";
  config.exec =
      ExecPlugin{.api_version = exec_v1, .command = "x", .arguments = {}, .environment = {}, .install_hint = {}};
  EXPECT_EQ(exec_info(config),
            R"({"apiVersion":")" + exec_v1 + R"(","kind":"ExecCredential","spec":{"interactive":false}})");
  config.exec->provide_cluster_info = true;
  EXPECT_THAT(exec_info(config),
              testing::HasSubstr(R"("cluster":{"server":"https://a","certificate-authority-data":"Y2E="})"));
}

TEST(LastErrorLine, IsTheLastLineWithText) {
  EXPECT_EQ(last_error_line("", {}), "");
  EXPECT_EQ(last_error_line("\n \n", {}), "");
  EXPECT_EQ(last_error_line("first\nNo credentials: run 'aws sso login'.\r\n\n", {}),
            "No credentials: run 'aws sso login'.");
  EXPECT_EQ(last_error_line("a\tb\x1b[31mred", {}), "a?b?[31mred");
  EXPECT_EQ(last_error_line(std::string(1000, '.'), {}).size(), 203u);
}

TEST(LastErrorLine, HoldsNoSecrets) {
  EXPECT_EQ(last_error_line("bad token: hunter2", {}), "bad token: [hidden]");
  EXPECT_EQ(last_error_line("CLIENT_SECRET=hunter2 refused", {}), "CLIENT_SECRET=[hidden] refused");
  EXPECT_EQ(last_error_line(R"({"access_token": "hunter2"})", {}), R"({"access_token": "[hidden]"})");
  EXPECT_EQ(last_error_line("sent Authorization: Bearer hunter2", {}), "sent Authorization: [hidden] [hidden]");
  EXPECT_EQ(last_error_line("got eyJhbGciOi.eyJzdWIi.c2ln", {}), "got [hidden]");
  EXPECT_EQ(last_error_line("id AKIAIOSFODNN7EXAMPLEabcd unknown", {}), "id [hidden] unknown");
  EXPECT_EQ(last_error_line("login as hunter2hunter2 failed", {{"PW", "hunter2"}}), "login as [hidden][hidden] failed");
}

TEST(LastErrorLine, KeepsWhatHelps) {
  for (const auto* line : {"the token has expired", "dial tcp: lookup sts.eu-central-1.amazonaws.com: no such host",
                           "open /home/someone/.config/gcloud/application_default_credentials.json: no such file"})
    EXPECT_EQ(last_error_line(line, {}), line);
}

}  // namespace
}  // namespace hubferry::kube
