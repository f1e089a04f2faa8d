#pragma once

#include <functional>
#include <iosfwd>
#include <list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/async/clock.hpp"

namespace hubferry::app {

/// A usage error: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One flag. Most flags can also be set by an environment variable.
struct Flag {
  std::string name;         // "log-level"
  std::string placeholder;  // "LEVEL"; empty for a switch
  std::string help;
  std::string default_text;
  /// Parses `text` into the flag's variable. Throws std::invalid_argument with a message that quotes the text.
  std::function<void(const std::string& text)> apply;
  std::string short_name;  // "o"
  /// apply() is called for each occurrence of the flag, or for each part between colons of its environment variable.
  /// Otherwise the last occurrence wins.
  bool repeatable = false;
  /// The allowed values, if they are a short list: for shell completion.
  std::vector<std::string> choices = {};
  /// Whether the environment variable is read. False for flags of a single call, such as --output: a variable that
  /// was set for one command must not change another.
  bool from_environment = true;

  [[nodiscard]] bool is_switch() const { return placeholder.empty(); }
  /// "HUBFERRY_LOG_LEVEL".
  [[nodiscard]] std::string environment_name() const;
};

/// One positional argument, such as NAME in `hubferry status NAME`.
struct Argument {
  std::string name;
  std::string help;
  bool required = false;
  std::function<void(const std::string& text)> apply;
  std::vector<std::string> choices = {};  // as in Flag
  /// apply() is called for each word from here on: CLUSTER... It must be the last argument.
  bool repeatable = false;
  /// Names that shell completion asks `complete` for: "migrations", "hubs" or "clusters"; empty: none.
  std::string completes = "";

  /// "CLUSTER...", "[NAME]".
  [[nodiscard]] std::string usage() const;
};

/// A subcommand: its flags and arguments, its help, and the function that runs it.
/// Lifetime: the variables that flags are bound to outlive the command. Their values when the flag is added are the
/// defaults.
class Command {
 public:
  Command(std::string name, std::string summary) : name_(std::move(name)), summary_(std::move(summary)) {}

  /// The text below the summary in `--help`.
  void describe(std::string text) { description_ = std::move(text); }
  void example(std::string line, std::string what) { examples_.push_back({std::move(line), std::move(what)}); }

  /// Not in the list of commands, and not completed: for programs.
  void hide() { hidden_ = true; }
  [[nodiscard]] bool is_hidden() const { return hidden_; }

  /// Documents an exit code in `--help`.
  void exit_code(std::string code, std::string what) { exit_codes_.push_back({std::move(code), std::move(what)}); }

  void add(Flag flag);
  void add_switch(bool& target, std::string name, std::string help);
  void add_text(std::string& target, std::string name, std::string placeholder, std::string help);
  void add_integer(int& target, std::string name, int least, int most, std::string help);
  void add_number(double& target, std::string name, std::string help);
  /// The value must be one of `choices`.
  void add_choice(std::string& target, std::string name, std::string short_name, std::string placeholder,
                  std::vector<std::string> choices, std::string help);
  /// The value must be greater than zero.
  void add_duration(async::Duration& target, std::string name, std::string help);
  /// Disables the environment variables of these flags, which must have been added before.
  void not_from_environment(const std::vector<std::string>& names);
  void add_argument(Argument argument) { arguments_.push_back(std::move(argument)); }

  /// `check` runs after all flags are parsed and validates combinations of them. Throws UsageError.
  void on_check(std::function<void()> check) { check_ = std::move(check); }
  /// `run` returns the exit code. An exception is printed as one message, with exit code 1.
  void on_run(std::function<int()> run) { run_ = std::move(run); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& summary() const { return summary_; }
  [[nodiscard]] const std::vector<Flag>& flags() const { return flags_; }
  [[nodiscard]] const std::vector<Argument>& arguments() const { return arguments_; }
  /// Wrapped to `width` columns where words allow. `invocation`: how people call `program`; examples begin with it.
  [[nodiscard]] std::string help_text(const std::string& program, const std::string& invocation,
                                      std::size_t width) const;

  void check() const {
    if (check_) check_();
  }
  [[nodiscard]] int run() const { return run_(); }

 private:
  struct ExitCode {
    std::string code;
    std::string what;
  };
  struct Example {
    std::string line;
    std::string what;
  };

  std::string name_;
  std::string summary_;
  std::string description_;
  bool hidden_ = false;
  std::vector<Flag> flags_;
  std::vector<Argument> arguments_;
  std::vector<Example> examples_;
  std::vector<ExitCode> exit_codes_;
  std::function<void()> check_;
  std::function<int()> run_;
};

/// What a command line needs from its process; tests pass their own.
struct ProcessContext {
  std::ostream& out;
  std::ostream& err;
  /// Returns nullopt if the variable is not set. An empty variable counts as not set.
  std::function<std::optional<std::string>(const std::string& name)> environment;
  std::size_t width = 80;  // of the help text, in columns
};

/// The program's command line: subcommands with flags.
/// Exit codes: 0 success, 1 the command failed, 2 usage error.
class CommandLine {
 public:
  CommandLine(std::string program, std::string summary) : program_(std::move(program)), summary_(std::move(summary)) {}

  /// The reference stays valid as long as the command line.
  Command& add(std::string name, std::string summary) {
    return commands_.emplace_back(std::move(name), std::move(summary));
  }

  [[nodiscard]] const std::string& program() const { return program_; }
  /// How people call the program, for texts: "kubectl hubferry" if it is kubectl's plugin.
  [[nodiscard]] const std::string& invocation() const { return invocation_; }
  /// `name` is argv[0]. kubectl runs `kubectl-PROGRAM` as its command PROGRAM.
  void set_invoked_as(std::string_view name);
  [[nodiscard]] const std::list<Command>& commands() const { return commands_; }

  /// `arguments` exclude the program's name.
  int run(std::vector<std::string> arguments, const ProcessContext& context) const;

 private:
  /// The arguments after parsing, values not yet validated.
  struct Parsed;

  Parsed parse(std::vector<std::string> arguments) const;
  int dispatch(std::vector<std::string> arguments, const ProcessContext& context) const;
  [[nodiscard]] const Command* find(const std::string& name) const;
  [[noreturn]] void refuse_at_root(const std::string& text) const;
  [[nodiscard]] std::string help_text(std::size_t width) const;

  std::string program_;
  std::string invocation_ = program_;
  std::string summary_;
  std::list<Command> commands_;
};

// Scripts for shell completion of the program's commands, flags and values, generated from its command line. Flags
// whose placeholder is FILE or DIRECTORY complete paths, those of HUB, and arguments that say so, names that the
// program reads from the global hub.
std::string bash_completion(const CommandLine& line);
std::string zsh_completion(const CommandLine& line);
std::string fish_completion(const CommandLine& line);

}  // namespace hubferry::app
