#pragma once

#include <bitset>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hubferry::worlds {

/// Texts that may stand nowhere else. A search takes as long as the text that it searches is, however many there are:
/// in large worlds there are hundreds, and every write is searched.
class Credentials {
 public:
  void add(std::string text);
  /// True if one of them is a part of the text.
  [[nodiscard]] bool occur_in(std::string_view text) const;

 private:
  std::set<std::string> all_;
  /// By eight bytes in their middle, which are less often the same than those at their begin.
  std::unordered_multimap<std::uint64_t, const std::string*> by_part_;
  std::bitset<65536> parts_;  // by a hash of such eight bytes
};

}  // namespace hubferry::worlds
