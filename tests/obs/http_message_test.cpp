#include "obs/http_message.hpp"

#include <gmock/gmock.h>
#include <zlib.h>

#include "hubferry/async/clock.hpp"
#include "hubferry/obs/bind_address.hpp"

namespace hubferry::obs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(ParseTarget, SplitsAndDecodes) {
  const auto request = parse_target("/ready%7a?verbose&exclude=a%20b&exclude=c+d&&x=");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->path, "/readyz");
  EXPECT_THAT(request->query,
              ElementsAre(Pair("verbose", ""), Pair("exclude", "a b"), Pair("exclude", "c d"), Pair("x", "")));
  EXPECT_TRUE(request->has_query("verbose"));
  EXPECT_FALSE(request->has_query("verb"));
  EXPECT_THAT(request->query_values("exclude"), ElementsAre("a b", "c d"));
}

TEST(ParseTarget, TakesAProxysForm) {
  EXPECT_EQ(parse_target("http://host:8080/metrics?x=1")->path, "/metrics");
  EXPECT_EQ(parse_target("http://host")->path, "/");
  EXPECT_EQ(parse_target("HTTP://host/metrics#x")->path, "/metrics");
  EXPECT_EQ(parse_target("http://host?x=/metrics")->path, "/");
  EXPECT_EQ(parse_target("http://host?x=/metrics")->query_values("x"), std::vector<std::string>{"/metrics"});
}

TEST(ParseTarget, RefusesWhatIsNoPath) {
  for (const auto* bad : {"", "*", "metrics", "host:443", "http", "httpx://host/", "/%", "/%4", "/%zz", "/?%0", "?x"})
    EXPECT_EQ(parse_target(bad), std::nullopt) << bad;
}

TEST(MediaQuality, TheMostSpecificEntryCounts) {
  EXPECT_EQ(media_quality("text/*;q=0.3, text/plain;q=0.7, */*;q=0.5", "text/plain", ""), 0.7);
  EXPECT_EQ(media_quality("text/*;q=0.3, */*;q=0.5", "text/plain", ""), 0.3);
  EXPECT_EQ(media_quality("*/*;q=0.5", "text/plain", ""), 0.5);
  EXPECT_EQ(media_quality("image/png", "text/plain", ""), 0);
  EXPECT_EQ(media_quality("TEXT/Plain; Version=0.0.4 ; Q=0.2", "text/plain", "version=0.0.4"), 0.2);
  EXPECT_EQ(media_quality("text/plain;version=\"0.0.4\"", "text/plain", "version=0.0.4"), 1);
  EXPECT_EQ(media_quality("text/plain;version=1", "text/plain", "version=0.0.4"), 0);
}

TEST(MediaQuality, NonsenseIsNoPreference) {
  for (const auto* bad : {"", ",", ";", ";;,,=", "text/plain;q=x", "text/plain;q=", "text/plain;q", "/", "*;q=nan"})
    EXPECT_EQ(media_quality(bad, "text/plain", "version=1"), 0) << bad;
  EXPECT_EQ(media_quality("text/plain;q=7", "text/plain", ""), 1);
  EXPECT_EQ(media_quality("text/plain;q=-7", "text/plain", ""), 0);
}

TEST(AcceptsGzip, ByNameOrStarUnlessForbidden) {
  EXPECT_TRUE(accepts_gzip("gzip"));
  EXPECT_TRUE(accepts_gzip("deflate, GZIP;q=0.5"));
  EXPECT_TRUE(accepts_gzip("*"));
  EXPECT_FALSE(accepts_gzip(""));
  EXPECT_FALSE(accepts_gzip("gzip;q=0"));
  EXPECT_FALSE(accepts_gzip("gzip;q=0, *"));
  EXPECT_FALSE(accepts_gzip("br"));
}

TEST(HttpDate, IsTheFormThatHttpWants) {
  EXPECT_EQ(http_date(async::parse_time("1994-11-06T08:49:37Z")), "Sun, 06 Nov 1994 08:49:37 GMT");
}

std::string gunzip(const std::string& packed) {
  std::string text(1'000'000, '\0');
  z_stream stream{};
  inflateInit2(&stream, 15 + 16);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

TEST(Gzip, CanBeUnpacked) {
  std::string mixed;
  for (int i = 0; i < 100'000; ++i) mixed += static_cast<char>(i * 7919 >> 3);
  for (const auto& text : {std::string(), std::string("x"), std::string(100'000, 'y'), mixed})
    EXPECT_EQ(gunzip(gzip(text)), text);
}

TEST(BindAddress, IsReadAsGoUsersTypeIt) {
  EXPECT_EQ(parse_bind_address(":8080"), (BindAddress{"", 8080}));
  EXPECT_EQ(parse_bind_address("127.0.0.1:0"), (BindAddress{"127.0.0.1", 0}));
  EXPECT_EQ(parse_bind_address("[::1]:65535"), (BindAddress{"::1", 65535}));
  EXPECT_EQ(parse_bind_address("localhost:80"), (BindAddress{"localhost", 80}));
  EXPECT_EQ(parse_bind_address("0"), std::nullopt);
  EXPECT_EQ(parse_bind_address(""), std::nullopt);
}

TEST(BindAddress, AWrongOneNamesItselfAndWhatWouldBeRight) {
  for (const auto* bad : {"8080", ":", "host", "host:", ":65536", ":-1", ":http", "::1:80", "[::1]", "[]:80", "[::1:80",
                          "[::1]x:80", "a b:80", ":80 ", "http://host:80", ":+1", "[xy/]:1"}) {
    try {
      parse_bind_address(bad);
      ADD_FAILURE() << bad << " was accepted";
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("'" + std::string(bad) + "' is not a bind address"));
      EXPECT_THAT(error.what(), HasSubstr("127.0.0.1:8080"));
    }
  }
}

}  // namespace
}  // namespace hubferry::obs
