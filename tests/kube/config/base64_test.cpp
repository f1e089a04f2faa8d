#include "hubferry/kube/base64.hpp"

#include <gtest/gtest.h>

namespace hubferry::kube {
namespace {

TEST(Base64, RoundTripsEveryByteAndEveryLength) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(decode_base64(encode_base64(bytes)), bytes) << i;
    bytes += static_cast<char>(i);
  }
}

TEST(Base64, AgreesWithTheStandardsExamples) {
  EXPECT_EQ(encode_base64(""), "");
  EXPECT_EQ(encode_base64("f"), "Zg==");
  EXPECT_EQ(encode_base64("fo"), "Zm8=");
  EXPECT_EQ(encode_base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, SkipsWhiteSpaceBecausePeopleWrapLines) {
  EXPECT_EQ(decode_base64("Zm9v\r\nYmFy \n"), "foobar");
  EXPECT_EQ(decode_base64("Zg=\n="), "f");
}

TEST(Base64, RefusesWhatIsNotBase64) {
  for (const auto* text : {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Zg==Zg==", "Zm9v=", "Zm_v", "Zm9v!", "a b c"})
    EXPECT_FALSE(decode_base64(text)) << text;
}

}  // namespace
}  // namespace hubferry::kube
