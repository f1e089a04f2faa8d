#pragma once

#include "hubferry/async/task_scope.hpp"
#include "hubferry/phase/definition.hpp"

namespace hubferry::phase {

/// One run of a phase's handler tree.
struct HandlerRun {
  const DefinitionBase& definition;
  async::Clock& clock;
  const obs::Logger& log;
  const Key& key;
  const Phase& phase;
  void* services;
  void* resource;
  /// Those that a fatal failure stops: the components beside this one in the nearest parallel composite.
  async::TaskScope* siblings = nullptr;
};

/// Runs `node` and its components as far as they get, and says in `result` what came of it. Results of components are
/// in `result` as soon as they are known: when this is cancelled, what was done until then can be read there.
/// Lifetime: all arguments outlive the call. Cancellation: terminal; all components have ended when it throws.
Awaitable<> run_handler(const HandlerRun& run, const HandlerNode& node, const State& last, ReconcileState& result);

}  // namespace hubferry::phase
