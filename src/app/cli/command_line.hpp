#pragma once

#include <functional>
#include <iosfwd>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/command.hpp"

namespace hubferry::app {

/// Where a command line gets its surroundings from: the process's own, or a test's.
struct Surroundings {
  std::ostream& out;
  std::ostream& err;
  /// nullopt when the variable is not set. An empty variable counts as not set.
  std::function<std::optional<std::string>(const std::string& name)> environment;
  std::size_t width = 80;  // of the help
};

/// The whole program as its user sees it: subcommands with flags.
/// Exit codes: 0 fine, 1 the command failed, 2 it was not understood.
class CommandLine {
 public:
  CommandLine(std::string program, std::string summary) : program_(std::move(program)), summary_(std::move(summary)) {}

  /// The reference stays valid.
  Command& add(std::string name, std::string summary) {
    return commands_.emplace_back(std::move(name), std::move(summary));
  }

  [[nodiscard]] const std::string& program() const { return program_; }
  [[nodiscard]] const std::list<Command>& commands() const { return commands_; }

  /// `arguments` are without the program's name.
  int run(std::vector<std::string> arguments, const Surroundings& surroundings) const;

 private:
  /// What was typed, not yet understood.
  struct Parsed;

  Parsed parse(std::vector<std::string> arguments) const;
  int dispatch(std::vector<std::string> arguments, const Surroundings& surroundings) const;
  [[nodiscard]] const Command* find(const std::string& name) const;
  [[noreturn]] void refuse_at_root(const std::string& text) const;
  [[nodiscard]] std::string help_text(std::size_t width) const;

  std::string program_;
  std::string summary_;
  std::list<Command> commands_;
};

}  // namespace hubferry::app
