#include "hubferry/kube/splitter.hpp"

#include <gmock/gmock.h>

namespace hubferry::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SplitList, GivesVersionTokenAndTheBytesOfEachItem) {
  const std::string body =
      R"({"kind":"WidgetList","apiVersion":"v1","metadata":{"resourceVersion":"17","continue":"abc"},)"
      R"("items":[{"a":1},{"b":{"c":[1,2,{"d":"}]"}]}}]})";
  const auto list = split_list(body);
  ASSERT_TRUE(list.has_value()) << list.error();
  EXPECT_EQ(list->resource_version, "17");
  EXPECT_EQ(list->continue_token, "abc");
  EXPECT_THAT(list->items, ElementsAre(R"({"a":1})", R"({"b":{"c":[1,2,{"d":"}]"}]}})"));
}

TEST(SplitList, TakesKeysInAnyOrderAndWhiteSpaceAnywhere) {
  const std::string body =
      " \n{ \"items\" :\t[ { } , {\"x\" : \"y\"} ] ,\r\n \"metadata\" : { \"remainingItemCount\" : 3 "
      ", \"resourceVersion\" : \"9\" } } \n";
  const auto list = split_list(body);
  ASSERT_TRUE(list.has_value()) << list.error();
  EXPECT_EQ(list->resource_version, "9");
  EXPECT_EQ(list->continue_token, "");
  EXPECT_THAT(list->items, ElementsAre("{ }", "{\"x\" : \"y\"}"));
}

TEST(SplitList, TakesNoItemsAsNullOrAsAnEmptyList) {
  for (const std::string body : {R"({"items":null,"metadata":{}})", R"({"metadata":{},"items":[]})"}) {
    const auto list = split_list(body);
    ASSERT_TRUE(list.has_value()) << list.error();
    EXPECT_THAT(list->items, IsEmpty());
  }
}

TEST(SplitList, ResolvesEscapesInTheContinueToken) {
  const auto list = split_list(R"({"metadata":{"continue":"a\u003d\"b\\"},"items":[]})");
  ASSERT_TRUE(list.has_value()) << list.error();
  EXPECT_EQ(list->continue_token, "a=\"b\\");
}

TEST(SplitList, NamesThePositionOfWhatIsWrong) {
  const auto position_of = [](std::string_view body) {
    const auto list = split_list(body);
    return list ? std::string{"no error"} : list.error().message;
  };
  EXPECT_THAT(position_of(""), HasSubstr("at byte 0"));
  EXPECT_THAT(position_of("<html>"), HasSubstr("at byte 0"));
  EXPECT_THAT(position_of(R"({"items":[{},17]})"), HasSubstr("at byte 13"));
  EXPECT_THAT(position_of(R"({"items":[{})"), HasSubstr("at byte 12"));
  EXPECT_THAT(position_of(R"({"items":[{"a":"}]})"), HasSubstr("without an end at byte 10"));
  EXPECT_THAT(position_of(R"({"items":[]} x)"), HasSubstr("at byte 13"));
  EXPECT_THAT(position_of(R"({"items":[]"metadata":{}})"), HasSubstr("at byte 11"));
  EXPECT_THAT(position_of(R"({"metadata":{"resourceVersion":7},"items":[]})"), HasSubstr("resourceVersion at byte 31"));
  EXPECT_THAT(position_of(R"({"metadata":{"continue":"\q"},"items":[]})"), HasSubstr("well-formed at byte 24"));
  EXPECT_THAT(position_of(R"({"kind":"Status","code":403})"), HasSubstr("without items"));
}

TEST(SplitWatchEvent, GivesTypeAndObject) {
  const auto event = split_watch_event(R"({"type":"MODIFIED","object":{"metadata":{"name":"a"}}})");
  ASSERT_TRUE(event.has_value()) << event.error();
  EXPECT_EQ(event->type, "MODIFIED");
  EXPECT_EQ(event->object, R"({"metadata":{"name":"a"}})");
}

TEST(SplitWatchEvent, TakesKeysInAnyOrderAndSkipsUnknownOnes) {
  const auto event =
      split_watch_event(R"( {"x":[{"type":"NO"}],"object":{"a":"\"}"} , "y" : -1.5e3, "type" : "ADDED","z":null} )");
  ASSERT_TRUE(event.has_value()) << event.error();
  EXPECT_EQ(event->type, "ADDED");
  EXPECT_EQ(event->object, R"({"a":"\"}"})");
}

TEST(SplitWatchEvent, RefusesGarbage) {
  for (const std::string line :
       {"", "garbage", "{}", R"({"type":"ADDED"})", R"({"object":{}})", R"({"type":1,"object":{}})",
        R"({"type":"ADDED","object":[]})", R"({"type":"ADDED","object":{})", R"({"type":"ADDED","object":{"a":"})",
        R"({"type":"ADDED" "object":{}})", "[]", "{\"", "\"\\"}) {
    const auto event = split_watch_event(line);
    ASSERT_FALSE(event.has_value()) << line;
    EXPECT_EQ(event.error().kind, ErrorKind::bad_response);
    EXPECT_THAT(event.error().message, HasSubstr("at byte"));
  }
}

// The scanner works on blocks of 64 bytes: quotes, escapes and ends must be found wherever they fall in one.
TEST(SplitWatchEvent, FindsTheObjectsEndAtEveryOffset) {
  for (std::size_t padding = 0; padding < 200; ++padding) {
    for (const std::string tail : {R"(\\)", R"(\")", R"(\\\")", R"(}{][)", R"(\"}\\\\)", ""}) {
      const std::string object = R"({"a":[{"p":")" + std::string(padding, 'x') + tail + R"("}],"b":"}"})";
      const auto event = split_watch_event(R"({"object":)" + object + R"(,"type":"ADDED"})");
      ASSERT_TRUE(event.has_value()) << event.error() << " with padding " << padding << " and " << tail;
      ASSERT_EQ(event->object.size(), object.size()) << "with padding " << padding << " and " << tail;
      ASSERT_FALSE(split_watch_event(R"({"object":)" + object.substr(0, object.size() - 1)).has_value());
    }
  }
}

TEST(SplitWatchEvent, TakesNestingOfAnyDepth) {
  const std::string object = R"({"a":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  const std::string line = R"({"type":"ADDED","object":)" + object + "}";
  const auto event = split_watch_event(line);
  ASSERT_TRUE(event.has_value()) << event.error();
  EXPECT_EQ(event->object, object);
}

class LineSplitterTest : public testing::Test {
 protected:
  Result<void> feed(std::string_view chunk) {
    return splitter_.feed(chunk, [this](std::string_view line) { lines_.emplace_back(line); });
  }

  LineSplitter splitter_{10};
  std::vector<std::string> lines_;
};

TEST_F(LineSplitterTest, CutsAtNewlinesWhereverChunksEnd) {
  const std::string text = "one\ntwo\r\n\n\r\nthree3\nlast";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    splitter_ = LineSplitter{10};
    lines_.clear();
    for (std::size_t at = 0; at < text.size(); at += size)
      ASSERT_TRUE(feed(std::string_view{text}.substr(at, size)).has_value());
    EXPECT_THAT(lines_, ElementsAre("one", "two", "three3")) << "in chunks of " << size;
    EXPECT_EQ(splitter_.pending(), 4U);
  }
}

TEST_F(LineSplitterTest, PassesALineOfOneChunkOnInPlace) {
  const std::string chunk = "whole\n";
  const char* seen = nullptr;
  ASSERT_TRUE(splitter_.feed(chunk, [&](std::string_view line) { seen = line.data(); }).has_value());
  EXPECT_EQ(seen, chunk.data());
}

TEST_F(LineSplitterTest, TakesALineOfExactlyTheLimit) {
  ASSERT_TRUE(feed("0123456789\n").has_value());
  EXPECT_THAT(lines_, ElementsAre("0123456789"));
}

TEST_F(LineSplitterTest, RefusesALineBeyondTheLimitBeforeItsEndHasCome) {
  ASSERT_TRUE(feed("ok\n0123456").has_value());
  const auto refused = feed("7890");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind, ErrorKind::bad_response);
  EXPECT_THAT(refused.error().message, HasSubstr("more than 10 bytes"));
  EXPECT_FALSE(feed("\nok\n").has_value()) << "a lost stream must stay lost";
  EXPECT_THAT(lines_, ElementsAre("ok"));
}

}  // namespace
}  // namespace hubferry::kube
