#pragma once

#include <functional>
#include <iosfwd>
#include <optional>

#include "app/cli/server_client.hpp"
#include "app/verbs/migration_draft.hpp"
#include "app/verbs/verdicts.hpp"

namespace hubferry::app {

/// How the user has called the program, for the commands that texts suggest: they must reach the same server.
struct Invocation {
  std::string program;     // CommandLine::invocation()
  std::string kubeconfig;  // as given; empty: none
  std::string context;

  /// "hubferry status move -n default --context c", for "status move -n default".
  [[nodiscard]] std::string command(const std::string& words) const;
  /// That which watches a migration.
  [[nodiscard]] std::string watch(const kube::Key& migration) const;
};

/// Creates the migration, or finds that it exists already, and prints one line about it. Never changes an existing one.
/// `follow`: the migration is shown afterwards, so that no command for it is suggested.
/// Throws std::runtime_error if there is another migration of that name, or if the server rejects it.
async::Awaitable<> submit(kube::Api& api, MigrationDraft draft, Invocation invocation, bool follow, std::ostream& out);

/// Judges the migration and, if possible, writes; if somebody else has changed it in between, judges its new state and
/// tries again. `write` is conditional on the version of the object that it gets. Returns the verdict, which is not
/// `refused`. Throws std::runtime_error with the reason of a refusal.
using Judge = std::function<Verdict(const kube::Object& migration)>;
using ConditionalWrite = std::function<async::Awaitable<kube::Result<kube::Object>>(kube::Object migration)>;
async::Awaitable<Verdict> judge_and_write(kube::Api& api, kube::Object migration, std::string verb, Judge judge,
                                          ConditionalWrite write);

/// What a verb has done, for run_verb().
struct VerbResult {
  int code = 0;
  std::optional<kube::Key> follow{};  // show this migration until it ends; the exit code is then its result
};

struct SubmitOptions {
  bool dry_run = false;  // show the plan instead
  bool wait = false;     // follow the migration until it has ended
};
/// How the verbs end that create a migration.
async::Awaitable<VerbResult> submit_or_plan(ServerClient& client, MigrationDraft draft, SubmitOptions options,
                                            Invocation invocation, std::ostream& out);

/// Runs a verb as the process's main task, and returns the exit code: 130 if a signal interrupts it.
int run_verb(ServerClient& client, const std::function<async::Awaitable<VerbResult>()>& verb, std::ostream& out);

}  // namespace hubferry::app
