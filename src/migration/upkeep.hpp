#pragma once

#include <map>

#include "hubferry/async/event.hpp"
#include "migration/reporter.hpp"

namespace hubferry::migration {

/// Why the request that a migration is annotated with cannot be granted in its state; absent: it has none, or one that
/// is, or will be, granted.
std::optional<std::string> find_request_problem(const Migration& migration);

/// When an ended migration is to be deleted (spec.ttlSecondsAfterFinished); absent: not by us.
std::optional<WallTime> find_expiry(const Migration& migration);

/// True if the summary of an ended migration (Ready, Succeeded, Stalled) is that of an earlier generation: no phase
/// writes it any more, and tools do not believe a condition that is older than the spec.
bool has_outdated_summary(const Migration& migration);

/// What is done about migrations beside their phases: ended ones are deleted when their time is up, and a request that
/// cannot be granted gets an event as its answer, and is removed. A change of the spec that comes too late gets an
/// event; one after the end is observed in the status.
///
/// Writes are conditional on what was decided upon. One that fails is tried again after a pause; a conflict brings a
/// newer version by the cache. Executor: one loop. Cancellation of run(): terminal.
class Upkeep {
 public:
  Upkeep(kube::Api& global, Reporter& reporter, const kube::Env& env) : api_(global), reporter_(reporter), env_(env) {}

  /// A migration as the cache has it now.
  void see(const Migration* old, const Migration& migration);
  void forget(const kube::Key& key);

  /// For the leader only.
  async::Awaitable<> run();

 private:
  /// Something to be done about a migration, not before `due`.
  struct Task {
    Migration migration;
    WallTime due{};
  };

  /// The one that is due first; absent: there is none.
  [[nodiscard]] std::optional<kube::Key> next() const;
  async::Awaitable<> perform(kube::Key key);
  async::Awaitable<kube::Result<>> refuse_request(Migration migration, std::string problem);
  async::Awaitable<kube::Result<>> remove(Migration migration);
  async::Awaitable<kube::Result<>> observe(Migration migration);

  kube::Api& api_;
  Reporter& reporter_;
  kube::Env env_;
  std::map<kube::Key, Task> tasks_;
  async::Notify changed_;
};

}  // namespace hubferry::migration
