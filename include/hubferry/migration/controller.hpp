#pragma once

#include <memory>
#include <string>

#include "hubferry/hubs/hubs.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/kube/fence.hpp"
#include "hubferry/obs/health.hpp"
#include "hubferry/phase/machine.hpp"

namespace hubferry::migration {

struct ControllerOptions {
  std::string watch_namespace = {};  // empty: all
  /// How many migrations run at once; further ones wait in Pending.
  std::size_t max_concurrent = 10;
  /// Which process this is, for events.
  std::string instance = {};
  /// Counts that change while clusters arrive are written this often at most.
  async::Duration progress_interval = std::chrono::seconds{3};
  /// Called for every transition of a migration, once it is written. Must not throw.
  std::function<void(const phase::Transition&)> on_transition = {};
  /// Called for every cluster that has arrived on the target, at once: the status has only counts, and the ledger is
  /// written when all have arrived. Must not throw.
  std::function<void(const kube::Key& migration, const std::string& cluster)> on_arrival = {};
  /// See phase::ControllerOptions.
  obs::CheckState* readiness = nullptr;
  kube::Fence* fence = nullptr;
  /// Another manager works on the same migrations, although our Lease is ours: it has one of its own. Called once for
  /// each identity; it stands in the log, too. Must not throw.
  std::function<void(const std::string& identity)> on_rival = {};
};

/// The phases of a migration, their transitions and handlers: for graphs and checklists. No machine runs on it.
const phase::DefinitionBase& phase_definition();

/// The migration controller: watches the migrations of a global hub and runs each through its phases.
///
/// Everything that a successor needs is in the API when run() ends, wherever it was cancelled.
/// Lifetime: `global`, `hubs` and the references in `env` outlive it. Executor: one loop, that of `hubs`.
class Controller {
 public:
  Controller(kube::Api& global, hubs::Hubs& hubs, ControllerOptions options, kube::Env env);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;
  ~Controller();

  /// Works until cancelled. For the leader only: losing the lead must cancel it.
  async::Awaitable<> run();

  /// True once the migration cache is synced.
  [[nodiscard]] bool synced() const;
  async::Awaitable<> wait_synced();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::migration
