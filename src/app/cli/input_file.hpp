#pragma once

#include <string>

namespace hubferry::app {

/// All of a file that the user named. Throws std::runtime_error with its name and what is in the way.
std::string read_file(const std::string& path);

/// The same of standard input, to its end.
std::string read_standard_input();

}  // namespace hubferry::app
