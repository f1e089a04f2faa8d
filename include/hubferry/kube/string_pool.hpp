#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hubferry::kube {

/// Strings that thousands of cached objects have in common (label keys, condition types, reasons), kept once for the
/// life of the process. A reference to one costs 4 bytes.
/// Bounded, since strings come from outside: at most `most_strings` of at most `longest` bytes; what does not fit is
/// the caller's to keep. Thread-safe; known strings are found without a lock.
class StringPool {
 public:
  static constexpr std::uint32_t most_strings = 4096;
  static constexpr std::size_t longest = 256;
  /// The number of the empty string, which is always there.
  static constexpr std::uint32_t empty = 0;

  /// The string's number, or nothing when the pool cannot take it.
  static std::optional<std::uint32_t> intern(std::string_view text);
  /// The string with that number, which intern() gave on any thread.
  static std::string_view text(std::uint32_t number);
};

}  // namespace hubferry::kube
