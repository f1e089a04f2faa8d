#pragma once

#include <iosfwd>

#include "app/cli/command_line.hpp"

namespace hubferry::app {

// Each subcommand lives in a file of its own, which declares its flags and what it does.
void add_manager_command(CommandLine& line);
void add_klusterlet_command(CommandLine& line);
void add_status_command(CommandLine& line, std::ostream& out);
void add_plan_command(CommandLine& line, std::ostream& out);
void add_demo_command(CommandLine& line, std::ostream& out);
void add_sim_command(CommandLine& line, std::ostream& out);
/// `line` is asked when the command runs: it may get further commands until then.
void add_completion_command(CommandLine& line, std::ostream& out);
void add_version_command(CommandLine& line, std::ostream& out);

}  // namespace hubferry::app
