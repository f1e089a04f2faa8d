#pragma once

#include <string_view>

namespace hubferry::ui {

/// A file of src/ui/page: part of the binary, written by embed.py. Empty: there is no such file.
std::string_view page_file(std::string_view name);

}  // namespace hubferry::ui
