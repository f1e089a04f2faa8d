#include "hubferry/kube/base64.hpp"

#include <array>
#include <cstdint>

namespace hubferry::kube {

namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::uint8_t no_digit = 0xff;

constexpr auto digit_values = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(no_digit);
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    values[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
  return values;
}();

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto group = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < group.size() ? static_cast<unsigned char>(group[k]) : 0);
    for (std::size_t k = 0; k < 4; ++k) text += k <= group.size() ? alphabet[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::optional<std::string> decode_base64(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  std::size_t digits = 0;   // of the group of four that is being read
  std::size_t padding = 0;  // '=' seen: only white space and more padding may follow
  for (const char c : text) {
    if (is_space(c)) continue;
    if (c == '=') {
      if (digits + ++padding > 4 || digits < 2) return std::nullopt;
      continue;
    }
    const auto value = digit_values[static_cast<unsigned char>(c)];
    if (value == no_digit || padding > 0) return std::nullopt;
    bits = bits << 6 | value;
    if (++digits < 4) continue;
    bytes += static_cast<char>(bits >> 16);
    bytes += static_cast<char>(bits >> 8);
    bytes += static_cast<char>(bits);
    bits = 0;
    digits = 0;
  }
  if (digits == 0) return padding == 0 ? std::optional{std::move(bytes)} : std::nullopt;
  if (digits + padding != 4) return std::nullopt;
  if (digits == 3) {
    bytes += static_cast<char>(bits >> 10);
    bytes += static_cast<char>(bits >> 2);
  } else {
    bytes += static_cast<char>(bits >> 4);
  }
  return bytes;
}

}  // namespace hubferry::kube
