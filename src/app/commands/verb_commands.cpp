#include <algorithm>
#include <memory>
#include <ostream>

#include "app/cli/common_flags.hpp"
#include "app/cli/flag_values.hpp"
#include "app/commands/commands.hpp"
#include "app/status/find_migration.hpp"
#include "app/verbs/submit.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/migration/leave_behind.hpp"
#include "hubferry/migration/phases.hpp"

// Commands on a migration that exists: cancel, rollback and retry.
namespace hubferry::app {

namespace json = kube::json;

namespace {

struct VerbOptions {
  std::string kubeconfig;
  std::string context;
  std::string ns;  // empty: all
  std::string name;
  std::string new_name;  // of a retry
  bool dry_run = false;
  bool wait = false;
  bool target_lost = false;

  [[nodiscard]] Invocation invocation(const CommandLine& line) const {
    return {line.invocation(), kubeconfig, context};
  }
};

/// The annotation hubferry.io/leave-behind after a request; null: it is removed. With a request it means that the hub
/// is lost, so the target is in it only if the user says that now.
json::value leave_behind_after(const kube::Object& migration, bool target_lost) {
  const auto view = view_of(migration);
  std::string after;
  const auto add = [&](const std::string& name) { after += (after.empty() ? "" : ",") + name; };
  // In a failed migration, what was left behind before is to be rolled back now.
  if (view.phase != migration::phases::failed)
    for (const auto& name : migration::read_leave_behind(migration.annotation(migration::names::leave_annotation)))
      if (name != view.to && !name.starts_with(view.to + "/")) add(name);
  if (target_lost) add(view.to);
  return after.empty() ? json::value{} : json::value(after);
}

/// The flags and the argument that all of them have.
std::shared_ptr<VerbOptions> add_verb_options(Command& command) {
  auto options = std::make_shared<VerbOptions>();
  add_kubeconfig_flag(command, options->kubeconfig);
  add_context_flag(command, options->context);
  auto ns = namespace_flag(options->ns, "namespace", "all", "The namespace of the migration.");
  ns.short_name = "n";
  command.add(std::move(ns));
  command.not_from_environment({"namespace"});
  command.add_argument({.name = "NAME",
                        .help = "The migration.",
                        .required = true,
                        .apply = [options](const std::string& text) { options->name = parse_object_name(text); },
                        .completes = "migrations"});
  command.exit_code("1", "error, or not possible in the migration's state: nothing was changed");
  command.exit_code("130", "interrupted by Ctrl-C");
  return options;
}

int run_cancel(const VerbOptions& options, const Invocation& invocation, std::ostream& out) {
  ServerClient client{kube::find_config(options.kubeconfig, options.context)};
  auto& api = client.api();
  const auto verb = [&]() -> async::Awaitable<VerbResult> {
    const auto migration = co_await find_migration(api, options.ns, options.name);
    Judge judge = [](const kube::Object& object) { return judge_cancel(view_of(object)); };
    ConditionalWrite write = [&api](kube::Object object) {
      kube::Request request;
      request.verb = kube::Verb::remove;
      request.resource = migration::managed_cluster_migrations;
      request.key = object.key();
      request.propagation = kube::Propagation::background;
      request.precondition_uid = object.uid();
      request.precondition_resource_version = object.resource_version();
      return api.call(request);
    };
    const auto verdict = co_await judge_and_write(api, migration, "cancel", judge, write);
    const auto key = migration.key();
    out << "Migration " << kube::to_string(key) << (verdict.kind == Verdict::Kind::possible ? " cancelled: " : ": ")
        << verdict.message;
    if (verdict.takes_time) out << ". Watch it: " << invocation.watch(key);
    out << "\n";
    co_return VerbResult{};
  };
  return run_verb(client, verb, out);
}

int run_rollback(const VerbOptions& options, const Invocation& invocation, std::ostream& out) {
  ServerClient client{kube::find_config(options.kubeconfig, options.context)};
  auto& api = client.api();
  const auto verb = [&]() -> async::Awaitable<VerbResult> {
    const auto migration = co_await find_migration(api, options.ns, options.name);
    Judge judge = [&options](const kube::Object& object) {
      using namespace migration::names;
      const auto view = view_of(object);
      const auto left = migration::read_leave_behind(object.annotation(leave_annotation));
      const bool is_given_up = std::ranges::count(left, view.to) > 0;
      // One of a failed migration that would leave something behind once more is not what is asked for.
      const bool leaves_more = view.phase == migration::phases::failed && !left.empty();
      const bool is_requested = object.annotation(request_annotation) == rollback_request;
      return judge_rollback_request(view, is_requested && (options.target_lost ? is_given_up : !leaves_more));
    };
    ConditionalWrite write = [&api, &options](kube::Object object) {
      using namespace migration::names;
      json::object annotations{{request_annotation, rollback_request},
                               {leave_annotation, leave_behind_after(object, options.target_lost)}};
      json::object patch{{"metadata", json::object{{"resourceVersion", object.resource_version()},
                                                   {"annotations", std::move(annotations)}}}};
      return api.merge_patch(migration::managed_cluster_migrations, object.key(), std::move(patch));
    };
    const auto verdict = co_await judge_and_write(api, migration, "roll back", judge, write);
    const auto key = migration.key();
    out << "Migration " << kube::to_string(key) << ": " << verdict.message << ". Watch it: " << invocation.watch(key)
        << "\n";
    co_return VerbResult{};
  };
  return run_verb(client, verb, out);
}

/// The migration's own ledger, if it exists. Throws std::runtime_error.
async::Awaitable<std::optional<kube::Object>> read_own_ledger(kube::Api& api, const kube::Object& migration) {
  auto ledger = co_await api.get(kube::resources::config_maps, migration.key());
  if (!ledger && ledger.error().kind != kube::ErrorKind::not_found) throw_for(ledger.error(), api);
  // One of an earlier migration of the same name lists other clusters.
  if (!ledger || !kube::is_owned_by(*ledger, migration.uid())) co_return std::optional<kube::Object>{};
  co_return std::optional<kube::Object>{std::move(*ledger)};
}

int run_retry(const VerbOptions& options, const Invocation& invocation, std::ostream& out) {
  ServerClient client{kube::find_config(options.kubeconfig, options.context)};
  auto& api = client.api();
  const auto verb = [&]() -> async::Awaitable<VerbResult> {
    const auto migration = co_await find_migration(api, options.ns, options.name);
    const auto verdict = judge_retry(view_of(migration));
    if (verdict.kind == Verdict::Kind::refused)
      throw std::runtime_error("cannot retry migration " + kube::to_string(migration.key()) + ": " + verdict.message);
    const auto ledger = co_await read_own_ledger(api, migration);
    const auto name = options.new_name.empty() ? retry_name(options.name) : options.new_name;
    const kube::Key key{std::string{migration.ns()}, name};
    const auto draft = draft_of(key, retry_spec(migration, ledger));
    const SubmitOptions how{options.dry_run, options.wait};
    co_return co_await submit_or_plan(client, draft, how, invocation, out);
  };
  return run_verb(client, verb, out);
}

}  // namespace

void add_cancel_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("cancel", "cancel a migration: roll it back, then delete it");
  command.describe(
      "Deletes the migration. The manager first rolls back the clusters that have not arrived; those that have arrived "
      "stay on the target hub. A migration that has ended, is being rolled back, or whose clusters have all arrived is "
      "not touched.");
  command.exit_code("0", "the migration is being cancelled, by this or an earlier call");
  const auto options = add_verb_options(command);
  command.example("hubferry cancel move-three", "roll back what has not arrived");
  command.on_run([options, &line, &out] { return run_cancel(*options, options->invocation(line), out); });
}

void add_retry_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("retry", "migrate the clusters that failed, with a new migration");
  command.describe(
      "Creates a migration of the clusters of a failed one that did not arrive, as its ledger has them. "
      "The failed one is not changed. Repeating the same command changes nothing.");
  command.exit_code("0", "the migration was created or existed already; with --wait: all clusters were migrated");
  const auto options = add_verb_options(command);
  command.add({.name = "name",
               .placeholder = "NAME",
               .help = "The name of the new migration.",
               .default_text = "NAME-retry",
               .apply = [options](const std::string& text) { options->new_name = parse_object_name(text); },
               .short_name = ""});
  command.add_switch(options->dry_run, "dry-run", "Show the plan, as the command plan does, and create nothing.");
  command.add_switch(options->wait, "wait", "Show the progress until the new migration has ended.");
  command.not_from_environment({"name", "dry-run", "wait"});
  command.example("hubferry retry move-three --wait", "what failed, until it has arrived");
  command.on_check([options] {
    if (options->dry_run && options->wait) throw UsageError("--dry-run cannot be combined with --wait");
  });
  command.on_run([options, &line, &out] { return run_retry(*options, options->invocation(line), out); });
}

void add_rollback_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("rollback", "retry a rollback, or return clusters that the target has lost");
  command.describe(
      "Requests the rollback of a failed migration once more, after it was ended by the annotation "
      "hubferry.io/leave-behind, and removes that annotation. Of a migration in Cleaning, it returns the clusters to "
      "the source that the target has lost, and that were not deleted from the source yet. Clusters of a migration "
      "that runs are rolled back by cancel; those of a completed one are moved back by another migration.");
  command.exit_code("0", "the rollback was requested, by this or an earlier call");
  const auto options = add_verb_options(command);
  command.add_switch(options->target_lost, "target-lost",
                     "The target is lost for good: the source accepts the clusters although the target does not say "
                     "that they are not there, and what is there is left behind.");
  command.not_from_environment({"target-lost"});
  command.example("hubferry rollback move-three", "after the hub has been repaired");
  command.example("hubferry rollback move-three --target-lost", "all had arrived, and then the hub burnt down");
  command.on_run([options, &line, &out] { return run_rollback(*options, options->invocation(line), out); });
}

}  // namespace hubferry::app
