#include "app/verbs/submit.hpp"

#include <ostream>
#include <stdexcept>

#include "app/cli/output.hpp"
#include "app/plan/plan_run.hpp"
#include "app/status/follow_migrations.hpp"
#include "hubferry/async/shutdown.hpp"

namespace hubferry::app {

namespace {

const kube::Resource& migrations = migration::managed_cluster_migrations;

/// "Completed 3/3".
std::string state_text(const MigrationView& view) {
  const auto& clusters = view.clusters;
  return (view.phase.empty() ? std::string{"New"} : view.phase) + " " + std::to_string(clusters.migrated) + "/" +
         std::to_string(clusters.total);
}

void print_existing(const MigrationView& view, const Invocation& invocation, bool follow, std::ostream& out) {
  out << "Migration " << kube::to_string(view.key) << " exists already with the same spec (" << state_text(view)
      << "): nothing was changed.";
  if (view.has_succeeded())
    out << " To migrate these clusters once more, use another --name.";
  else if (view.has_ended())
    out << " To retry what failed: " << invocation.command("retry " + view.key.name + " -n " + view.key.ns);
  else if (!follow)
    out << " Watch it: " << invocation.watch(view.key);
  out << "\n";
}

[[noreturn]] void throw_for_creation(const kube::Error& error, const kube::Api& api, const kube::Key& key) {
  // The server names the namespace, not the kind.
  if (error.kind == kube::ErrorKind::not_found && error.message.find("namespaces \"") != std::string::npos)
    throw std::runtime_error("namespace " + key.ns + " does not exist on API server " + std::string{api.name()} +
                             ": select another with --namespace");
  throw_for(error, api);
}

/// The existing migration of that name, after a creation that did not succeed for sure. Throws std::runtime_error.
async::Awaitable<kube::Object> existing_migration(kube::Api& api, kube::Key key, kube::Error why) {
  auto existing = co_await api.get(migrations, key);
  if (!existing && existing.error().kind == kube::ErrorKind::not_found)
    throw std::runtime_error("migration " + kube::to_string(key) + " was not created: " + why.describe() +
                             ". Repeat the command");
  if (!existing && why.kind == kube::ErrorKind::ambiguous)
    throw std::runtime_error("it is unknown whether migration " + kube::to_string(key) + " was created: " +
                             existing.error().describe() + ". Repeat the command: it creates nothing twice");
  if (!existing) throw_for(existing.error(), api);
  co_return std::move(*existing);
}

}  // namespace

std::string Invocation::command(const std::string& words) const {
  // A shell may split or expand anything else.
  const auto quoted = [](const std::string& text) {
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,=";
    if (text.find_first_not_of(plain) == std::string::npos) return text;
    std::string safe = "'";
    for (const char c : text) safe += c == '\'' ? std::string{"'\\''"} : std::string{c};
    return safe + "'";
  };
  std::string text = program + " " + words;
  if (!kubeconfig.empty()) text += " --kubeconfig " + quoted(kubeconfig);
  if (!context.empty()) text += " --context " + quoted(context);
  return text;
}

std::string Invocation::watch(const kube::Key& migration) const {
  return command("status " + migration.name + " -n " + migration.ns + " --watch");
}

async::Awaitable<> submit(kube::Api& api, MigrationDraft draft, Invocation invocation, bool follow, std::ostream& out) {
  const auto print_created = [&] {
    out << "Migration " << kube::to_string(draft.key) << " created: " << describe(draft.spec) << ".";
    if (!follow) out << " Watch it: " << invocation.watch(draft.key);
    out << "\n";
  };
  const auto created = co_await api.create(migrations, draft.object);
  if (created) {
    print_created();
    co_return;
  }
  const auto& error = created.error();
  if (error.kind != kube::ErrorKind::already_exists && error.kind != kube::ErrorKind::ambiguous)
    throw_for_creation(error, api, draft.key);
  const auto existing = co_await existing_migration(api, draft.key, error);
  if (existing.is_being_deleted())
    throw std::runtime_error("migration " + kube::to_string(draft.key) +
                             " is being deleted: wait until it is gone, or use another --name");
  const auto spec = migration::read_spec(existing.json());
  if (!is_same_migration(spec, draft.spec))
    throw std::runtime_error("migration " + kube::to_string(draft.key) + " exists already, and is another one (" +
                             describe(spec) + "): use another --name");
  // The answer to our own creation was lost: a migration that nobody has worked on yet is that one.
  if (error.kind == kube::ErrorKind::ambiguous && !view_of(existing).has_ended())
    print_created();
  else
    print_existing(view_of(existing), invocation, follow, out);
}

async::Awaitable<VerbResult> submit_or_plan(ServerClient& client, MigrationDraft draft, SubmitOptions options,
                                            Invocation invocation, std::ostream& out) {
  VerbResult result;
  if (options.dry_run) {
    const PlanOutput output;
    result.code = co_await show_plan(client, draft.spec, nullptr, output, out);
    co_return result;
  }
  co_await submit(client.api(), draft, std::move(invocation), options.wait, out);
  if (options.wait) result.follow = draft.key;
  co_return result;
}

async::Awaitable<Verdict> judge_and_write(kube::Api& api, kube::Object migration, std::string verb, Judge judge,
                                          ConditionalWrite write) {
  const auto who = "migration " + kube::to_string(migration.key());
  const std::string uid{migration.uid()};
  // A migration's status changes some times per second at most.
  constexpr int most_attempts = 20;
  std::optional<Verdict> perhaps_done;  // the answer to our write was lost
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    auto verdict = judge(migration);
    if (verdict.kind != Verdict::Kind::possible && perhaps_done) co_return *perhaps_done;
    if (verdict.kind == Verdict::Kind::refused)
      throw std::runtime_error("cannot " + verb + " " + who + ": " + verdict.message);
    if (verdict.kind == Verdict::Kind::unnecessary) co_return verdict;
    const auto written = co_await write(migration);
    if (written) co_return verdict;
    using enum kube::ErrorKind;
    const auto kind = written.error().kind;
    if (kind != conflict && kind != ambiguous && kind != not_found) throw_for(written.error(), api);
    if (kind == ambiguous) perhaps_done = verdict;
    auto read = co_await api.get(migrations, migration.key());
    if (!read && read.error().kind == not_found && perhaps_done) co_return *perhaps_done;
    if (read && read->uid() != uid) throw std::runtime_error(who + " was replaced by another one of the same name");
    if (!read && read.error().kind == not_found) throw std::runtime_error(who + " has been deleted");
    if (!read && perhaps_done)
      throw std::runtime_error("it is unknown whether the request to " + verb + " " + who +
                               " arrived: " + read.error().describe() + ". Repeat the command: it does nothing twice");
    if (!read) throw_for(read.error(), api);
    migration = std::move(*read);
  }
  throw std::runtime_error(who + " changes too often: repeat the command");
}

int run_verb(ServerClient& client, const std::function<async::Awaitable<VerbResult>()>& verb, std::ostream& out) {
  const auto body = [&](async::Event& stop) -> async::Awaitable<int> {
    VerbResult result;
    auto work = [&]() -> async::Awaitable<> { result = co_await verb(); };
    const int interrupted = co_await unless_stopped(stop, work());
    if (interrupted != 0) co_return interrupted;
    if (!result.follow) co_return result.code;
    flush(out);
    StatusWatchOptions watching;
    watching.only = result.follow;
    co_return co_await follow_migrations(client, watching, out, stop);
  };
  return async::run_main(body, {});
}

}  // namespace hubferry::app
