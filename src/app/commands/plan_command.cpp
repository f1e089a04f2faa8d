#include <unistd.h>

#include <algorithm>
#include <ostream>

#include "app/cli/common_flags.hpp"
#include "app/cli/flag_values.hpp"
#include "app/cli/output.hpp"
#include "app/cli/server_client.hpp"
#include "app/commands/commands.hpp"
#include "app/plan/plan.hpp"
#include "app/plan/plan_run.hpp"
#include "app/plan/relocation_plan_text.hpp"
#include "hubferry/async/shutdown.hpp"
#include "hubferry/relocator/names.hpp"

namespace hubferry::app {

namespace {

struct PlanOptions {
  std::string kubeconfig;
  std::string context;
  std::string file;
  std::string from;
  std::string to;
  std::vector<std::string> clusters;
  std::string placement;
  std::string carried_resources;  // a file; empty: the default resources only
  std::string output = "table";
  bool list_objects = false;

  void add_clusters(const std::vector<std::string>& names) {
    for (const auto& name : names)
      if (std::ranges::find(clusters, name) == clusters.end()) clusters.push_back(name);
  }

  [[nodiscard]] bool is_given_by_flags() const {
    return !from.empty() || !to.empty() || !clusters.empty() || !placement.empty();
  }

  void check() const {
    if (!file.empty() && is_given_by_flags())
      throw UsageError("--filename cannot be combined with --from, --to, --placement or clusters");
    if (!file.empty()) return;
    if (from.empty() || to.empty())
      throw UsageError("give the migration's file with -f, or both hubs with --from and --to");
    if (clusters.empty() == placement.empty()) throw UsageError("give the names of clusters, or --placement");
  }
};

migration::MigrationSpec read_spec_to_plan(const PlanOptions& options, const kube::json::object& object) {
  if (options.file.empty()) {
    migration::MigrationSpec spec;
    spec.from = options.from;
    spec.to = options.to;
    if (!options.clusters.empty()) spec.clusters = options.clusters;
    if (!options.placement.empty()) spec.placement = options.placement;
    return spec;
  }
  try {
    return plan_spec_of(object);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(shown_name(options.file) + ": " + error.what());
  }
}

int run_relocation_plan(const PlanOptions& options, const kube::json::object& object, std::ostream& out) {
  ServerClient client{kube::find_config(options.kubeconfig, options.context)};
  HubConnections connections{client.loop(), client.env()};
  relocator::RelocationPlan plan;
  const auto body = [&](async::Event& stop) -> async::Awaitable<int> {
    auto work = [&]() -> async::Awaitable<> {
      const kube::Object relocator{object};
      plan = co_await relocator::make_plan(client.api(), connections.opener(), relocator, client.env());
    };
    co_return co_await unless_stopped(stop, work());
  };
  if (const int code = async::run_main(body, {}); code != 0) return code;
  if (options.output == "json") {
    out << to_indented_json(relocation_plan_json(plan));
  } else {
    for (const auto& line : relocation_plan_text(plan, options.list_objects, Terminal::of(STDOUT_FILENO)))
      out << line << "\n";
  }
  return plan.can_succeed() ? 0 : 1;
}

int run_plan(const PlanOptions& options, std::ostream& out) {
  const auto object = options.file.empty() ? kube::json::object{} : read_only_object(options.file);
  if (kube::string_at(object, {"kind"}) == relocator::cluster_relocators.kind)
    return run_relocation_plan(options, object, out);
  const auto spec = read_spec_to_plan(options, object);
  const auto carried = read_carried_resources(options.carried_resources);
  ServerClient client{kube::find_config(options.kubeconfig, options.context)};
  return run_interruptibly([&]() -> async::Awaitable<int> {
    const PlanOutput output{options.list_objects, options.output};
    co_return co_await show_plan(client, spec, carried, output, out);
  });
}

}  // namespace

void add_plan_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("plan", "show what a migration would do, without doing it");
  command.describe(
      "Validates both hubs and every cluster as the manager does, and lists the resources that would be copied and the "
      "problems. Nothing is changed.");
  command.exit_code("0", "the migration can succeed");
  command.exit_code("1", "it cannot succeed, or the hubs could not be checked");
  command.exit_code("130", "interrupted by Ctrl-C");
  const auto options = std::make_shared<PlanOptions>();
  add_kubeconfig_flag(command, options->kubeconfig);
  add_context_flag(command, options->context);
  command.add({.name = "filename",
               .placeholder = "FILE",
               .help = "A ManagedClusterMigration or ClusterRelocator in YAML or JSON; - reads standard input.",
               .default_text = "",
               .apply = [options](const std::string& text) { options->file = text; },
               .short_name = "f"});
  command.add_text(options->from, "from", "HUB", "The source hub.");
  command.add_text(options->to, "to", "HUB", "The target hub.");
  command.add({.name = "clusters",
               .placeholder = "LIST",
               .help = "Comma-separated names of clusters, in addition to those given as arguments.",
               .default_text = "",
               .apply = [options](const std::string& text) { options->add_clusters(parse_list(text)); },
               .short_name = ""});
  command.add_text(options->placement, "placement", "PLACEMENT",
                   "A Placement on the source hub, [NAMESPACE/]NAME, that selects the clusters.");
  add_carried_resources_flag(command, options->carried_resources);
  command.add_switch(options->list_objects, "objects",
                     "List every object that would be copied, and every cluster and problem of long lists.");
  add_output_flag(command, options->output, {"table", "json"}, "Output format: table or json.");
  command.not_from_environment({"filename", "from", "to", "clusters", "placement", "objects"});
  command.add_argument({.name = "CLUSTER",
                        .help = "The clusters to migrate.",
                        .required = false,
                        .apply = [options](const std::string& text) { options->add_clusters({text}); },
                        .choices = {},
                        .repeatable = true,
                        .completes = "clusters"});
  command.example("hubferry plan -f migration.yaml", "before kubectl apply -f migration.yaml");
  command.example("hubferry plan -f relocator.yaml", "what a ClusterRelocator would move, on a hub with Hive");
  command.example("hubferry plan --from hub1 --to hub2 cluster-00001 cluster-00002 --objects",
                  "without a file, listing every object");
  command.example("hubferry plan --from hub1 --to hub2 --placement leaving -o json | jq .problems", "for scripts");
  command.on_check([options] { options->check(); });
  command.on_run([options, &out] { return run_plan(*options, out); });
}

}  // namespace hubferry::app
