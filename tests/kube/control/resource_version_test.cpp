#include "hubferry/kube/resource_version.hpp"

#include <gtest/gtest.h>

namespace hubferry::kube {
namespace {

TEST(ResourceVersion, NumbersAreComparedAsNumbersNotAsText) {
  EXPECT_TRUE(is_at_least("10", "9"));
  EXPECT_FALSE(is_at_least("9", "10"));
  EXPECT_TRUE(is_at_least("10", "10"));
  EXPECT_TRUE(is_at_least("18446744073709551615", "1"));
}

TEST(ResourceVersion, WhatIsNoNumberIsOnlyEqualToItself) {
  EXPECT_TRUE(is_at_least("abc", "abc"));
  EXPECT_FALSE(is_at_least("abc", "1"));
  EXPECT_FALSE(is_at_least("2", "abc"));
  EXPECT_FALSE(is_at_least("2", ""));
  EXPECT_FALSE(is_at_least("18446744073709551616", "1"));
}

TEST(ResourceVersion, WhatIsNoNumberCountsAsZero) {
  EXPECT_EQ(resource_version_number("17"), 17u);
  for (const auto* text : {"", "abc", "-1", "17x", " 17", "18446744073709551616"})
    EXPECT_EQ(resource_version_number(text), 0u) << text;
}

}  // namespace
}  // namespace hubferry::kube
