#include "app/cli/table.hpp"

#include <algorithm>

namespace hubferry::app {

namespace {

std::string cell_text(const std::string& text) {
  return text.empty() ? "-" : fitted(text, 0);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Removes the leading digits from `text` and returns them without leading zeros.
std::string_view take_number(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  auto number = text.substr(0, length);
  text.remove_prefix(length);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

}  // namespace

std::vector<std::string> TextTable::lines(const Terminal& terminal, const std::string& indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < headings_.size(); ++column) {
    std::size_t width = columns(headings_[column]);
    for (const auto& row : rows_) width = std::max(width, columns(cell_text(row.at(column).text)));
    widths.push_back(width);
  }
  const auto line = [&](const auto& cell_at) {
    std::string text = indent;
    std::size_t used = columns(indent);
    for (std::size_t column = 0; column < headings_.size(); ++column) {
      const auto& [content, colour] = cell_at(column);
      std::string cell = content;
      const bool last = column + 1 == headings_.size();
      if (last && terminal.width > 0) cell = fitted(cell, terminal.width > used + 1 ? terminal.width - used : 1);
      text += painted(cell, colour, terminal.colour);
      if (last) break;
      text += std::string(widths[column] - columns(cell) + gap_, ' ');
      used += widths[column] + gap_;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::vector<std::string> result;
  result.push_back(line([&](std::size_t column) { return std::pair{headings_[column], Colour::bold}; }));
  for (const auto& row : rows_)
    result.push_back(
        line([&](std::size_t column) { return std::pair{cell_text(row[column].text), row[column].colour}; }));
  return result;
}

bool natural_less(std::string_view first, std::string_view second) {
  auto left = first;
  auto right = second;
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
  return first < second;  // "a-01" and "a-1" are different names
}

std::string short_duration(async::Duration duration) {
  const auto total = std::max<std::int64_t>(std::chrono::floor<std::chrono::seconds>(duration).count(), 0);
  const auto text = [](std::int64_t amount, const char* unit) { return std::to_string(amount) + unit; };
  const auto two = [&](std::int64_t amount, const char* unit, std::int64_t rest, const char* rest_unit) {
    return text(amount, unit) + (rest > 0 ? text(rest, rest_unit) : "");
  };
  if (total < 120) return text(total, "s");
  if (total < 600) return two(total / 60, "m", total % 60, "s");
  if (total < 3 * 3600) return text(total / 60, "m");
  if (total < 8 * 3600) return two(total / 3600, "h", total % 3600 / 60, "m");
  if (total < 48 * 3600) return text(total / 3600, "h");
  return text(total / 86400, "d");
}

std::string plural(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace hubferry::app
