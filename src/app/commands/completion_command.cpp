#include <ostream>

#include "app/cli/completion.hpp"
#include "app/cli/flag_values.hpp"
#include "app/commands/commands.hpp"

namespace hubferry::app {

void add_completion_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("completion", "print a script that lets your shell complete hubferry's commands and flags");
  const auto shell = std::make_shared<std::string>();
  const std::vector<std::string> shells{"bash", "zsh"};
  command.add_argument({.name = "SHELL",
                        .help = "bash or zsh.",
                        .required = true,
                        .apply = [shell, shells](const std::string& text) { *shell = parse_choice(text, shells); },
                        .choices = shells});
  command.example("source <(hubferry completion bash)", "for this shell; put the line into ~/.bashrc for all of them");
  command.example("hubferry completion zsh > ~/.zfunc/_hubferry", "for zsh, in a folder that $fpath names");
  command.on_run([shell, &line, &out] {
    out << (*shell == "bash" ? bash_completion : zsh_completion)(line);
    return 0;
  });
}

}  // namespace hubferry::app
