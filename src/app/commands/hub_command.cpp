#include <unistd.h>

#include <memory>
#include <ostream>

#include "app/cli/common_flags.hpp"
#include "app/cli/flag_values.hpp"
#include "app/cli/output.hpp"
#include "app/commands/commands.hpp"
#include "app/hubs/add_hub.hpp"
#include "app/hubs/hub_check.hpp"
#include "app/verbs/submit.hpp"

namespace hubferry::app {

namespace {

struct HubCommandOptions {
  std::string kubeconfig;
  std::string context;
  std::string action;
  std::string name;
  std::string use = "both";
  std::string output = "table";
  std::string hub_kubeconfig;
  std::string hub_context;
  std::string server;
  async::Duration token_duration = std::chrono::hours{720};
  bool has_token_duration = false;  // it was given
  bool has_use = false;
  bool dry_run = false;

  [[nodiscard]] bool adds() const {
    return !hub_kubeconfig.empty() || !hub_context.empty() || !server.empty() || has_token_duration || dry_run;
  }
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

async::Awaitable<int> add_one_hub(ServerClient& client, const HubCommandOptions& options, const Invocation& invocation,
                                  std::ostream& out) {
  AddHubOptions adding;
  adding.hub = options.name;
  adding.admin = kube::load_kubeconfig(options.hub_kubeconfig, options.hub_context);
  adding.server = options.server;
  adding.token_duration = options.token_duration;
  adding.dry_run = options.dry_run;
  co_await add_hub(client, std::move(adding), out);
  if (!options.dry_run) out << "Check it: " << invocation.command("hub check " + options.name) << "\n";
  co_return 0;
}

int run_hub(const HubCommandOptions& options, const std::string& program, std::ostream& out) {
  ServerClient client{kube::find_config(options.kubeconfig, options.context)};
  const Invocation invocation{program, options.kubeconfig, options.context};
  return run_interruptibly([&]() -> async::Awaitable<int> {
    if (options.action == "list") co_return co_await list_hubs(client, options, out);
    if (options.action == "add") co_return co_await add_one_hub(client, options, invocation, out);
    co_return co_await check_one_hub(client, options, out);
  });
}

}  // namespace

void add_hub_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("hub", "list the hubs, check one, or add one");
  command.describe(
      "list shows the hubs that the global hub knows, and whether each can be reached. check NAME diagnoses one hub "
      "with "
      "the kubeconfig that the manager uses: registration, connection, credential, the kinds that it serves, and every "
      "permission of manifests/hub-rbac; nothing is changed. add NAME registers a hub on which manifests/hub-rbac has "
      "been applied: with an administrator's kubeconfig it gets a token of the manager's account there, and writes a "
      "Secret with it to the hub's namespace on the global hub. Repeated, it renews the token.");
  command.exit_code("0", "list: the hubs could be read; check: the hub can be used; add: it is registered");
  command.exit_code("1", "error; check: it cannot be used");
  command.exit_code("130", "interrupted by Ctrl-C");
  const auto options = std::make_shared<HubCommandOptions>();
  const std::vector<std::string> actions{"list", "check", "add"};
  add_kubeconfig_flag(command, options->kubeconfig);
  add_context_flag(command, options->context);
  const std::vector<std::string> uses{"source", "target", "both"};
  command.add({.name = "as",
               .placeholder = "ROLE",
               .help = "check: what the hub is to be used as: source, target or both.",
               .default_text = options->use,
               .apply =
                   [options, uses](const std::string& text) {
                     options->use = parse_choice(text, uses);
                     options->has_use = true;
                   },
               .short_name = "",
               .choices = uses});
  command.add_text(options->hub_kubeconfig, "hub-kubeconfig", "FILE", "add: an administrator's kubeconfig of the hub.");
  command.add_text(options->hub_context, "hub-context", "CONTEXT", "add: its context, instead of the current one.");
  command.add_text(options->server, "server", "URL",
                   "add: the hub's API server as the manager reaches it, if not as the kubeconfig has it.");
  command.add({.name = "token-duration",
               .placeholder = "DURATION",
               .help = "add: how long the manager's token is valid; the hub may allow less.",
               .default_text = async::format_duration(options->token_duration),
               .apply =
                   [options](const std::string& text) {
                     options->token_duration = parse_positive_duration(text);
                     options->has_token_duration = true;
                   },
               .short_name = ""});
  command.add_switch(options->dry_run, "dry-run", "add: print what would be written, and write nothing.");
  command.not_from_environment({"as", "hub-kubeconfig", "hub-context", "server", "token-duration", "dry-run"});
  add_output_flag(command, options->output, {"table", "json"}, "Output format: table or json.");
  command.add_argument(
      {.name = "ACTION",
       .help = "list, check or add.",
       .required = true,
       .apply = [options, actions](const std::string& text) { options->action = parse_choice(text, actions); },
       .choices = actions});
  command.add_argument({.name = "NAME",
                        .help = "The hub to check or to add.",
                        .required = false,
                        .apply = [options](const std::string& text) { options->name = parse_object_name(text); },
                        .completes = "hubs"});
  command.example("hubferry hub list", "all hubs");
  command.example("hubferry hub check hub2 --as target", "before clusters are moved to it");
  command.example("hubferry hub check hub1 -o json | jq .checks", "for scripts");
  command.example("hubferry hub add hub2 --hub-kubeconfig hub2.admin", "register a hub, or renew its token");
  command.on_check([options] {
    if (options->action != "list" && options->name.empty())
      throw UsageError("hub " + options->action + " needs the NAME of a hub");
    if (options->action == "add" && options->hub_kubeconfig.empty())
      throw UsageError("hub add needs --hub-kubeconfig, an administrator's kubeconfig of the hub");
    if (options->action != "add" && options->adds())
      throw UsageError("--hub-kubeconfig, --hub-context, --server, --token-duration and --dry-run are for hub add");
    if (options->action != "check" && options->has_use) throw UsageError("--as is for hub check");
    if (options->action == "add" && options->output != "table")
      throw UsageError("--output is for hub list and hub check");
    if (options->action == "list" && !options->name.empty())
      throw UsageError("unexpected argument '" + options->name + "'");
  });
  command.on_run([options, &line, &out] { return run_hub(*options, line.invocation(), out); });
}

}  // namespace hubferry::app
