#include "hubferry/kube/selector.hpp"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

namespace hubferry::kube {
namespace {

const Object red_widget{
    json::parse(R"({"metadata":{"name":"w","labels":{"color":"red","size":"","example.com/tier":"gold"}},)"
                R"("status":{"phase":"Ready","count":3}})")
        .as_object()};

bool selects(std::string_view text) {
  const auto selector = LabelSelector::parse(text);
  EXPECT_TRUE(selector.has_value()) << selector.error();
  return selector && selector->matches(red_widget);
}

TEST(LabelSelector, MatchesAsKubernetesDoes) {
  EXPECT_TRUE(selects(""));
  EXPECT_TRUE(selects("color=red"));
  EXPECT_TRUE(selects("color == red , example.com/tier in (silver, gold)"));
  EXPECT_FALSE(selects("color=blue"));
  EXPECT_FALSE(selects("color=red,absent"));
  EXPECT_TRUE(selects("color,!absent"));
  EXPECT_FALSE(selects("!color"));
  EXPECT_TRUE(selects("color!=blue,absent!=x"));
  EXPECT_TRUE(selects("color notin (blue,green),absent notin (x)"));
  EXPECT_FALSE(selects("color notin (red)"));
  EXPECT_TRUE(selects("size=,size in ()"));
  EXPECT_FALSE(selects("absent="));
}

TEST(LabelSelector, RefusesWhatItCannotRead) {
  for (const std::string text : {"a=b c", "=b", "a,", "a in b", "a in (b", "a like b", "!", "a=b,,c", "ä=1"}) {
    const auto selector = LabelSelector::parse(text);
    ASSERT_FALSE(selector.has_value()) << text;
    EXPECT_EQ(selector.error().kind, ErrorKind::invalid);
    EXPECT_THAT(selector.error().message, testing::HasSubstr(text));
  }
}

TEST(LabelSelector, WritesWhatItReads) {
  for (const std::string text : {"", "a=b", "a!=b", "a in (b,c)", "a notin (b,c)", "a", "!a", "a=b,!c,d in (e,f)"}) {
    const auto selector = LabelSelector::parse(text);
    ASSERT_TRUE(selector.has_value()) << selector.error();
    EXPECT_EQ(selector->to_string(), text);
  }
}

TEST(LabelSelector, ReadsTheFormOfTheApi) {
  const auto selector = LabelSelector::from_json(
      json::parse(R"({"matchLabels":{"color":"red"},"matchExpressions":[{"key":"x","operator":"DoesNotExist"},)"
                  R"({"key":"example.com/tier","operator":"In","values":["gold"]}]})")
          .as_object());
  ASSERT_TRUE(selector.has_value()) << selector.error();
  EXPECT_TRUE(selector->matches(red_widget));
  EXPECT_EQ(selector->to_string(), "color=red,!x,example.com/tier=gold");
  for (const std::string text :
       {R"({"matchLabels":{"a":1}})", R"({"matchExpressions":[1]})", R"({"matchExpressions":[{"operator":"Exists"}]})",
        R"({"matchExpressions":[{"key":"a","operator":"In"}]})",
        R"({"matchExpressions":[{"key":"a","operator":"Near","values":["b"]}]})"})
    EXPECT_FALSE(LabelSelector::from_json(json::parse(text).as_object()).has_value()) << text;
}

TEST(FieldSelector, ComparesFieldsAsText) {
  const auto selects = [](std::string_view text) {
    const auto selector = FieldSelector::parse(text);
    EXPECT_TRUE(selector.has_value()) << selector.error();
    return selector && selector->matches(red_widget);
  };
  EXPECT_TRUE(selects(""));
  EXPECT_TRUE(selects("metadata.name=w,status.phase!=Gone"));
  EXPECT_TRUE(selects("metadata.name==w, metadata.namespace="));
  EXPECT_FALSE(selects("metadata.name!=w"));
  EXPECT_FALSE(selects("status.phase.deeper=Ready"));
  EXPECT_FALSE(FieldSelector::parse("metadata.name").has_value());
  EXPECT_FALSE(FieldSelector::parse("=w").has_value());
  EXPECT_FALSE(FieldSelector::parse("!=w").has_value());
}

}  // namespace
}  // namespace hubferry::kube
