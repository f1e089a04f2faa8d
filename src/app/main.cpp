#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "app/cli/output.hpp"
#include "app/cli/terminal.hpp"
#include "app/commands/commands.hpp"

int main(int argc, char** argv) {
  using namespace hubferry::app;
  note_closed_pipes();
  CommandLine line{"hubferry", "moves managed clusters from one hub to another"};
  add_manager_command(line);
  add_klusterlet_command(line);
  add_status_command(line, std::cout);
  add_plan_command(line, std::cout);
  add_demo_command(line, std::cout);
  add_sim_command(line, std::cout);
  add_completion_command(line, std::cout);
  add_version_command(line, std::cout);

  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
  // Lines that go from edge to edge of a wide window are hard to read.
  constexpr std::size_t widest = 120;
  Surroundings surroundings{.out = std::cout, .err = std::cerr, .environment = environment};
  if (const auto width = Terminal::of(STDOUT_FILENO).width; width > 0) surroundings.width = std::min(width, widest);
  return line.run({argv + 1, argv + argc}, surroundings);
}
