#pragma once

#include <memory>
#include <string>

#include "hubferry/hubs/hubs.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/phase/definition.hpp"

namespace hubferry::migration {

struct ControllerOptions {
  std::string watch_namespace = {};  // empty: all
  /// How many migrations run at once; further ones wait in Pending.
  std::size_t max_concurrent = 10;
  /// Which process this is, for events.
  std::string instance = {};
  /// Counts that change while clusters arrive are written this often at most.
  async::Duration progress_interval = std::chrono::seconds{3};
};

/// Carries out the migrations of a global hub: watches them, and drives each through its phases.
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

  /// Has it seen the migrations there are?
  [[nodiscard]] bool synced() const;
  async::Awaitable<> wait_synced();
  /// Phases and handlers, for drawings and checklists.
  [[nodiscard]] const phase::DefinitionBase& definition() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::migration
