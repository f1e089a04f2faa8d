#pragma once

#include <string>
#include <vector>

#include "app/cli/terminal.hpp"

namespace hubferry::app {

/// Rows under a heading, aligned as kubectl does it.
class TextTable {
 public:
  struct Cell {
    std::string text;
    Colour colour = Colour::plain;

    Cell(std::string content, Colour paint = Colour::plain) : text(std::move(content)), colour(paint) {}
    Cell(const char* content) : text(content) {}
  };

  /// `gap`: how many blanks there are between columns at least.
  explicit TextTable(std::vector<std::string> headings, std::size_t gap = 3)
      : headings_(std::move(headings)), gap_(gap) {}

  /// As many cells as there are headings. Empty ones are shown as "-".
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Each line begins with `indent`. The last column is cut where the terminal ends, the others are as wide as needed.
  [[nodiscard]] std::vector<std::string> lines(const Terminal& terminal, const std::string& indent = "") const;

 private:
  std::vector<std::string> headings_;
  std::size_t gap_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace hubferry::app
