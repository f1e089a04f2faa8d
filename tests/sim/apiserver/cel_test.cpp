#include "sim/apiserver/cel.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace hubferry::sim {
namespace {

bool holds(const char* rule, const char* self, const char* old = nullptr) {
  const auto compiled = CelRule::compile(rule);
  EXPECT_TRUE(compiled) << rule;
  const auto before = json::parse(old == nullptr ? "null" : old);
  return compiled && compiled->holds(json::parse(self), old == nullptr ? nullptr : &before);
}

TEST(CelRule, ComparesFieldsListsAndSizes) {
  EXPECT_TRUE(holds("self.a == 'x' && self.list != [1]", R"({"a": "x", "list": [1, 2]})"));
  EXPECT_FALSE(holds("self.a == \"y\" || size(self.list) > 2", R"({"a": "x", "list": [1, 2]})"));
  EXPECT_TRUE(holds("self.a in ['x', 'y'] && !(self.a in ['z'])", R"({"a": "x"})"));
  EXPECT_TRUE(holds("size(self.list) >= 2 && size(self.list) <= 2 && size(self.list) < 3", R"({"list": [1, 2]})"));
}

TEST(CelRule, HasSeesWhetherAFieldIsThere) {
  EXPECT_TRUE(holds("has(self.a) != has(self.b)", R"({"a": 1})"));
  EXPECT_FALSE(holds("has(self.a) != has(self.b)", R"({"a": 1, "b": 2})"));
  EXPECT_TRUE(holds("!has(self.a.b)", R"({"a": {}})"));
}

// As in CEL: an error on one side does not matter if the other side decides.
TEST(CelRule, AMissingFieldFailsTheRuleUnlessTheOtherSideDecides) {
  EXPECT_FALSE(holds("self.missing == 'x'", "{}"));
  EXPECT_TRUE(holds("self.missing == 'x' || self.a == 1", R"({"a": 1})"));
  EXPECT_FALSE(holds("self.missing == 'x' && self.a == 1", R"({"a": 1})"));
}

TEST(CelRule, ATransitionRuleComparesWithTheOldObject) {
  const auto rule = CelRule::compile("self.a == oldSelf.a");
  ASSERT_TRUE(rule);
  EXPECT_TRUE(rule->needs_old());
  EXPECT_TRUE(holds("self.a == oldSelf.a", R"({"a": 1})", R"({"a": 1})"));
  EXPECT_FALSE(holds("self.a == oldSelf.a", R"({"a": 1})", R"({"a": 2})"));
}

TEST(CelRule, WhatIsNotSupportedIsNotCompiled) {
  for (const auto* rule : {"self.list.all(x, x > 1)", "self.a.startsWith('x')", "self.a + 1 == 2", "other", "(self.a"})
    EXPECT_FALSE(CelRule::compile(rule)) << rule;
}

}  // namespace
}  // namespace hubferry::sim
