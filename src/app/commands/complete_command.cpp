#include <memory>
#include <ostream>

#include "app/cli/common_flags.hpp"
#include "app/cli/flag_values.hpp"
#include "app/commands/commands.hpp"
#include "app/hubs/registered_hubs.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/names.hpp"
#include "hubferry/migration/resource.hpp"

namespace hubferry::app {

namespace {

// Nobody waits longer for a completion.
constexpr async::Duration completion_timeout = std::chrono::seconds{3};

struct CompleteOptions {
  std::string kubeconfig;
  std::string context;
  std::string from;
  std::string what;
};

/// Shells evaluate what they are offered: a server's answer that is no name must not reach them.
void print_name(std::string_view name, std::ostream& out) {
  if (kube::is_dns_subdomain(name)) out << name << "\n";
}

async::Awaitable<> print_names(ServerClient& client, const CompleteOptions& options, std::ostream& out) {
  if (options.what == "migrations") {
    const auto found = co_await client.api().list_all(migration::managed_cluster_migrations, {});
    if (found)
      for (const auto& migration : *found) print_name(migration.name(), out);
  } else if (options.what == "hubs") {
    for (const auto& hub : co_await read_hubs(client.api())) print_name(hub.name, out);
  } else if (!options.from.empty()) {
    for (const auto& cluster : co_await select_clusters(client, options.from, {})) print_name(cluster, out);
  }
}

/// A completion that fails completes nothing, and says nothing: the user is in the middle of a line.
int run_complete(const CompleteOptions& options, std::ostream& out) {
  try {
    ServerClient client{kube::find_config(options.kubeconfig, options.context)};
    return run_interruptibly([&]() -> async::Awaitable<int> {
      auto& clock = client.env().clock;
      co_await async::before_deadline(clock, clock.now() + completion_timeout, print_names(client, options, out));
      co_return 0;
    });
  } catch (const std::exception&) {
    return 1;
  }
}

}  // namespace

void add_complete_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("complete", "print names for shell completion");
  command.hide();
  const auto options = std::make_shared<CompleteOptions>();
  const std::vector<std::string> kinds{"migrations", "hubs", "clusters"};
  add_kubeconfig_flag(command, options->kubeconfig);
  add_context_flag(command, options->context);
  command.add_text(options->from, "from", "HUB", "The hub whose clusters are printed.");
  command.not_from_environment({"from"});
  command.add_argument(
      {.name = "KIND",
       .help = "migrations, hubs or clusters.",
       .required = true,
       .apply = [options, kinds](const std::string& text) { options->what = parse_choice(text, kinds); },
       .choices = kinds});
  command.on_run([options, &out] { return run_complete(*options, out); });
}

}  // namespace hubferry::app
