#include <unistd.h>

#include <memory>
#include <ostream>

#include "app/cli/common_flags.hpp"
#include "app/cli/flag_values.hpp"
#include "app/cli/output.hpp"
#include "app/commands/commands.hpp"
#include "app/hubs/hub_check.hpp"

namespace hubferry::app {

namespace {

struct HubCommandOptions {
  std::string kubeconfig;
  std::string context;
  std::string action;
  std::string name;
  std::string use = "both";
  std::string output = "table";
};

async::Awaitable<int> list_hubs(ServerClient& client, const HubCommandOptions& options, std::ostream& out) {
  auto hubs = co_await read_hubs(client.api());
  const auto all = co_await summarize(client, std::move(hubs));
  if (options.output == "json") {
    out << to_indented_json(hub_list_json(all));
    co_return 0;
  }
  if (all.empty()) out << "The global hub knows no hubs.\n";
  if (!all.empty())
    for (const auto& line : hub_table(all, Terminal::of(STDOUT_FILENO))) out << line << "\n";
  co_return 0;
}

async::Awaitable<int> check_one_hub(ServerClient& client, const HubCommandOptions& options, std::ostream& out) {
  const auto hubs = co_await read_hubs(client.api());
  const HubUse use{options.use != "target", options.use != "source"};
  const auto checks = co_await check_hub(client, select_hub(hubs, options.name), use);
  if (options.output == "json") {
    out << to_indented_json(check_json(options.name, checks));
  } else {
    auto terminal = Terminal::of(STDOUT_FILENO);
    // The end of a message says what to do.
    terminal.width = 0;
    for (const auto& line : check_table(checks, terminal)) out << line << "\n";
  }
  co_return is_usable(checks) ? 0 : 1;
}

int run_hub(const HubCommandOptions& options, std::ostream& out) {
  ServerClient client{kube::find_config(options.kubeconfig, options.context)};
  return run_interruptibly([&]() -> async::Awaitable<int> {
    if (options.action == "list") co_return co_await list_hubs(client, options, out);
    co_return co_await check_one_hub(client, options, out);
  });
}

}  // namespace

void add_hub_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("hub", "list the hubs, or check one: connection, credential and permissions");
  command.describe(
      "list shows the hubs that the global hub knows, and whether each can be reached. check NAME diagnoses one hub "
      "with "
      "the kubeconfig that the manager uses: registration, connection, credential, the kinds that it serves, and every "
      "permission of manifests/hub-rbac. Nothing is changed.");
  command.exit_code("0", "list: the hubs could be read; check: the hub can be used");
  command.exit_code("1", "error; check: it cannot be used");
  command.exit_code("130", "interrupted by Ctrl-C");
  const auto options = std::make_shared<HubCommandOptions>();
  const std::vector<std::string> actions{"list", "check"};
  add_kubeconfig_flag(command, options->kubeconfig);
  add_context_flag(command, options->context);
  command.add_choice(options->use, "as", "", "ROLE", {"source", "target", "both"},
                     "What the checked hub is to be used as: source, target or both.");
  command.not_from_environment({"as"});
  add_output_flag(command, options->output, {"table", "json"}, "Output format: table or json.");
  command.add_argument(
      {.name = "ACTION",
       .help = "list or check.",
       .required = true,
       .apply = [options, actions](const std::string& text) { options->action = parse_choice(text, actions); },
       .choices = actions});
  command.add_argument(
      {.name = "NAME", .help = "The hub to check.", .required = false, .apply = [options](const std::string& text) {
         options->name = parse_object_name(text);
       }});
  command.example("hubferry hub list", "all hubs");
  command.example("hubferry hub check hub2 --as target", "before clusters are moved to it");
  command.example("hubferry hub check hub1 -o json | jq .checks", "for scripts");
  command.on_check([options] {
    if (options->action == "check" && options->name.empty()) throw UsageError("hub check needs the NAME of a hub");
    if (options->action == "list" && !options->name.empty())
      throw UsageError("unexpected argument '" + options->name + "'");
  });
  command.on_run([options, &out] { return run_hub(*options, out); });
}

}  // namespace hubferry::app
