#pragma once

#include <span>
#include <string_view>

namespace hubferry::ui {

/// A file of src/ui/page.
struct PageFile {
  std::string_view name;
  std::string_view content;
};

/// All of them: they are part of the binary, written by embed.py.
std::span<const PageFile> page_files();

}  // namespace hubferry::ui
