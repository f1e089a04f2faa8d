#include "hubferry/obs/log.hpp"

#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <limits>
#include <sstream>

#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/obs/utf8.hpp"

namespace hubferry::obs {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class LogFormatTest : public testing::Test {
 protected:
  LogCapture json() { return LogCapture{{.format = LogFormat::json, .clock = &loop_.clock()}}; }
  LogCapture text() { return LogCapture{{.format = LogFormat::text, .clock = &loop_.clock()}}; }

  async::VirtualLoop loop_;
};

/// What a log processor reads.
boost::json::object parse(const std::string& line) {
  return boost::json::parse(line).as_object();
}

TEST_F(LogFormatTest, AJsonLineHasTimeLevelLoggerMessageContextAndFieldsInThatOrder) {
  auto capture = json();
  const auto log = capture.logger().named("manager").with("migration", "m1");
  log.warn("slow hub", {{"hub", "h1"}, {"attempt", 3}});
  EXPECT_THAT(capture.lines(),
              ElementsAre(R"({"ts":"2030-01-01T00:00:00.000000Z","level":"warn","logger":"manager","msg":"slow hub",)"
                          R"("migration":"m1","hub":"h1","attempt":3})"));
}

TEST_F(LogFormatTest, ATextLineIsForPeople) {
  auto capture = text();
  capture.logger().named("manager").info("ready", {{"hub", "h1"}, {"note", "two words"}, {"empty", ""}});
  capture.logger().error("no name");
  EXPECT_THAT(capture.lines(),
              ElementsAre(R"(2030-01-01T00:00:00.000Z INFO  manager ready hub=h1 note="two words" empty="")",
                          "2030-01-01T00:00:00.000Z ERROR no name"));
}

TEST_F(LogFormatTest, EveryKindOfValueIsRendered) {
  auto capture = json();
  const std::string lvalue = "kept";
  capture.logger().info("values", {{"text", lvalue},
                                   {"temporary", std::string("moved")},
                                   {"literal", "fixed"},
                                   {"null", static_cast<const char*>(nullptr)},
                                   {"int", -1},
                                   {"least", std::numeric_limits<std::int64_t>::min()},
                                   {"most", std::numeric_limits<std::uint64_t>::max()},
                                   {"size", std::size_t{7}},
                                   {"half", 0.5},
                                   {"float", 0.25F},
                                   {"yes", true},
                                   {"wait", 90s},
                                   {"error", std::make_exception_ptr(std::runtime_error("broken"))},
                                   {"no_error", std::exception_ptr{}},
                                   {"token", Secret{"hunter2"}}});
  const auto object = parse(capture.lines().at(0));
  EXPECT_EQ(object.at("text"), "kept");
  EXPECT_EQ(object.at("temporary"), "moved");
  EXPECT_EQ(object.at("literal"), "fixed");
  EXPECT_EQ(object.at("null"), "");
  EXPECT_EQ(object.at("int"), -1);
  EXPECT_EQ(object.at("least"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(object.at("most"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(object.at("size"), 7);
  EXPECT_EQ(object.at("half"), 0.5);
  EXPECT_EQ(object.at("float"), 0.25);
  EXPECT_EQ(object.at("yes"), true);
  EXPECT_EQ(object.at("wait"), "1m30s");
  EXPECT_EQ(object.at("error"), "broken");
  EXPECT_TRUE(object.at("no_error").is_null());
  EXPECT_EQ(object.at("token"), "[redacted]");
}

// JSON has no such numbers; a line that cannot be parsed is a line lost.
TEST_F(LogFormatTest, NumbersThatJsonLacksBecomeText) {
  auto capture = json();
  capture.logger().info("odd", {{"nan", std::nan("")},
                                {"inf", std::numeric_limits<double>::infinity()},
                                {"minus", -std::numeric_limits<double>::infinity()}});
  const auto object = parse(capture.lines().at(0));
  EXPECT_EQ(object.at("nan"), "NaN");
  EXPECT_EQ(object.at("inf"), "+Inf");
  EXPECT_EQ(object.at("minus"), "-Inf");
}

// What a hub answers ends up in logs: it must not be able to write lines of its own.
TEST_F(LogFormatTest, NothingInAMessageKeyOrValueCanForgeALine) {
  const std::string evil =
      "x\"}\n{\"ts\":\"forged\"\r\x1b[2J" + std::string(1, '\0') + "\x7f\\ \xe2\x80\xa8 \xc2\x85 \xe2\x80\xae";
  for (auto format : {LogFormat::json, LogFormat::text}) {
    LogCapture capture{{.format = format, .clock = &loop_.clock()}};
    capture.logger().named(evil).with(evil, evil).info(evil, {{evil, evil}});
    const auto line = capture.lines().at(0);
    EXPECT_THAT(line, Not(HasSubstr("\n")));
    EXPECT_THAT(line, Not(HasSubstr("\r")));
    EXPECT_THAT(line, Not(HasSubstr("\x1b")));
    EXPECT_THAT(line, Not(HasSubstr("\xc2\x85"))) << "a C1 control character: next line";
    EXPECT_THAT(line, Not(HasSubstr("\xe2\x80\xa8"))) << "U+2028: line separator";
    EXPECT_THAT(line, Not(HasSubstr("\xe2\x80\xae"))) << "U+202E: right-to-left override";
    if (format == LogFormat::json) EXPECT_EQ(std::string(parse(line).at("msg").as_string()), evil);
  }
}

TEST_F(LogFormatTest, EveryByteSequenceGivesAValidLine) {
  auto capture = json();
  // Lone continuation, overlong '/', surrogate, beyond U+10FFFF, cut short, impossible byte.
  const std::string broken[] = {"a\x80z", "a\xc0\xafz", "a\xed\xa0\x80z", "a\xf4\x90\x80\x80z", "a\xe2\x82", "a\xffz"};
  for (const auto& text : broken) capture.logger().info(text);
  for (int byte = 0; byte < 256; ++byte) capture.logger().info(std::string(1, static_cast<char>(byte)) + "z");
  for (const auto& line : capture.lines()) {
    EXPECT_TRUE(is_utf8(line)) << testing::PrintToString(line);
    const auto message = parse(line).at("msg").as_string();
    EXPECT_FALSE(message.empty());
  }
  EXPECT_THAT(capture.lines().at(0), HasSubstr("a\xEF\xBF\xBDz"));
  EXPECT_THAT(capture.lines().at(4), HasSubstr("\"a\xEF\xBF\xBD\""));
}

TEST_F(LogFormatTest, TextBeyondAsciiStaysReadable) {
  auto capture = json();
  capture.logger().info("Grüße, 世界 \xf0\x9f\x9a\xa2");
  EXPECT_THAT(capture.lines().at(0), HasSubstr("Grüße, 世界 \xf0\x9f\x9a\xa2"));
}

// Container runtimes cut long lines, and half a JSON object is lost.
TEST_F(LogFormatTest, AHugeValueIsCutAndSaysSo) {
  auto capture = json();
  capture.logger().info("big", {{"body", std::string(100'000, 'x')}});
  const auto body = parse(capture.lines().at(0)).at("body").as_string();
  EXPECT_LT(body.size(), 10'000U);
  EXPECT_THAT(std::string(body), testing::EndsWith("x... (91808 bytes more)"));
}

TEST_F(LogFormatTest, NoLineIsLongerThanAContainerRuntimeTakes) {
  const std::string texts[] = {std::string(100'000, 'x'), std::string(100'000, '\x01'), std::string(100'000, '\xff'),
                               std::string(100'000, '"')};
  for (auto format : {LogFormat::json, LogFormat::text}) {
    for (const auto& text : texts) {
      LogCapture capture{{.format = format, .clock = &loop_.clock()}};
      const auto log = capture.logger().named("kube").with("one", text).with("two", text).with("three", text);
      log.info(text, {{"a", text}, {"b", text}, {"c", text}, {"d", text}, {"e", text}, {"f", text}, {"last", 7}});
      const auto line = capture.lines().at(0);
      EXPECT_LT(line.size(), 16UL * 1024);
      EXPECT_TRUE(is_utf8(line));
      if (format == LogFormat::json) EXPECT_EQ(parse(line).at("last"), 7);
    }
  }
}

TEST_F(LogFormatTest, ACutNeverSplitsACharacter) {
  auto capture = json();
  // Bytes 8191 to 8193 are one character.
  capture.logger().info(std::string(8191, 'x') + "世界" + std::string(100, 'y'));
  EXPECT_THAT(capture.lines().at(0), HasSubstr("x... ("));
  EXPECT_THAT(capture.lines().at(0), Not(HasSubstr("\xEF\xBF\xBD")));
}

TEST(Logger, NamesNest) {
  LogCapture capture;
  capture.logger().named("kube").named("watch").info("x");
  EXPECT_TRUE(capture.contains(R"("logger":"kube.watch")"));
}

TEST(Logger, ContextBelongsToTheCopyThatWasGivenIt) {
  LogCapture capture;
  const auto plain = capture.logger();
  const auto detailed = plain.with("phase", "confirming");
  plain.info("plain");
  detailed.info("detailed");
  EXPECT_THAT(capture.lines(), ElementsAre(Not(HasSubstr("phase")), HasSubstr(R"("phase":"confirming")")));
}

TEST(Logger, LevelsBelowTheSinksAreNotEvenRendered) {
  LogCapture capture;
  const auto log = capture.logger();
  capture.set_level(Level::warn);
  log.debug("no");
  log.info("no");
  log.warn("yes");
  log.log(Level::error, "yes");
  EXPECT_FALSE(log.enabled(Level::info));
  EXPECT_TRUE(log.enabled(Level::warn));
  EXPECT_EQ(capture.lines().size(), 2U);
  capture.set_level(Level::debug);
  EXPECT_TRUE(log.enabled(Level::debug)) << "a level change reaches loggers that exist already";
}

TEST(Logger, DefaultConstructedItDiscardsEverything) {
  const Logger nothing;
  EXPECT_FALSE(nothing.enabled(Level::error));
  nothing.with("key", 1).named("name").error("nobody reads this");
}

TEST(LogNames, AreReadBackAsTheyAreWritten) {
  for (auto level : {Level::debug, Level::info, Level::warn, Level::error})
    EXPECT_EQ(parse_level(to_string(level)), level);
  for (auto format : {LogFormat::json, LogFormat::text}) EXPECT_EQ(parse_log_format(to_string(format)), format);
  EXPECT_EQ(parse_level("INFO"), std::nullopt);
  EXPECT_EQ(parse_level(""), std::nullopt);
  EXPECT_EQ(parse_log_format("yaml"), std::nullopt);
}

TEST(Secret, ShowsItselfNowhere) {
  const Secret secret{"hunter2"};
  std::ostringstream stream;
  stream << secret;
  EXPECT_EQ(stream.str(), "[redacted]");
  EXPECT_EQ(testing::PrintToString(secret), "[redacted]");
  EXPECT_EQ(boost::json::serialize(boost::json::value_from(secret)), R"("[redacted]")");
  for (auto format : {LogFormat::json, LogFormat::text}) {
    LogCapture capture{{.format = format}};
    capture.logger().with("context", secret).info("login", {{"token", secret}});
    EXPECT_FALSE(capture.contains("hunter2"));
    EXPECT_TRUE(capture.contains("[redacted]"));
  }
  static_assert(!std::is_convertible_v<Secret, std::string>);
  static_assert(!std::is_convertible_v<Secret, std::string_view>);
  static_assert(!std::is_convertible_v<std::string, Secret>);
}

TEST(Secret, IsRevealedOnlyOnRequestAndComparesByText) {
  const Secret a{"same"};
  const Secret copy = a;
  EXPECT_EQ(a.reveal(), "same");
  EXPECT_EQ(copy, Secret{"same"});
  EXPECT_FALSE(a == Secret{"else"});
  EXPECT_FALSE(a == Secret{"same "});
  EXPECT_TRUE(Secret{}.empty());
}

}  // namespace
}  // namespace hubferry::obs
