#pragma once

#include <iosfwd>

#include "app/cli/command_line.hpp"

namespace hubferry::app {

// Each subcommand is defined in its own file: its flags, its help, and what it does.
void add_manager_command(CommandLine& line);
void add_klusterlet_command(CommandLine& line);
void add_status_command(CommandLine& line, std::ostream& out);
void add_plan_command(CommandLine& line, std::ostream& out);
void add_migrate_command(CommandLine& line, std::ostream& out);
void add_cancel_command(CommandLine& line, std::ostream& out);
void add_retry_command(CommandLine& line, std::ostream& out);
void add_rollback_command(CommandLine& line, std::ostream& out);
void add_hub_command(CommandLine& line, std::ostream& out);
void add_demo_command(CommandLine& line, std::ostream& out);
void add_sim_command(CommandLine& line, std::ostream& out);
void add_doctor_command(CommandLine& line, std::ostream& out);
/// Hidden: shell completion calls it.
void add_complete_command(CommandLine& line, std::ostream& out);
/// Reads `line` when the command runs: commands that are added later are included.
void add_completion_command(CommandLine& line, std::ostream& out);
void add_version_command(CommandLine& line, std::ostream& out);

}  // namespace hubferry::app
