#include <ostream>

#include "app/cli/command_line.hpp"
#include "app/cli/flag_values.hpp"
#include "app/commands/commands.hpp"

namespace hubferry::app {

namespace {

std::string spaced(const std::vector<std::string>& words) {
  std::string all;
  for (const auto& word : words) all += (all.empty() ? "" : " ") + word;
  return all;
}

bool names_a_path(const Flag& flag) {
  return flag.placeholder == "FILE" || flag.placeholder == "DIRECTORY";
}

/// What `complete` prints for the value of a flag; empty: nothing.
std::string names_for(const Flag& flag) {
  return flag.placeholder == "HUB" ? "hubs" : "";
}

std::string names_for(const Command& command) {
  for (const auto& argument : command.arguments())
    if (!argument.completes.empty()) return argument.completes;
  return "";
}

std::vector<std::string> spellings(const Flag& flag) {
  std::vector<std::string> names{"--" + flag.name};
  if (!flag.short_name.empty()) names.push_back("-" + flag.short_name);
  return names;
}

std::vector<std::string> command_names(const CommandLine& line) {
  std::vector<std::string> names;
  for (const auto& command : line.commands())
    if (!command.is_hidden()) names.push_back(command.name());
  names.emplace_back("help");
  return names;
}

std::vector<std::string> bash_words(const Command& command) {
  std::vector<std::string> words{"--help"};
  for (const auto& flag : command.flags()) words.push_back("--" + flag.name);
  for (const auto& argument : command.arguments())
    words.insert(words.end(), argument.choices.begin(), argument.choices.end());
  return words;
}

/// The case branch that completes the value of a flag; empty for a switch.
std::string bash_values(const std::string& program, const Command& command, const Flag& flag) {
  if (flag.is_switch()) return "";
  std::string pattern;
  for (const auto& name : spellings(flag)) pattern += (pattern.empty() ? "" : " | ") + command.name() + "," + name;
  std::string answer = "COMPREPLY=()";
  if (names_a_path(flag))
    answer = std::string{"mapfile -t COMPREPLY < <(compgen -"} + (flag.placeholder == "FILE" ? "f" : "d") +
             " -- \"$current\")";
  if (!flag.choices.empty())
    answer = "mapfile -t COMPREPLY < <(compgen -W '" + spaced(flag.choices) + "' -- \"$current\")";
  if (const auto names = names_for(flag); !names.empty())
    answer = "mapfile -t COMPREPLY < <(compgen -W \"$(_" + program + "_names " + names + ")\" -- \"$current\")";
  return "    " + pattern + ") " + answer + "; return ;;\n";
}

/// Escapes text for '…[text]' of _arguments.
std::string zsh_text(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\'') {
      safe += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe;
}

/// `names`: what `complete` prints; empty: nothing.
std::string zsh_value(const std::string& program, const std::string& placeholder,
                      const std::vector<std::string>& choices, const std::string& names) {
  std::string action = " ";
  if (!names.empty()) action = "{_" + program + "_names " + names + "}";
  if (placeholder == "FILE") action = "_files";
  if (placeholder == "DIRECTORY") action = "_files -/";
  if (!choices.empty()) action = "(" + spaced(choices) + ")";
  return ":" + zsh_text(placeholder) + ":" + action;
}

std::string zsh_flag(const std::string& program, const Flag& flag) {
  const std::string value = flag.is_switch() ? "" : zsh_value(program, flag.placeholder, flag.choices, names_for(flag));
  const std::string repeat = flag.repeatable ? "*" : "";
  std::string lines = "        '" + repeat + "--" + flag.name + (flag.is_switch() ? "" : "=") + "[" +
                      zsh_text(flag.help) + "]" + value + "'";
  if (!flag.short_name.empty())
    lines += " \\\n        '" + repeat + "-" + flag.short_name + "[" + zsh_text(flag.help) + "]" + value + "'";
  return lines;
}

}  // namespace

std::string bash_completion(const CommandLine& line) {
  const auto& program = line.program();
  std::string script =
      "# bash completion for " + program + ": source <(" + program + " completion bash)\n" +  //
      "_" + program + "_names() {\n" +
      "  # Of the server, and of the source hub, that the line names.\n"
      "  local -a flags=()\n"
      "  local i\n"
      "  for ((i = 2; i + 1 < COMP_CWORD; ++i)); do\n"
      "    case ${COMP_WORDS[i]} in\n"
      "      --kubeconfig | --context | --from)\n"
      "        if [[ ${COMP_WORDS[i+1]} == = ]]; then flags+=(\"${COMP_WORDS[i]}\" \"${COMP_WORDS[i+2]}\")\n"
      "        else flags+=(\"${COMP_WORDS[i]}\" \"${COMP_WORDS[i+1]}\"); fi ;;\n"
      "    esac\n"
      "  done\n"
      "  \"${COMP_WORDS[0]}\" complete \"$1\" \"${flags[@]}\" 2> /dev/null\n"
      "}\n" +
      "_" + program + "() {\n" +
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=''\n"
      "  # bash breaks --flag=value into three words.\n"
      "  if [[ $current == = ]]; then current=''\n"
      "  elif [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)) || [[ $previous == help ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W '" +
      spaced(command_names(line)) + " --help --version' -- \"$current\")\n" +
      "    return\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]},$previous in\n";
  for (const auto& command : line.commands())
    for (const auto& flag : command.flags())
      if (!command.is_hidden()) script += bash_values(program, command, flag);
  script += "  esac\n  case ${COMP_WORDS[1]} in\n";
  for (const auto& command : line.commands()) {
    if (command.is_hidden()) continue;
    script += "    " + command.name() + ") words='" + spaced(bash_words(command)) + "'";
    if (const auto names = names_for(command); !names.empty())
      script += "; [[ $current == -* ]] || words+=\" $(_" + program + "_names " + names + ")\"";
    script += " ;;\n";
  }
  script += "  esac\n  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n}\n";
  return script + "complete -F _" + program + " " + program + "\n";
}

std::string zsh_completion(const CommandLine& line) {
  const auto& program = line.program();
  std::string script = "#compdef " + program + "\n# zsh completion: source <(" + program +
                       " completion zsh), or save it as _" + program + " in a directory of $fpath\n" +  //
                       "_" + program + "_names() {\n" +
                       "  # Of the server, and of the source hub, that the line names.\n"
                       "  local -a flags\n"
                       "  local i\n"
                       "  for ((i = 2; i < CURRENT; ++i)); do\n"
                       "    case $words[i] in\n"
                       "      --kubeconfig | --context | --from)\n"
                       "        if ((i + 1 < CURRENT)); then flags+=($words[i] ${(Q)words[i+1]}); fi ;;\n"
                       "      --kubeconfig=* | --context=* | --from=*) flags+=(${(Q)words[i]}) ;;\n"
                       "    esac\n"
                       "  done\n"
                       "  compadd -- $($called_as complete $1 $flags 2> /dev/null)\n"
                       "}\n_" +
                       program + "() {\n  local -a commands\n  commands=(\n";
  for (const auto& command : line.commands())
    if (!command.is_hidden()) script += "    '" + command.name() + ":" + zsh_text(command.summary()) + "'\n";
  script += "  )\n  if ((CURRENT == 2)); then _describe command commands; return; fi\n";
  script += "  local called_as=${(Q)words[1]} command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n";
  for (const auto& command : line.commands()) {
    if (command.is_hidden()) continue;
    script += "    " + command.name() + ")\n      _arguments \\\n        '--help[show the usage]'";
    for (const auto& flag : command.flags()) script += " \\\n" + zsh_flag(program, flag);
    int position = 0;
    for (const auto& argument : command.arguments())
      script += " \\\n        '" + (argument.repeatable ? "*" : std::to_string(++position)) +
                zsh_value(program, argument.name, argument.choices, argument.completes) + "'";
    script += " ;;\n";
  }
  script += "  esac\n}\n";
  return script + "if [ \"$funcstack[1]\" = _" + program + " ]; then _" + program + " \"$@\"; else compdef _" +
         program + " " + program + "; fi\n";
}

namespace {

/// Quotes text for fish.
std::string fish_text(const std::string& text) {
  std::string safe = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe + "'";
}

std::string fish_names(const std::string& program, const std::string& names) {
  return "'(__" + program + "_names " + names + ")'";
}

std::string fish_flag(const std::string& program, const Command& command, const Flag& flag) {
  std::string text =
      "complete -c " + program + " -n '__fish_seen_subcommand_from " + command.name() + "' -l " + flag.name;
  if (!flag.short_name.empty()) text += " -s " + flag.short_name;
  // -x: takes a value that is no file; -r -F: a file.
  if (!flag.is_switch()) text += names_a_path(flag) ? " -r -F" : " -x";
  if (!flag.choices.empty()) text += " -a " + fish_text(spaced(flag.choices));
  if (const auto names = names_for(flag); !names.empty()) text += " -a " + fish_names(program, names);
  return text + " -d " + fish_text(flag.help) + "\n";
}

}  // namespace

std::string fish_completion(const CommandLine& line) {
  const auto& program = line.program();
  std::string script = "# fish completion: " + program + " completion fish | source\n" + "function __" + program +
                       "_names\n" +
                       "    # Of the server, and of the source hub, that the line names.\n"
                       "    set -l words (commandline -opc)\n"
                       "    set -l flags\n"
                       "    for i in (seq 2 (count $words))\n"
                       "        switch $words[$i]\n"
                       "            case --kubeconfig --context --from\n"
                       "                if test $i -lt (count $words)\n"
                       "                    set -a flags $words[$i] $words[(math $i + 1)]\n"
                       "                end\n"
                       "            case '--kubeconfig=*' '--context=*' '--from=*'\n"
                       "                set -a flags $words[$i]\n"
                       "        end\n"
                       "    end\n"
                       "    $words[1] complete $argv $flags 2> /dev/null\n"
                       "end\n" +
                       "complete -c " + program + " -f\n";
  const std::string first = "complete -c " + program + " -n __fish_use_subcommand ";
  for (const auto& command : line.commands())
    if (!command.is_hidden()) script += first + "-a " + command.name() + " -d " + fish_text(command.summary()) + "\n";
  script += first + "-a help -d 'show the usage of a command'\n" + first + "-l version -d 'show the version'\n";
  script += "complete -c " + program + " -l help -d 'show the usage'\n";
  script +=
      "complete -c " + program + " -n '__fish_seen_subcommand_from help' -a '" + spaced(command_names(line)) + "'\n";
  for (const auto& command : line.commands()) {
    if (command.is_hidden()) continue;
    if (const auto names = names_for(command); !names.empty())
      script += "complete -c " + program + " -n '__fish_seen_subcommand_from " + command.name() + "' -a " +
                fish_names(program, names) + "\n";
    for (const auto& flag : command.flags()) script += fish_flag(program, command, flag);
    for (const auto& argument : command.arguments())
      if (!argument.choices.empty())
        script += "complete -c " + program + " -n '__fish_seen_subcommand_from " + command.name() + "' -a " +
                  fish_text(spaced(argument.choices)) + "\n";
  }
  return script;
}

void add_completion_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("completion", "print a shell completion script");
  const auto shell = std::make_shared<std::string>();
  const std::vector<std::string> shells{"bash", "zsh", "fish"};
  command.add_argument({.name = "SHELL",
                        .help = "bash, zsh or fish.",
                        .required = true,
                        .apply = [shell, shells](const std::string& text) { *shell = parse_choice(text, shells); },
                        .choices = shells});
  command.example("source <(hubferry completion bash)", "for this shell; add the line to ~/.bashrc for all shells");
  command.example("hubferry completion zsh > ~/.zfunc/_hubferry", "for zsh, in a directory of $fpath");
  command.example("hubferry completion fish > ~/.config/fish/completions/hubferry.fish", "for fish");
  command.on_run([shell, &line, &out] {
    out << (*shell == "bash" ? bash_completion : *shell == "zsh" ? zsh_completion : fish_completion)(line);
    return 0;
  });
}

}  // namespace hubferry::app
