#include "app/cli/command_line.hpp"

#include <algorithm>
#include <sstream>

#include "app/cli/flag_values.hpp"
#include "app/cli/terminal.hpp"

namespace hubferry::app {

namespace {

std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

/// A command that can be pasted into a shell: lines break only before flags and pipes.
std::string shell_lines(const std::string& command, std::size_t width) {
  const std::string indent = "  ";
  constexpr std::size_t room_for_backslash = 2;
  std::string text;
  std::string line = indent;
  for (std::size_t begin = 0; begin < command.size();) {
    const auto end = std::min({command.find(" --", begin + 1), command.find(" | ", begin + 1), command.size()});
    const auto part = command.substr(begin, end - begin);
    if (line != indent && columns(line) + columns(part) + room_for_backslash > width) {
      text += line + " \\\n";
      line = indent + "   ";
    }
    line += part;
    begin = end;
  }
  return text + line + "\n";
}

std::string flag_heading(const Flag& flag, std::size_t width) {
  std::string line = "  ";
  if (!flag.short_name.empty()) line += "-" + flag.short_name + ", ";
  line += "--" + flag.name + (flag.is_switch() ? "" : " " + flag.placeholder);
  std::string text;
  const auto add = [&](const std::string& part, const std::string& before) {
    if (columns(line) + before.size() + columns(part) > width) {
      text += line + "\n";
      line = "        " + part;
    } else {
      line += before + part;
    }
  };
  if (!flag.default_text.empty()) add("(default: " + flag.default_text + ")", " ");
  if (flag.from_environment) add("$" + flag.environment_name(), "   ");
  return text + line + "\n";
}

}  // namespace

std::string Flag::environment_name() const {
  std::string variable = "HUBFERRY_" + name;
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](char c) { return c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c); });
  return variable;
}

void Command::add(Flag flag) {
  for (const auto& known : flags_)
    if (known.name == flag.name) throw std::logic_error("flag --" + flag.name + " is declared twice");
  flags_.push_back(std::move(flag));
}

void Command::add_switch(bool& target, std::string name, std::string help) {
  add({.name = std::move(name),
       .placeholder = "",
       .help = std::move(help),
       .default_text = target ? "true" : "false",
       .apply = [&target](const std::string& text) { target = parse_switch(text); },
       .short_name = ""});
}

void Command::add_text(std::string& target, std::string name, std::string placeholder, std::string help) {
  add({.name = std::move(name),
       .placeholder = std::move(placeholder),
       .help = std::move(help),
       .default_text = target,
       .apply = [&target](const std::string& text) { target = text; },
       .short_name = ""});
}

void Command::add_integer(int& target, std::string name, int least, int most, std::string help) {
  add({.name = std::move(name),
       .placeholder = "N",
       .help = std::move(help),
       .default_text = std::to_string(target),
       .apply = [&target, least,
                 most](const std::string& text) { target = static_cast<int>(parse_integer(text, least, most)); },
       .short_name = ""});
}

void Command::add_number(double& target, std::string name, std::string help) {
  add({.name = std::move(name),
       .placeholder = "NUMBER",
       .help = std::move(help),
       .default_text = number_text(target),
       .apply = [&target](const std::string& text) { target = parse_number(text); },
       .short_name = ""});
}

void Command::add_choice(std::string& target, std::string name, std::string short_name, std::string placeholder,
                         std::vector<std::string> choices, std::string help) {
  const auto apply = [&target, choices](const std::string& text) { target = parse_choice(text, choices); };
  add({.name = std::move(name),
       .placeholder = std::move(placeholder),
       .help = std::move(help),
       .default_text = target,
       .apply = apply,
       .short_name = std::move(short_name),
       .choices = std::move(choices)});
}

void Command::add_duration(async::Duration& target, std::string name, std::string help) {
  add({.name = std::move(name),
       .placeholder = "DURATION",
       .help = std::move(help),
       .default_text = async::format_duration(target),
       .apply = [&target](const std::string& text) { target = parse_positive_duration(text); },
       .short_name = ""});
}

void Command::not_from_environment(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    const auto known = std::find_if(flags_.begin(), flags_.end(), [&](const Flag& flag) { return flag.name == name; });
    if (known == flags_.end()) throw std::logic_error("unknown flag --" + name);
    known->from_environment = false;
  }
}

std::string Argument::usage() const {
  const std::string words = name + (repeatable ? "..." : "");
  return required ? words : "[" + words + "]";
}

std::string Command::help_text(const std::string& program, const std::string& invocation, std::size_t width) const {
  const std::string indent(8, ' ');
  std::string text = joined(wrapped(invocation + " " + name_ + ": " + summary_, width));
  text += "\nusage: " + invocation + " " + name_;
  if (!flags_.empty()) text += " [flags]";
  for (const auto& argument : arguments_) text += " " + argument.usage();
  text += "\n";
  if (!description_.empty()) text += "\n" + joined(wrapped(description_, width));
  if (!arguments_.empty()) text += "\narguments:\n";
  for (const auto& argument : arguments_)
    text += "  " + argument.name + "\n" + joined(wrapped(argument.help, width, indent, indent));
  const bool has_variables =
      std::any_of(flags_.begin(), flags_.end(), [](const Flag& flag) { return flag.from_environment; });
  if (!flags_.empty()) text += "\nflags:\n";
  for (const auto& flag : flags_) text += flag_heading(flag, width) + joined(wrapped(flag.help, width, indent, indent));
  if (has_variables)
    text +=
        "\n" +
        joined(wrapped(
            "A flag with a $VARIABLE can also be set by that environment variable. The flag takes precedence.", width));
  if (!exit_codes_.empty()) text += "\nexit codes:\n";
  for (const auto& [code, what] : exit_codes_)
    text +=
        joined(wrapped(what, width, "  " + code + std::string(6 - std::min<std::size_t>(code.size(), 5), ' '), indent));
  if (!examples_.empty()) text += "\nexamples:\n";
  for (const auto& example : examples_) {
    const bool calls_program = example.line.starts_with(program + " ");
    const auto line = calls_program ? invocation + example.line.substr(program.size()) : example.line;
    text += joined(wrapped(example.what, width, "  # ", "  # ")) + shell_lines(line, width);
  }
  return text;
}

}  // namespace hubferry::app
