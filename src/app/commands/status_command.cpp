#include <unistd.h>

#include <algorithm>
#include <ostream>

#include "app/cli/common_flags.hpp"
#include "app/cli/flag_values.hpp"
#include "app/cli/output.hpp"
#include "app/cli/server_client.hpp"
#include "app/commands/commands.hpp"
#include "app/status/find_migration.hpp"
#include "app/status/follow_migrations.hpp"
#include "app/status/migration_view.hpp"
#include "app/status/mysql_status.hpp"
#include "app/status/relocator_status.hpp"
#include "hubferry/async/shutdown.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/mysql/resource.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/relocator/names.hpp"

namespace hubferry::app {

namespace json = kube::json;

namespace {

struct StatusOptions {
  std::string kubeconfig;
  std::string context;
  std::string ns;  // empty: all
  bool all_namespaces = false;
  bool watch = false;
  bool relocators = false;
  bool mysql = false;
  std::string output = "table";
  std::string name;  // empty: all migrations
};

NamespaceColumn namespace_column(const StatusOptions& options) {
  if (!options.ns.empty()) return NamespaceColumn::never;
  return options.all_namespaces ? NamespaceColumn::always : NamespaceColumn::where_they_differ;
}

json::object as_list(const std::vector<kube::Object>& migrations) {
  json::array items;
  for (const auto& migration : migrations) items.emplace_back(migration.json());
  return json::object{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
}

async::Awaitable<std::vector<kube::Object>> read_migrations(kube::Api& api, const StatusOptions& options) {
  kube::ListOptions list;
  list.ns = options.ns;
  auto answer = co_await api.list_all(migration::managed_cluster_migrations, list);
  if (!answer) throw_for_list(answer.error(), api, options.ns);
  if (options.name.empty()) co_return std::move(*answer);
  co_return std::vector<kube::Object>{select_migration(*answer, options.ns, options.name)};
}

/// Prints the status once.
async::Awaitable<> show(kube::Api& api, const StatusOptions& options, async::Clock& clock, Terminal terminal,
                        std::ostream& out) {
  const bool wide = options.output == "wide";
  if (wide) terminal.width = 0;
  const auto migrations = co_await read_migrations(api, options);
  const bool one = !options.name.empty();
  if (options.output == "json" || options.output == "yaml") {
    const auto content = in_usual_order(one ? migrations.front().json() : as_list(migrations));
    out << (options.output == "json" ? to_indented_json(content) : to_yaml(content));
    co_return;
  }
  if (one) {
    auto view = view_of(migrations.front());
    const auto ledger = co_await api.get(kube::resources::config_maps, view.key);
    if (ledger) add_failures(view, *ledger);
    const auto most_clusters = wide ? view.failures.size() : default_listed_clusters;
    for (const auto& line :
         migration_details(view, migration_checklist(view), clock.wall_now(), terminal, most_clusters))
      out << line << "\n";
    co_return;
  }
  if (migrations.empty()) {
    out << "No migrations found" << (options.ns.empty() ? "" : " in namespace " + options.ns) << ".\n";
    co_return;
  }
  std::vector<MigrationView> views;
  for (const auto& migration : migrations) views.push_back(view_of(migration));
  const TableOptions table{wide, namespace_column(options)};
  for (const auto& line : migration_table(std::move(views), table, clock.wall_now(), terminal)) out << line << "\n";
}

/// Prints the relocators, or one of them with its ClusterDeployments, once.
async::Awaitable<> show_relocators(kube::Api& api, const StatusOptions& options, Terminal terminal, std::ostream& out) {
  if (options.output == "wide") terminal.width = 0;
  const kube::ListOptions all;
  auto relocators = co_await api.list_all(relocator::cluster_relocators, all);
  if (!relocators) throw_for(relocators.error(), api);
  std::vector<std::string> names;
  for (const auto& relocator : *relocators) names.emplace_back(relocator.name());
  if (!options.name.empty()) {
    std::erase_if(*relocators, [&](const kube::Object& one) { return one.name() != options.name; });
    const auto meant = nearest(options.name, names);
    if (relocators->empty())
      throw std::runtime_error("no relocator '" + options.name + "' found" +
                               (meant ? " (did you mean " + *meant + "?)" : ""));
  }
  if (options.output == "json" || options.output == "yaml") {
    const auto content = in_usual_order(options.name.empty() ? as_list(*relocators) : relocators->front().json());
    out << (options.output == "json" ? to_indented_json(content) : to_yaml(content));
    co_return;
  }
  std::vector<std::string> lines{"No relocators found."};
  if (!options.name.empty()) {
    auto deployments = co_await api.list_all(ocm::cluster_deployments, all);
    if (!deployments) throw_for(deployments.error(), api);
    lines = relocator_details(relocators->front(), *deployments, terminal);
  } else if (!relocators->empty()) {
    lines = relocator_table(*relocators, terminal);
  }
  for (const auto& line : lines) out << line << "\n";
}

/// Prints the MySQLClusters and MySQLBackups, or one cluster in detail, once.
async::Awaitable<> show_mysql(kube::Api& api, const StatusOptions& options, Terminal terminal, std::ostream& out) {
  if (options.output == "wide") terminal.width = 0;
  kube::ListOptions list;
  list.ns = options.ns;
  auto clusters = co_await api.list_all(mysql::mysql_clusters, list);
  if (!clusters) throw_for(clusters.error(), api);
  auto backups = co_await api.list_all(mysql::mysql_backups, list);
  if (!backups) throw_for(backups.error(), api);
  if (!options.name.empty()) {
    std::vector<std::string> names;
    for (const auto& cluster : *clusters) names.emplace_back(cluster.name());
    std::erase_if(*clusters, [&](const kube::Object& one) { return one.name() != options.name; });
    const auto meant = nearest(options.name, names);
    if (clusters->empty())
      throw std::runtime_error("no MySQL cluster '" + options.name + "' found" +
                               (meant ? " (did you mean " + *meant + "?)" : ""));
    if (clusters->size() > 1)
      throw std::runtime_error("several MySQL clusters are named '" + options.name + "'; select one with --namespace");
  }
  if (options.output == "json" || options.output == "yaml") {
    auto all = *clusters;
    if (options.name.empty()) all.insert(all.end(), backups->begin(), backups->end());
    const auto content = in_usual_order(options.name.empty() ? as_list(all) : clusters->front().json());
    out << (options.output == "json" ? to_indented_json(content) : to_yaml(content));
    co_return;
  }
  const auto lines = options.name.empty() ? mysql_table(*clusters, *backups, terminal)
                                          : mysql_details(clusters->front(), *backups, terminal);
  for (const auto& line : lines) out << line << "\n";
}

async::Awaitable<int> watch(ServerClient& client, const StatusOptions& options, std::ostream& out, async::Event& stop) {
  // Reports errors at once; the watch below would retry for ever.
  const auto migrations = co_await read_migrations(client.api(), options);
  StatusWatchOptions watching;
  watching.ns = options.ns;
  if (!options.name.empty()) watching.only = migrations.front().key();
  watching.output = options.output;
  watching.namespaces = namespace_column(options);
  co_return co_await follow_migrations(client, watching, out, stop);
}

int run_status(const StatusOptions& options, std::ostream& out) {
  ServerClient client{kube::find_config(options.kubeconfig, options.context)};
  const auto terminal = Terminal::of(STDOUT_FILENO);
  const auto body = [&](async::Event& stop) -> async::Awaitable<int> {
    if (options.relocators)
      co_return co_await unless_stopped(stop, show_relocators(client.api(), options, terminal, out));
    if (options.mysql) co_return co_await unless_stopped(stop, show_mysql(client.api(), options, terminal, out));
    if (options.watch) co_return co_await watch(client, options, out, stop);
    co_return co_await unless_stopped(stop, show(client.api(), options, client.env().clock, terminal, out));
  };
  return async::run_main(body, {});
}

}  // namespace

void add_status_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("status", "show migrations: phase, progress, durations and failures");
  command.describe(
      "Without NAME, lists all migrations, one per line. With NAME, shows its phases with their durations, its steps, "
      "and the failed clusters with their reasons. --watch keeps the output up to date until Ctrl-C or, with NAME, "
      "until "
      "the migration has ended.");
  command.exit_code("0", "success; with NAME and --watch: the migration completed");
  command.exit_code("1", "error; with NAME and --watch: the migration failed or was deleted");
  command.exit_code("130", "interrupted by Ctrl-C; with NAME and --watch: before the migration ended");
  const auto options = std::make_shared<StatusOptions>();
  add_kubeconfig_flag(command, options->kubeconfig);
  add_context_flag(command, options->context);
  command.add({.name = "namespace",
               .placeholder = "NAMESPACE",
               .help = "Show only migrations in this namespace.",
               .default_text = "all",
               .apply = [options](const std::string& text) { options->ns = parse_namespace(text); },
               .short_name = "n"});
  command.add({.name = "all-namespaces",
               .placeholder = "",
               .help = "Show migrations in all namespaces; overrides --namespace.",
               .default_text = "false",
               .apply = [options](const std::string& text) { options->all_namespaces = parse_switch(text); },
               .short_name = "A"});
  command.add({.name = "watch",
               .placeholder = "",
               .help = "Watch for changes: on a terminal updated in place, otherwise one line per change.",
               .default_text = "false",
               .apply = [options](const std::string& text) { options->watch = parse_switch(text); },
               .short_name = "w"});
  command.add_switch(options->relocators, "relocators",
                     "Show ClusterRelocators instead of migrations; with NAME, its ClusterDeployments.");
  command.add_switch(options->mysql, "mysql",
                     "Show MySQLClusters and MySQLBackups instead of migrations; with NAME, one cluster in detail.");
  add_output_flag(command, options->output, {"table", "wide", "json", "yaml"},
                  "Output format: table, wide (more columns, not truncated), json or yaml.");
  command.add_argument({.name = "NAME",
                        .help = "The migration to show in detail.",
                        .required = false,
                        .apply =
                            [options](const std::string& text) {
                              // An empty variable in a script does not mean all migrations.
                              if (text.empty()) throw std::invalid_argument("'' is not a migration's name");
                              options->name = text;
                            },
                        .completes = "migrations"});
  command.not_from_environment({"namespace", "all-namespaces", "watch", "relocators", "mysql"});
  command.example("hubferry status", "all migrations");
  command.example("hubferry status move-three --watch", "one migration, until it ends");
  command.example("hubferry status -n default -o json | jq '.items[].status.phase'", "for scripts");
  command.on_check([options] {
    if (options->all_namespaces) options->ns.clear();
    if (options->mysql && (options->watch || options->relocators))
      throw UsageError("--mysql cannot be combined with --watch or --relocators");
    if (options->relocators && options->watch) throw UsageError("--relocators cannot be combined with --watch");
  });
  command.on_run([options, &out] { return run_status(*options, out); });
}

}  // namespace hubferry::app
