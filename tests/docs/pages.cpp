#include "docs/pages.hpp"

#include <algorithm>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "manifests/manifest_files.hpp"

namespace hubferry::test {

namespace fs = std::filesystem;

std::optional<std::string> Block::not_run() const {
  constexpr std::string_view mark = "# Not run by the tests: ";
  if (!text.starts_with(mark)) return std::nullopt;
  return text.substr(mark.size(), text.find('\n') - mark.size());
}

std::set<std::string> Page::anchors() const {
  std::set<std::string> all;
  for (const auto& heading : headings) all.insert(anchor_of(heading));
  return all;
}

std::string Page::section(const std::string& heading) const {
  const auto begin = text.find("\n## " + heading + "\n");
  if (begin == std::string::npos) throw std::runtime_error(name + " has no section " + heading);
  return text.substr(begin, text.find("\n## ", begin + 1) - begin);
}

std::vector<Block> Page::commands() const {
  std::vector<Block> wanted;
  std::ranges::copy_if(blocks, std::back_inserter(wanted),
                       [](const Block& block) { return block.language == "sh" && !block.not_run(); });
  return wanted;
}

Page read_page(const std::string& name) {
  Page page;
  page.name = name;
  page.text = text_of(source_root() / name);
  std::istringstream lines{page.text};
  bool inside = false;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) page.blocks.push_back({line.substr(3), "", number});
    } else if (inside) {
      page.blocks.back().text += line + "\n";
    } else if (line.starts_with("#")) {
      page.headings.push_back(line.substr(line.find_first_not_of("# ")));
    }
  }
  if (inside) throw std::runtime_error(name + ": the last block has no end");
  return page;
}

std::vector<Page> all_pages() {
  std::vector<Page> pages;
  for (const auto& directory : {source_root(), source_root() / "docs"})
    for (const auto& entry : fs::directory_iterator(directory))
      if (entry.path().extension() == ".md") pages.push_back(read_page(fs::relative(entry.path(), source_root())));
  std::ranges::sort(pages, {}, &Page::name);
  return pages;
}

std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const unsigned char c : heading) {
    if (std::isalnum(c) != 0 || c == '-' || c == '_')
      anchor += static_cast<char>(std::tolower(c));
    else if (c == ' ')
      anchor += '-';
  }
  return anchor;
}

std::set<std::string> names_in_column(const std::string& text, std::size_t column) {
  std::set<std::string> names;
  const std::regex quoted{"`([^`]+)`"};
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("|")) continue;
    std::istringstream cells{line.substr(1)};
    std::string cell;
    for (std::size_t i = 0; i <= column; ++i)
      if (!std::getline(cells, cell, '|')) cell.clear();
    for (std::sregex_iterator match{cell.begin(), cell.end(), quoted}, end; match != end; ++match)
      names.insert((*match)[1]);
  }
  return names;
}

}  // namespace hubferry::test
