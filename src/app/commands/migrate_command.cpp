#include <algorithm>
#include <memory>
#include <ostream>

#include "app/cli/common_flags.hpp"
#include "app/cli/flag_values.hpp"
#include "app/commands/commands.hpp"
#include "app/hubs/registered_hubs.hpp"
#include "app/verbs/submit.hpp"
#include "hubferry/migration/validation.hpp"

namespace hubferry::app {

namespace {

struct MigrateOptions {
  std::string kubeconfig;
  std::string context;
  std::string ns;
  std::string name;
  std::string file;
  std::string from;
  std::string to;
  std::vector<std::string> clusters;
  std::string placement;
  std::string selector;
  bool dry_run = false;
  bool wait = false;

  [[nodiscard]] migration::MigrationSpec spec_of_flags() const {
    migration::MigrationSpec spec;
    spec.from = from;
    spec.to = to;
    if (!clusters.empty()) spec.clusters = clusters;
    if (!placement.empty()) spec.placement = placement;
    return spec;
  }

  void check() const {
    if (!file.empty()) {
      if (!from.empty() || !to.empty() || !clusters.empty() || !placement.empty() || !selector.empty())
        throw UsageError("--filename cannot be combined with --from, --to, --placement, --selector or clusters");
    } else {
      if (from.empty() || to.empty())
        throw UsageError("give both hubs with --from and --to, or the migration's file with -f");
      const int given = (clusters.empty() ? 0 : 1) + (placement.empty() ? 0 : 1) + (selector.empty() ? 0 : 1);
      if (given != 1) throw UsageError("give the names of clusters, or --placement, or --selector");
      if (from == to)
        throw UsageError("--from and --to are both '" + from + "': clusters can only move to another hub");
    }
    if (dry_run && wait) throw UsageError("--dry-run cannot be combined with --wait");
  }
};

/// What the user wants. Throws std::runtime_error.
async::Awaitable<MigrationDraft> draft_for(ServerClient& client, const MigrateOptions& options) {
  const kube::Key key{options.ns, options.name};
  auto spec = options.spec_of_flags();
  if (!options.selector.empty()) spec.clusters = co_await select_clusters(client, options.from, options.selector);
  MigrationDraft draft = options.file.empty() ? draft_of(key, spec) : draft_from_file(key, options.file);
  const auto problems = migration::check_spec(draft.spec);
  if (!problems.empty()) throw std::runtime_error(migration::joined(problems));
  co_return draft;
}

int run_migrate(const MigrateOptions& options, const std::string& invocation, std::ostream& out) {
  ServerClient client{kube::find_config(options.kubeconfig, options.context)};
  const auto verb = [&]() -> async::Awaitable<VerbResult> {
    auto draft = co_await draft_for(client, options);
    const SubmitOptions how{options.dry_run, options.wait};
    const Invocation called{invocation, options.kubeconfig, options.context};
    co_return co_await submit_or_plan(client, std::move(draft), how, called, out);
  };
  return run_verb(client, verb, out);
}

}  // namespace

void add_migrate_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("migrate", "create a migration: move clusters from one hub to another");
  command.describe(
      "Creates a ManagedClusterMigration on the global hub, which the manager then executes. A migration that exists "
      "already is never changed: repeating the same command changes nothing and says so.");
  command.exit_code("0", "the migration was created or existed already; with --wait: all clusters were migrated");
  command.exit_code("1", "error; with --wait: clusters failed and were rolled back; with --dry-run: it cannot succeed");
  command.exit_code("130", "interrupted by Ctrl-C; a migration that was created continues");
  const auto options = std::make_shared<MigrateOptions>();
  add_kubeconfig_flag(command, options->kubeconfig);
  add_context_flag(command, options->context);
  auto ns = namespace_flag(options->ns, "namespace", std::string{"that of the file, or "} + default_migration_namespace,
                           "The namespace of the migration.");
  ns.short_name = "n";
  command.add(std::move(ns));
  command.add({.name = "name",
               .placeholder = "NAME",
               .help = "The name of the migration.",
               .default_text = "that of the file, or FROM-to-TO-HASH",
               .apply = [options](const std::string& text) { options->name = parse_object_name(text); },
               .short_name = ""});
  const auto hub_flag = [](std::string& target, std::string name, std::string help) {
    Flag flag;
    flag.name = std::move(name);
    flag.placeholder = "HUB";
    flag.help = std::move(help);
    flag.apply = [&target](const std::string& text) { target = parse_object_name(text); };
    return flag;
  };
  command.add(hub_flag(options->from, "from", "The source hub."));
  command.add(hub_flag(options->to, "to", "The target hub."));
  command.add_text(
      options->placement, "placement", "PLACEMENT",
      "A Placement on the source hub, [NAMESPACE/]NAME, that selects the clusters when the migration starts.");
  command.add({.name = "selector",
               .placeholder = "LABELS",
               .help = "Migrate the clusters of the source hub with these labels: KEY=VALUE,... Their names are read "
                       "now, with the hub's kubeconfig on the global hub, and written into the migration.",
               .default_text = "",
               .apply = [options](const std::string& text) { options->selector = text; },
               .short_name = "l"});
  command.add({.name = "filename",
               .placeholder = "FILE",
               .help = "A ManagedClusterMigration in YAML or JSON; - reads standard input.",
               .default_text = "",
               .apply = [options](const std::string& text) { options->file = text; },
               .short_name = "f"});
  command.add_switch(options->dry_run, "dry-run", "Show the plan, as the command plan does, and create nothing.");
  command.add_switch(options->wait, "wait", "Show the progress until the migration has ended.");
  command.not_from_environment(
      {"namespace", "name", "from", "to", "placement", "selector", "filename", "dry-run", "wait"});
  command.add_argument({.name = "CLUSTER",
                        .help = "The clusters to migrate.",
                        .required = false,
                        .apply =
                            [options](const std::string& text) {
                              auto cluster = parse_object_name(text);
                              const auto& known = options->clusters;
                              if (std::ranges::find(known, cluster) == known.end())
                                options->clusters.push_back(std::move(cluster));
                            },
                        .choices = {},
                        .repeatable = true,
                        .completes = "clusters"});
  command.example("hubferry migrate --from hub1 --to hub2 cluster-00001 cluster-00002 --wait",
                  "two clusters, until they have arrived");
  command.example("hubferry migrate --from hub1 --to hub2 -l region=eu --dry-run", "what would be moved");
  command.example("hubferry migrate -f migration.yaml --wait", "from a file");
  command.on_check([options] { options->check(); });
  command.on_run([options, &line, &out] { return run_migrate(*options, line.invocation(), out); });
}

}  // namespace hubferry::app
