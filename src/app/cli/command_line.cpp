#include "app/cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <ostream>

#include "app/cli/flag_values.hpp"
#include "app/cli/output.hpp"
#include "app/cli/terminal.hpp"

namespace hubferry::app {

struct CommandLine::Parsed {
  const Command* command = nullptr;
  bool help = false;
  std::map<std::string, std::vector<std::string>> values;  // by flag
  std::vector<std::string> unnamed;                        // arguments, and what CLI11 could not place
  std::vector<std::string> unnamed_at_root;
};

namespace {

/// Spellings that CLI11 does not know: it would take the next argument as the value of "--flag=", and "=json" as the
/// value of "-o=json".
std::vector<std::string> split_values(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  for (const auto& argument : arguments) {
    const auto equals = argument.find('=');
    const bool empty_value = argument.starts_with("--") && equals > 2 && equals == argument.size() - 1;
    const bool short_flag = argument.starts_with('-') && equals == 2 && argument[1] != '-';
    if (empty_value || short_flag) {
      result.push_back(argument.substr(0, equals));
      result.push_back(argument.substr(equals + 1));
    } else {
      result.push_back(argument);
    }
  }
  return result;
}

/// "--fast=", from a template with nothing to put in: CLI11 would take it for true, or for an argument.
void refuse_empty_switches(const Command& command, const std::vector<std::string>& arguments) {
  for (const auto& flag : command.flags())
    if (flag.is_switch() && std::find(arguments.begin(), arguments.end(), "--" + flag.name + "=") != arguments.end())
      throw UsageError("--" + flag.name + ": '' is neither true nor false");
}

std::string option_name(const Flag& flag) {
  return (flag.short_name.empty() ? "" : "-" + flag.short_name + ",") + "--" + flag.name;
}

/// "--flag=value" -> "--flag".
std::string flag_part(const std::string& argument) {
  return argument.substr(0, argument.find('='));
}

bool looks_like_flag(const std::string& argument) {
  return argument.size() > 1 && argument.starts_with('-');
}

std::string suggestion(const std::string& typed, const std::vector<std::string>& known) {
  const auto meant = nearest(typed, known);
  return meant ? " (did you mean " + *meant + "?)" : "";
}

std::vector<std::string> flag_names(const Command& command) {
  std::vector<std::string> names{"--help"};
  for (const auto& flag : command.flags()) names.push_back("--" + flag.name);
  return names;
}

/// Calls `flag.apply` and says where a bad text came from.
void apply(const Flag& flag, const std::string& text, const std::string& origin) {
  try {
    flag.apply(text);
  } catch (const std::invalid_argument& error) {
    throw UsageError(origin + ": " + error.what());
  }
}

void refuse_unknown_flags(const Command& command, const std::vector<std::string>& unnamed) {
  for (const auto& text : unnamed)
    if (looks_like_flag(text))
      throw UsageError("unknown flag " + flag_part(text) + suggestion(flag_part(text), flag_names(command)));
}

void take_arguments(const Command& command, const std::vector<std::string>& unnamed) {
  const auto& arguments = command.arguments();
  if (unnamed.size() > arguments.size()) throw UsageError("unexpected argument '" + unnamed[arguments.size()] + "'");
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i >= unnamed.size()) {
      if (arguments[i].required) throw UsageError("the argument " + arguments[i].name + " is missing");
      continue;
    }
    try {
      arguments[i].apply(unnamed[i]);
    } catch (const std::invalid_argument& error) {
      throw UsageError(arguments[i].name + ": " + error.what());
    }
  }
}

}  // namespace

int CommandLine::run(std::vector<std::string> arguments, const Surroundings& surroundings) const {
  const auto* command = arguments.empty() ? nullptr : find(arguments.front());
  const std::string who = command != nullptr ? program_ + " " + command->name() : program_;
  int code = 0;
  try {
    code = dispatch(std::move(arguments), surroundings);
    flush(surroundings.out);
  } catch (const UsageError& error) {
    surroundings.err << who << ": " << error.what() << "\n" << who << " --help tells what it takes\n";
    return 2;
  } catch (const OutputClosed& error) {
    if (has_met_a_closed_pipe()) return exit_code_of_a_closed_pipe;
    surroundings.err << who << ": " << error.what() << "\n";
    return 1;
  } catch (const std::exception& error) {
    surroundings.err << who << ": " << sentence_of(error) << "\n";
    return 1;
  }
  return code;
}

int CommandLine::dispatch(std::vector<std::string> arguments, const Surroundings& surroundings) const {
  // Two spellings that people try first.
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  if (!arguments.empty() && arguments.front() == "--version") arguments.front() = "version";

  const auto parsed = parse(std::move(arguments));
  if (!parsed.unnamed_at_root.empty()) refuse_at_root(parsed.unnamed_at_root.front());
  if (parsed.help) {
    const auto width = surroundings.width;
    surroundings.out << (parsed.command != nullptr ? parsed.command->help_text(program_, width) : help_text(width));
    return 0;
  }
  if (parsed.command == nullptr) throw UsageError("a command is missing");
  const auto& command = *parsed.command;
  refuse_unknown_flags(command, parsed.unnamed);
  for (const auto& flag : command.flags()) {
    if (const auto given = parsed.values.find(flag.name); given != parsed.values.end()) {
      for (const auto& text : given->second)
        if (flag.repeatable || &text == &given->second.back()) apply(flag, text, "--" + flag.name);
      continue;
    }
    if (!flag.from_environment) continue;
    if (const auto variable = surroundings.environment(flag.environment_name()); variable && !variable->empty())
      apply(flag, *variable, "environment variable " + flag.environment_name());
  }
  // After the flags: one that lost its value has taken the next flag for it, and left that one's value over.
  take_arguments(command, parsed.unnamed);
  command.check();
  return command.run();
}

CommandLine::Parsed CommandLine::parse(std::vector<std::string> arguments) const {
  CLI::App root;
  root.set_help_flag();
  root.allow_extras();
  root.require_subcommand(0, 1);
  auto* root_help = root.add_flag("-h,--help");

  std::map<const Command*, CLI::App*> parsers;
  std::map<const Command*, CLI::Option*> helps;
  std::map<const Flag*, CLI::Option*> options;
  for (const auto& command : commands_) {
    auto* parser = root.add_subcommand(command.name());
    parser->set_help_flag();
    parser->allow_extras();
    parsers[&command] = parser;
    helps[&command] = parser->add_flag("-h,--help");
    for (const auto& flag : command.flags()) {
      auto* option = flag.is_switch() ? parser->add_flag(option_name(flag)) : parser->add_option(option_name(flag));
      options[&flag] = option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
  }

  if (const auto* command = arguments.empty() ? nullptr : find(arguments.front()))
    refuse_empty_switches(*command, arguments);
  auto reversed = split_values(arguments);
  std::reverse(reversed.begin(), reversed.end());  // so CLI11 wants them
  try {
    root.parse(reversed);
  } catch (const CLI::ParseError&) {
    // Values are not checked by CLI11: what is left to go wrong is a flag at the end without one.
    throw UsageError(arguments.back() + " needs a value");
  }

  Parsed parsed;
  parsed.help = root_help->count() > 0;
  parsed.unnamed_at_root = root.remaining();
  for (const auto& command : commands_) {
    if (!parsers[&command]->parsed()) continue;
    parsed.command = &command;
    parsed.help |= helps[&command]->count() > 0;
    parsed.unnamed = parsers[&command]->remaining();
    for (const auto& flag : command.flags())
      if (options[&flag]->count() > 0) parsed.values[flag.name] = options[&flag]->results();
  }
  return parsed;
}

const Command* CommandLine::find(const std::string& name) const {
  for (const auto& command : commands_)
    if (command.name() == name) return &command;
  return nullptr;
}

void CommandLine::refuse_at_root(const std::string& text) const {
  if (!looks_like_flag(text)) {
    std::vector<std::string> names{"help"};
    for (const auto& command : commands_) names.push_back(command.name());
    throw UsageError("unknown command '" + text + "'" + suggestion(text, names));
  }
  for (const auto& command : commands_)
    for (const auto& flag : command.flags())
      if ("--" + flag.name == flag_part(text))
        throw UsageError(flag_part(text) + " belongs after the command: " + program_ + " " + command.name() + " " +
                         text);
  throw UsageError("unknown flag " + flag_part(text));
}

std::string CommandLine::help_text(std::size_t columns_of_screen) const {
  std::string text = program_ + ": " + summary_ + "\n\nusage: " + program_ + " COMMAND [flags]\n\ncommands:\n";
  const auto add = [&](const std::vector<std::string>& lines) {
    for (const auto& line : lines) text += line + "\n";
  };
  std::size_t width = 0;
  for (const auto& command : commands_) width = std::max(width, command.name().size());
  for (const auto& command : commands_) {
    const std::string name = "  " + command.name() + std::string(width - command.name().size() + 3, ' ');
    add(wrapped(command.summary(), columns_of_screen, name, std::string(name.size(), ' ')));
  }
  text += "\n";
  add(wrapped(program_ + " COMMAND --help tells more about each; " + program_ + " --version says which this is. Most " +
                  "flags can also be given as an environment variable: --log-level as HUBFERRY_LOG_LEVEL.",
              columns_of_screen));
  return text;
}

}  // namespace hubferry::app
