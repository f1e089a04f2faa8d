#pragma once

#include <functional>
#include <memory>

#include "hubferry/hubs/hub_directory.hpp"
#include "hubferry/phase/controller.hpp"
#include "hubferry/relocator/names.hpp"

namespace hubferry::relocator {

struct ControllerOptions {
  std::string watch_namespace = {};  // of ClusterDeployments; empty: all
  /// ClusterDeployments that move to one destination at once. Relocators with the same destination take turns.
  std::size_t at_once = 10;
  std::string instance = {};  // for events
  /// See phase::ControllerOptions.
  obs::CheckState* readiness = nullptr;
  std::function<void(const phase::Transition&)> on_transition = {};
};

/// Moves ClusterDeployments of Hive to other hubs, as ClusterRelocators say: one phase machine for each.
///
/// At most one hub works on a cluster: the source's Hive is paused before anything is copied, the ClusterDeployment is
/// copied last, and no move is undone without a look at the destination. If that has it, the move is finished instead.
/// Lifetime: source and what `env` refers to outlive it. Executor: one loop.
class Controller {
 public:
  Controller(kube::Api& source, hubs::Connect connect, ControllerOptions options, kube::Env env);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;
  ~Controller();

  /// Works until cancelled: for the leader only.
  async::Awaitable<> run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The phases and all their transitions.
const phase::DefinitionBase& phase_definition();

}  // namespace hubferry::relocator
