#pragma once

#include <unordered_map>

#include "hubferry/async/random.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/phase/definition.hpp"
#include "phase/handler_metrics.hpp"

namespace hubferry::phase {

/// Writes the status while a handler runs: what is behind Context::save().
class Saver {
 public:
  virtual Awaitable<> save() = 0;

 protected:
  ~Saver() = default;
};

/// One run of a phase's handler tree.
struct HandlerRun {
  const DefinitionBase& definition;
  async::Clock& clock;
  const obs::Logger& log;
  const Key& key;
  const Phase& phase;
  void* services;
  void* resource;
  async::Random& random;
  const HandlerMetrics& metrics;
  Saver& saver;
  async::TimePoint deadline = async::never;
  /// What a fatal failure stops: the components beside this one in the nearest parallel composite.
  async::TaskScope* siblings = nullptr;
};

/// The field of a root handler's State that says when its phase was entered; only kept where the root has a timeout.
inline constexpr const char* entered_time_field = "enteredTime";
/// The field of a leaf's State with its failures in a row; only kept where it has a retry policy.
inline constexpr const char* attempts_field = "attempts";

/// Runs `node` and its components as far as they get, and stores the outcome in `result`. Results of components are
/// in `result` as soon as they are known: when this is cancelled, what was done until then can be read there.
/// Lifetime: all arguments outlive the call. Cancellation: terminal; all components have ended when it throws.
Awaitable<> run_handler(const HandlerRun& run, const HandlerNode& node, const State& last, ReconcileState& result);

}  // namespace hubferry::phase
