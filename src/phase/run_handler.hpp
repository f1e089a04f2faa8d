#pragma once

#include <unordered_map>

#include "hubferry/async/random.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/phase/definition.hpp"
#include "phase/handler_metrics.hpp"

namespace hubferry::phase {

/// One reconcile, as its handlers see it.
struct ReconcileRun {
  ReconcileRun(const DefinitionBase& of, const kube::Env& in, const HandlerMetrics& measured, void* with, Key of_key,
               obs::Logger logger)
      : definition(of), env(in), metrics(measured), services(with), key(std::move(of_key)), log(std::move(logger)) {}

  /// Context::save().
  virtual Awaitable<> save() = 0;

  const DefinitionBase& definition;
  const kube::Env& env;
  const HandlerMetrics& metrics;
  void* services;
  Key key;
  obs::Logger log;
  DefinitionBase::ErasedResource resource{nullptr, [](void*) {}};
  Phase phase;  // whose handler runs

 protected:
  ~ReconcileRun() = default;
};

/// One run of a phase's handler tree, or of a part of it. Small: every waiting composite holds one.
struct HandlerRun {
  ReconcileRun& reconcile;
  async::TimePoint deadline = async::never;
  /// What a fatal failure stops: the components beside this one in the nearest parallel composite.
  async::TaskScope* siblings = nullptr;

  [[nodiscard]] const DefinitionBase& definition() const { return reconcile.definition; }
  [[nodiscard]] async::Clock& clock() const { return reconcile.env.clock; }
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
