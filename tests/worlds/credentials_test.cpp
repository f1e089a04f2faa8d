#include "credentials.hpp"

#include <gtest/gtest.h>

namespace hubferry::worlds {
namespace {

const std::string token = "eyJhbGciOiJSUzI1NiIs.abcdefgh.ijklmnop";

TEST(Credentials, AreFoundWhereverTheyStand) {
  Credentials credentials;
  credentials.add("eyJhbGciOiJSUzI1NiIs.another.one");
  credentials.add(token);
  EXPECT_TRUE(credentials.occur_in(token));
  EXPECT_TRUE(credentials.occur_in("{\"note\":\"" + token + "\"}"));
  EXPECT_TRUE(credentials.occur_in("x" + token));
  EXPECT_TRUE(credentials.occur_in(token + "x"));
}

TEST(Credentials, APartOfOneIsNone) {
  Credentials credentials;
  credentials.add(token);
  EXPECT_FALSE(credentials.occur_in(token.substr(1)));
  EXPECT_FALSE(credentials.occur_in(token.substr(0, token.size() - 1)));
  EXPECT_FALSE(credentials.occur_in(""));
  EXPECT_FALSE(credentials.occur_in("no credential"));
}

}  // namespace
}  // namespace hubferry::worlds
