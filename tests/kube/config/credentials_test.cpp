#include "hubferry/kube/credentials.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hubferry/async/virtual_loop.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::kube {
namespace {

using namespace std::chrono_literals;

/// What needs no process runs on virtual time.
class CredentialsTest : public testing::Test {
 protected:
  std::string header(Credentials& credentials) {
    const auto result = loop_.run(credentials.authorization_header());
    return result ? *result : "error: " + result.error().message;
  }

  Credentials with_token_file(const std::string& fallback = {}) {
    ClientConfig config;
    config.token_file = directory_.path() / "token";
    config.token = fallback;
    return Credentials{config, loop_.clock()};
  }

  /// As the kubelet does it: a new file takes the old one's name.
  void replace_token(const std::string& token) {
    directory_.write("token.new", token);
    std::filesystem::rename(directory_.path() / "token.new", directory_.path() / "token");
  }

  test::TemporaryDirectory directory_;
  async::VirtualLoop loop_;
};

TEST_F(CredentialsTest, WithoutAnythingTheHeaderIsEmpty) {
  Credentials credentials{ClientConfig{}, loop_.clock()};
  EXPECT_EQ(header(credentials), "");
  EXPECT_FALSE(credentials.client_certificate());
  credentials.invalidate();
  EXPECT_EQ(header(credentials), "");
}

TEST_F(CredentialsTest, ATokenAndAPasswordBecomeHeaders) {
  ClientConfig config;
  config.username = "Aladdin";
  config.password = "open sesame";
  Credentials basic{config, loop_.clock()};
  EXPECT_EQ(header(basic), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  config = {};
  config.token = "abc";
  Credentials bearer{config, loop_.clock()};
  EXPECT_EQ(header(bearer), "Bearer abc");
}

// client-go does not run a plugin for somebody who can say already who they are.
TEST_F(CredentialsTest, WhatTheConfigurationHoldsWinsOverItsPlugin) {
  ClientConfig config;
  config.exec = ExecPlugin{};
  config.exec->command = "/no/such/plugin";
  config.client_certificate_pem = "c";
  config.client_key_pem = "k";
  Credentials certificate{config, loop_.clock()};
  EXPECT_EQ(header(certificate), "");
  EXPECT_EQ(certificate.client_certificate(), (ClientCertificate{"c", "k"}));
  config.token = "abc";
  Credentials token{config, loop_.clock()};
  EXPECT_EQ(header(token), "Bearer abc");
}

TEST_F(CredentialsTest, ATokenFileIsFollowedWithinASecond) {
  replace_token("one\n");
  auto credentials = with_token_file("inline");
  EXPECT_EQ(header(credentials), "Bearer one") << "the file wins over the inline token";
  replace_token("two\n");
  loop_.run_for(999ms);
  EXPECT_EQ(header(credentials), "Bearer one") << "not looked at again so soon";
  loop_.run_for(1ms);
  EXPECT_EQ(header(credentials), "Bearer two");
}

TEST_F(CredentialsTest, ARefusedTokenIsReadAgainAtOnce) {
  replace_token("one");
  auto credentials = with_token_file();
  EXPECT_EQ(header(credentials), "Bearer one");
  replace_token("two");
  credentials.invalidate("Bearer zero");
  EXPECT_EQ(header(credentials), "Bearer one") << "an older token was refused, not this one";
  credentials.invalidate("Bearer one");
  EXPECT_EQ(header(credentials), "Bearer two");
}

// A volume is remounted, a file is being rewritten: the old token is still good.
TEST_F(CredentialsTest, WhileTheFileIsUnreadableTheLastTokenStaysInUse) {
  replace_token("one");
  auto credentials = with_token_file();
  EXPECT_EQ(header(credentials), "Bearer one");
  std::filesystem::remove(directory_.path() / "token");
  loop_.run_for(2s);
  EXPECT_EQ(header(credentials), "Bearer one");
  replace_token("");
  loop_.run_for(2s);
  EXPECT_EQ(header(credentials), "Bearer one");
  replace_token("line\nbreak");
  loop_.run_for(2s);
  EXPECT_EQ(header(credentials), "Bearer one");
  replace_token("two");
  loop_.run_for(2s);
  EXPECT_EQ(header(credentials), "Bearer two");
}

TEST_F(CredentialsTest, AMissingFileLeavesTheInlineTokenOrAnError) {
  auto bridged = with_token_file("inline");
  EXPECT_EQ(header(bridged), "Bearer inline");
  auto lost = with_token_file();
  const auto result = loop_.run(lost.authorization_header());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::unauthorized);
  EXPECT_EQ(result.error().message,
            "token file " + (directory_.path() / "token").string() + ": cannot be read: No such file or directory");
  replace_token("one");
  loop_.run_for(1s);
  EXPECT_EQ(header(lost), "Bearer one");
  EXPECT_EQ(header(bridged), "Bearer one");
}

// A change of equal size within the file system's time resolution cannot be seen from outside.
TEST_F(CredentialsTest, TheFileIsReadOnceAMinuteWhateverItsStampSays) {
  const auto file = directory_.write("token", "one");
  const auto stamp = std::filesystem::last_write_time(file);
  auto credentials = with_token_file();
  EXPECT_EQ(header(credentials), "Bearer one");
  directory_.write("token", "two");
  std::filesystem::last_write_time(file, stamp);
  loop_.run_for(59s);
  EXPECT_EQ(header(credentials), "Bearer one");
  loop_.run_for(1s);
  EXPECT_EQ(header(credentials), "Bearer two");
}

}  // namespace
}  // namespace hubferry::kube
