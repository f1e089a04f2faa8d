#include <ostream>

#include "app/cli/command_line.hpp"
#include "app/cli/flag_values.hpp"
#include "app/commands/commands.hpp"

namespace hubferry::app {

void add_completion_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("completion", "print a shell completion script");
  const auto shell = std::make_shared<std::string>();
  const std::vector<std::string> shells{"bash", "zsh"};
  command.add_argument({.name = "SHELL",
                        .help = "bash or zsh.",
                        .required = true,
                        .apply = [shell, shells](const std::string& text) { *shell = parse_choice(text, shells); },
                        .choices = shells});
  command.example("source <(hubferry completion bash)", "for this shell; add the line to ~/.bashrc for all shells");
  command.example("hubferry completion zsh > ~/.zfunc/_hubferry", "for zsh, in a directory of $fpath");
  command.on_run([shell, &line, &out] {
    out << (*shell == "bash" ? bash_completion : zsh_completion)(line);
    return 0;
  });
}

}  // namespace hubferry::app
