#include "hubferry/obs/utf8.hpp"

namespace hubferry::obs {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

unsigned char byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

bool is_continuation(std::string_view text, std::size_t index) {
  return index < text.size() && (byte_at(text, index) & 0xC0) == 0x80;
}

Utf8Character invalid(std::size_t bytes) {
  return {.code = 0xFFFD, .bytes = bytes, .valid = false};
}

}  // namespace

Utf8Character first_character(std::string_view text) {
  const auto lead = byte_at(text, 0);
  if (lead < 0x80) return {.code = lead, .bytes = 1, .valid = true};
  std::size_t length = 0;
  char32_t code = 0;
  char32_t least = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2, code = lead & 0x1F, least = 0x80;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3, code = lead & 0x0F, least = 0x800;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4, code = lead & 0x07, least = 0x10000;
  } else {
    return invalid(1);
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text, i)) return invalid(i);
    code = (code << 6) | (byte_at(text, i) & 0x3F);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < least || surrogate || code > 0x10FFFF) return invalid(length);
  return {.code = code, .bytes = length, .valid = true};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto character = first_character(text);
    if (!character.valid) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto character = first_character(text);
    result += character.valid ? text.substr(0, character.bytes) : replacement;
    text.remove_prefix(character.bytes);
  }
  return result;
}

}  // namespace hubferry::obs
