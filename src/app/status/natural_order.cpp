#include "app/status/natural_order.hpp"

#include <algorithm>

namespace hubferry::app {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Takes the digits that `text` begins with off it; without zeros at the front, which do not make a number bigger.
std::string_view take_number(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  auto number = text.substr(0, length);
  text.remove_prefix(length);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

}  // namespace

bool comes_before(std::string_view one, std::string_view other) {
  auto left = one;
  auto right = other;
  while (!left.empty() && !right.empty()) {
    if (is_digit(left.front()) && is_digit(right.front())) {
      const auto a = take_number(left);
      const auto b = take_number(right);
      if (a.size() != b.size()) return a.size() < b.size();
      if (a != b) return a < b;
      continue;
    }
    if (left.front() != right.front()) return left.front() < right.front();
    left.remove_prefix(1);
    right.remove_prefix(1);
  }
  if (left.empty() != right.empty()) return left.empty();
  return one < other;  // "a-01" and "a-1" are two names
}

}  // namespace hubferry::app
