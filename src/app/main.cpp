#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "app/cli/output.hpp"
#include "app/cli/terminal.hpp"
#include "app/commands/commands.hpp"

namespace {

/// Each connection is a descriptor, and a manager has hundreds per hub. The soft limit is low for the sake of select(),
/// which is not used here.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  // Without it the limit is what it was.
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace hubferry::app;
  record_sigpipe();
  raise_descriptor_limit();
  CommandLine line{"hubferry", "migrates managed clusters from one hub to another"};
  if (argc > 0) line.set_invoked_as(argv[0]);
  add_manager_command(line);
  add_klusterlet_command(line);
  add_status_command(line, std::cout);
  add_plan_command(line, std::cout);
  add_migrate_command(line, std::cout);
  add_cancel_command(line, std::cout);
  add_retry_command(line, std::cout);
  add_rollback_command(line, std::cout);
  add_hub_command(line, std::cout);
  add_doctor_command(line, std::cout);
  add_demo_command(line, std::cout);
  add_sim_command(line, std::cout);
  add_completion_command(line, std::cout);
  add_complete_command(line, std::cout);
  add_version_command(line, std::cout);

  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
  // Very long lines are hard to read, however wide the window.
  constexpr std::size_t max_help_width = 120;
  ProcessContext context{.out = std::cout, .err = std::cerr, .environment = environment};
  if (const auto width = Terminal::of(STDOUT_FILENO).width; width > 0) context.width = std::min(width, max_help_width);
  return line.run({argv + 1, argv + argc}, context);
}
