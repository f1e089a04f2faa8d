#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/cli/terminal.hpp"
#include "hubferry/async/clock.hpp"

namespace hubferry::app {

/// Rows below a heading, aligned as in kubectl.
class TextTable {
 public:
  struct Cell {
    std::string text;
    Colour colour = Colour::plain;

    Cell(std::string content, Colour paint = Colour::plain) : text(std::move(content)), colour(paint) {}
    Cell(const char* content) : text(content) {}
  };

  /// `gap`: the minimum number of blanks between columns.
  explicit TextTable(std::vector<std::string> headings, std::size_t gap = 3)
      : headings_(std::move(headings)), gap_(gap) {}

  /// One cell per heading. Empty cells are printed as "-".
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Each line begins with `indent`. Only the last column is truncated to the terminal's width.
  [[nodiscard]] std::vector<std::string> lines(const Terminal& terminal, const std::string& indent = "") const;

 private:
  std::vector<std::string> headings_;
  std::size_t gap_;
  std::vector<std::vector<Cell>> rows_;
};

/// Natural sort order: "cluster-2" before "cluster-10". Runs of digits compare as numbers, the rest as text.
bool natural_less(std::string_view first, std::string_view second);

/// A duration as kubectl prints ages: "45s", "3m20s", "75m", "5h10m", "3d".
std::string short_duration(async::Duration duration);

/// "1 cluster", "2 clusters".
std::string plural(std::size_t count, const std::string& noun);

}  // namespace hubferry::app
