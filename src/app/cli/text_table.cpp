#include "app/cli/text_table.hpp"

namespace hubferry::app {

namespace {

std::string shown(const std::string& text) {
  return text.empty() ? "-" : fitted(text, 0);
}

}  // namespace

std::vector<std::string> TextTable::lines(const Terminal& terminal, const std::string& indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < headings_.size(); ++column) {
    std::size_t width = columns(headings_[column]);
    for (const auto& row : rows_) width = std::max(width, columns(shown(row.at(column).text)));
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
    result.push_back(line([&](std::size_t column) { return std::pair{shown(row[column].text), row[column].colour}; }));
  return result;
}

}  // namespace hubferry::app
