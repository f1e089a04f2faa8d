#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "hubferry/async/clock.hpp"

namespace hubferry::app {

/// Something that the user typed is wrong: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One flag, which can as a rule also be given as an environment variable.
struct Flag {
  std::string name;         // "log-level"
  std::string placeholder;  // "LEVEL"; empty for a switch
  std::string help;
  std::string default_text;
  /// Takes the text into the variable behind the flag; throws std::invalid_argument with a sentence about the text.
  std::function<void(const std::string& text)> apply;
  std::string short_name;  // "o"
  /// apply() is called for every time that the flag is given; the last one wins otherwise.
  bool repeatable = false;
  /// What it can be set to, where that is a short list: for shell completion.
  std::vector<std::string> choices = {};
  /// Whether the environment variable counts. Not for what is said anew with every call: a variable that was set for
  /// one command would surprise another.
  bool from_environment = true;

  [[nodiscard]] bool is_switch() const { return placeholder.empty(); }
  /// "HUBFERRY_LOG_LEVEL".
  [[nodiscard]] std::string environment_name() const;
};

/// One argument without a flag, such as the name in `hubferry status NAME`.
struct Argument {
  std::string name;
  std::string help;
  bool required = false;
  std::function<void(const std::string& text)> apply;
  std::vector<std::string> choices = {};  // as a Flag's
};

/// A subcommand: what it takes, what it says about itself, and what it does.
/// The variables that flags are bound to must live as long as the command; what they hold when the flag is added is
/// the default.
class Command {
 public:
  Command(std::string name, std::string summary) : name_(std::move(name)), summary_(std::move(summary)) {}

  /// What `--help` says below the summary.
  void describe(std::string text) { description_ = std::move(text); }
  void example(std::string line, std::string what) { examples_.push_back({std::move(line), std::move(what)}); }

  /// What the process's exit code tells.
  void exit_code(std::string code, std::string what) { exit_codes_.push_back({std::move(code), std::move(what)}); }

  void add(Flag flag);
  void add_switch(bool& target, std::string name, std::string help);
  void add_text(std::string& target, std::string name, std::string placeholder, std::string help);
  void add_integer(int& target, std::string name, int least, int most, std::string help);
  void add_number(double& target, std::string name, std::string help);
  /// One of `choices`.
  void add_choice(std::string& target, std::string name, std::string short_name, std::string placeholder,
                  std::vector<std::string> choices, std::string help);
  /// Must be above zero.
  void add_duration(async::Duration& target, std::string name, std::string help);
  /// These flags, which were added before, have no environment variable.
  void not_from_environment(const std::vector<std::string>& names);
  void add_argument(Argument argument) { arguments_.push_back(std::move(argument)); }

  /// Called when all flags are taken, for what concerns several of them. Throws UsageError.
  void on_check(std::function<void()> check) { check_ = std::move(check); }
  /// Returns the exit code. An exception becomes a sentence and exit code 1.
  void on_run(std::function<int()> run) { run_ = std::move(run); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& summary() const { return summary_; }
  [[nodiscard]] const std::vector<Flag>& flags() const { return flags_; }
  [[nodiscard]] const std::vector<Argument>& arguments() const { return arguments_; }
  /// In lines of at most `width` columns, as far as words allow.
  [[nodiscard]] std::string help_text(const std::string& program, std::size_t width) const;

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
  std::vector<Flag> flags_;
  std::vector<Argument> arguments_;
  std::vector<Example> examples_;
  std::vector<ExitCode> exit_codes_;
  std::function<void()> check_;
  std::function<int()> run_;
};

}  // namespace hubferry::app
