#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hubferry::test {

/// A block between ``` lines of a page.
struct Block {
  std::string language;
  std::string text;
  std::size_t line = 0;  // of the page, where it begins

  /// The reason why it is not run, from its first line; absent: it is run.
  [[nodiscard]] std::optional<std::string> not_run() const;
};

/// A page of the documentation.
struct Page {
  std::string name;  // relative to the top of the source tree
  std::string text;
  std::vector<Block> blocks;
  std::vector<std::string> headings;

  /// What a link to a heading ends in, as GitHub makes it.
  [[nodiscard]] std::set<std::string> anchors() const;
  /// From a heading of the second level to the next one.
  [[nodiscard]] std::string section(const std::string& heading) const;
  /// The commands to run.
  [[nodiscard]] std::vector<Block> commands() const;
};

Page read_page(const std::string& name);
/// README.md and its neighbours, and those of docs/.
std::vector<Page> all_pages();

std::string anchor_of(const std::string& heading);
/// The names in backquotes in column `column` (from 0) of the tables in `text`.
std::set<std::string> names_in_column(const std::string& text, std::size_t column);

}  // namespace hubferry::test
