#pragma once

#include <string>

#include "app/cli/command_line.hpp"

namespace hubferry::app {

// Scripts that let a shell complete the program's commands, flags and values. They are made from the command line's
// own definition, so they know what the program knows. Flags whose placeholder is FILE or FOLDER complete paths.

std::string bash_completion(const CommandLine& line);
std::string zsh_completion(const CommandLine& line);

}  // namespace hubferry::app
