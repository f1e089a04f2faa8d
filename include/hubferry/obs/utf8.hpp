#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hubferry::obs {

/// The first character of a text: its code point and how many bytes it takes.
struct Utf8Character {
  char32_t code;
  std::size_t bytes;
  bool valid;  // false: code is U+FFFD and stands for `bytes` bytes that are no UTF-8
};

/// Decodes the first character of `text`, which must not be empty. Overlong forms, surrogates and code points beyond
/// U+10FFFF are invalid.
Utf8Character first_character(std::string_view text);

bool is_utf8(std::string_view text);

/// `text` with every invalid part replaced by U+FFFD.
std::string to_utf8(std::string_view text);

}  // namespace hubferry::obs
