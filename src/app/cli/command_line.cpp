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
  std::vector<std::string> unnamed;                        // positional arguments and what CLI11 did not recognize
  std::vector<std::string> unnamed_at_root;
};

namespace {

/// Forms that CLI11 does not support: it would take the next argument as the value of "--flag=", and "=json" as the
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

/// Rejects "--fast=", as an empty template variable produces it: CLI11 would read it as true, or as an argument.
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

/// Calls `flag.apply`; an error names the origin of the text.
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

void take_argument(const Argument& argument, const std::string& text) {
  try {
    argument.apply(text);
  } catch (const std::invalid_argument& error) {
    throw UsageError(argument.name + ": " + error.what());
  }
}

void take_arguments(const Command& command, const std::vector<std::string>& unnamed) {
  const auto& arguments = command.arguments();
  for (std::size_t i = unnamed.size(); i < arguments.size(); ++i)
    if (arguments[i].required) throw UsageError("argument " + arguments[i].name + " is required");
  for (std::size_t i = 0; i < unnamed.size(); ++i) {
    const bool repeats = i >= arguments.size() && !arguments.empty() && arguments.back().repeatable;
    if (i >= arguments.size() && !repeats) throw UsageError("unexpected argument '" + unnamed[i] + "'");
    take_argument(repeats ? arguments.back() : arguments[i], unnamed[i]);
  }
}

}  // namespace

int CommandLine::run(std::vector<std::string> arguments, const ProcessContext& context) const {
  const auto* command = arguments.empty() ? nullptr : find(arguments.front());
  const std::string who = command != nullptr ? invocation_ + " " + command->name() : invocation_;
  int code = 0;
  try {
    code = dispatch(std::move(arguments), context);
    flush(context.out);
  } catch (const UsageError& error) {
    context.err << who << ": " << error.what() << "\n" << "Run '" << who << " --help' for usage.\n";
    return 2;
  } catch (const OutputClosed& error) {
    if (received_sigpipe()) return sigpipe_exit_code;
    context.err << who << ": " << error.what() << "\n";
    return 1;
  } catch (const std::exception& error) {
    context.err << who << ": " << harmless(message_of(error)) << "\n";
    return 1;
  }
  return code;
}

/// A repeatable flag has several values in one variable, separated as in $KUBECONFIG: all such flags are files.
std::vector<std::string> values_of(const Flag& flag, const std::string& variable) {
  if (!flag.repeatable) return {variable};
  std::vector<std::string> values;
  std::size_t begin = 0;
  while (begin <= variable.size()) {
    const auto end = std::min(variable.find(':', begin), variable.size());
    if (end > begin) values.push_back(variable.substr(begin, end - begin));
    begin = end + 1;
  }
  return values;
}

int CommandLine::dispatch(std::vector<std::string> arguments, const ProcessContext& context) const {
  // Two common spellings.
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  if (!arguments.empty() && arguments.front() == "--version") arguments.front() = "version";

  const auto parsed = parse(std::move(arguments));
  if (!parsed.unnamed_at_root.empty()) refuse_at_root(parsed.unnamed_at_root.front());
  if (parsed.help) {
    const auto width = context.width;
    context.out << (parsed.command != nullptr ? parsed.command->help_text(program_, invocation_, width)
                                              : help_text(width));
    return 0;
  }
  if (parsed.command == nullptr) throw UsageError("no command given");
  const auto& command = *parsed.command;
  refuse_unknown_flags(command, parsed.unnamed);
  for (const auto& flag : command.flags()) {
    if (const auto given = parsed.values.find(flag.name); given != parsed.values.end()) {
      for (const auto& text : given->second)
        if (flag.repeatable || &text == &given->second.back()) apply(flag, text, "--" + flag.name);
      continue;
    }
    if (!flag.from_environment) continue;
    const auto variable = context.environment(flag.environment_name());
    if (!variable || variable->empty()) continue;
    for (const auto& text : values_of(flag, *variable))
      apply(flag, text, "environment variable " + flag.environment_name());
  }
  // After the flags: a flag without its value takes the next flag as the value, and that one's value is left over. The
  // error about the flag is the useful one.
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
  std::reverse(reversed.begin(), reversed.end());  // the order that CLI11 expects
  try {
    root.parse(reversed);
  } catch (const CLI::ParseError&) {
    // CLI11 does not validate values: the only error left is a last flag without a value.
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
    for (const auto& command : commands_)
      if (!command.is_hidden()) names.push_back(command.name());
    throw UsageError("unknown command '" + text + "'" + suggestion(text, names));
  }
  for (const auto& command : commands_)
    for (const auto& flag : command.flags())
      if ("--" + flag.name == flag_part(text))
        throw UsageError(flag_part(text) + " belongs after the command: " + invocation_ + " " + command.name() + " " +
                         text);
  throw UsageError("unknown flag " + flag_part(text));
}

void CommandLine::set_invoked_as(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);
  if (name == "kubectl-" + program_) invocation_ = "kubectl " + program_;
}

std::string CommandLine::help_text(std::size_t width) const {
  std::string text = invocation_ + ": " + summary_ + "\n\nusage: " + invocation_ + " COMMAND [flags]\n\ncommands:\n";
  const auto add = [&](const std::vector<std::string>& lines) {
    for (const auto& line : lines) text += line + "\n";
  };
  std::size_t name_width = 0;
  for (const auto& command : commands_)
    if (!command.is_hidden()) name_width = std::max(name_width, command.name().size());
  for (const auto& command : commands_) {
    if (command.is_hidden()) continue;
    const std::string name = "  " + command.name() + std::string(name_width - command.name().size() + 3, ' ');
    add(wrapped(command.summary(), width, name, std::string(name.size(), ' ')));
  }
  text += "\n";
  add(wrapped(invocation_ + " COMMAND --help shows a command's flags; " + invocation_ +
                  " --version prints the version. Most " +
                  "flags can also be set by an environment variable: --log-level by HUBFERRY_LOG_LEVEL.",
              width));
  return text;
}

}  // namespace hubferry::app
