#include "app/command.hpp"

#include <algorithm>
#include <sstream>

#include "app/flag_values.hpp"

namespace hubferry::app {

namespace {

std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

/// Breaks `text` into lines that begin with `indent`.
std::string wrapped(const std::string& text, const std::string& indent) {
  constexpr std::size_t width = 100;
  std::istringstream words{text};
  std::string result;
  std::string line = indent;
  for (std::string word; words >> word;) {
    if (line.size() > indent.size() && line.size() + 1 + word.size() > width) {
      result += line + "\n";
      line = indent;
    }
    if (line.size() > indent.size()) line += ' ';
    line += word;
  }
  return result + line + "\n";
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

std::string Command::help_text(const std::string& program) const {
  std::string text = program + " " + name_ + ": " + summary_ + "\n\nusage: " + program + " " + name_;
  if (!flags_.empty()) text += " [flags]";
  for (const auto& argument : arguments_) text += argument.required ? " " + argument.name : " [" + argument.name + "]";
  text += "\n";
  if (!description_.empty()) text += "\n" + wrapped(description_, "");
  if (!arguments_.empty()) {
    text += "\narguments:\n";
    for (const auto& argument : arguments_) text += "  " + argument.name + "\n" + wrapped(argument.help, "        ");
  }
  if (!flags_.empty()) text += "\nflags, each with the environment variable that sets it too (the flag wins):\n";
  for (const auto& flag : flags_) {
    text += "  ";
    if (!flag.short_name.empty()) text += "-" + flag.short_name + ", ";
    text += "--" + flag.name + (flag.is_switch() ? "" : " " + flag.placeholder);
    if (!flag.default_text.empty()) text += " (default: " + flag.default_text + ")";
    text += "   $" + flag.environment_name() + "\n" + wrapped(flag.help, "        ");
  }
  if (!examples_.empty()) text += "\nexamples:\n";
  for (const auto& example : examples_) text += wrapped("# " + example.what, "  ") + "  " + example.line + "\n";
  return text;
}

}  // namespace hubferry::app
