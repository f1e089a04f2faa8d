#pragma once

#include <functional>

#include "hubferry/async/backoff.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/phase/definition.hpp"

namespace hubferry::phase {

class HandlerMetrics;
struct HandlerRun;

/// A phase was left for another, and the status says so.
struct Transition {
  const Key& key;
  const Phase& from;
  const Phase& to;
  const State& state;  // of the phase that was left
  EdgeKind edge = EdgeKind::normal;
};

struct MachineOptions {
  std::string name = "machine";  // the metrics' label `machine`, and the log's
  /// Called once for every transition: also for one whose write got no answer, when it is found to have happened. Must
  /// not throw.
  std::function<void(const Transition&)> on_transition = {};
  /// After this many runs of handlers in one reconcile the machine yields to others.
  unsigned runs_at_once = 100;
};

/// The outcome of one reconcile.
struct Reconciled {
  enum class Outcome {
    gone,      // there is no such resource
    terminal,  // the machine has ended
    again,     // reconcile again after `after`
    failed,    // the resource could not be read or written: see error, retry
  };
  Outcome outcome = Outcome::gone;
  Phase phase;              // the phase it is in now; empty when unknown
  async::Duration after{};  // for again
  Error error;              // for failed
  unsigned runs = 0;        // of root handlers
  unsigned writes = 0;      // of the status
};

/// Reconciles one resource from phase to phase: the engine, without the types of services and resource.
///
/// reconcile() runs handlers until the resource is terminal or has to wait, with one status write per step and none if
/// nothing changed. On a write conflict it reads the resource again and decides again with the results at hand: nothing
/// that is done is repeated or lost. The same after an ambiguous write and a transient failure.
/// Lifetime: definition, services and env outlive it. Executor: the caller's loop.
/// Cancellation: terminal, at any point; nothing is written afterwards, and what is written can be resumed.
/// Errors: values. Only cancellation and bugs throw.
class MachineCore {
 public:
  MachineCore(DefinitionBase& definition, void* services, kube::Env env, MachineOptions options);
  MachineCore(const MachineCore&) = delete;
  MachineCore& operator=(const MachineCore&) = delete;
  ~MachineCore();

  Awaitable<Reconciled> reconcile(Key key);

  [[nodiscard]] const DefinitionBase& definition() const { return definition_; }
  [[nodiscard]] const kube::Env& env() const { return env_; }
  [[nodiscard]] const MachineOptions& options() const { return options_; }

 private:
  struct Step;

  Awaitable<> run_root(Step& step, const HandlerRun& run);
  Awaitable<> claim(Step& step);
  Awaitable<> write(Step& step);
  Awaitable<> resume(Step& step, Phase to);
  Awaitable<> save(Step& step);
  [[nodiscard]] State entered_state(const Phase& phase) const;
  void report_transition(const Step& step);
  void record_write(Step& step, const Written& written);
  static Awaitable<> pause_after(const Written& written, async::Backoff& backoff);
  Awaitable<DefinitionBase::ErasedResource> read_fresh(Step& step);
  Awaitable<> read_again(Step& step);

  DefinitionBase& definition_;
  void* services_;
  kube::Env env_;
  MachineOptions options_;
  obs::Family<obs::Counter>& transitions_;
  obs::Family<obs::Counter>& writes_;
  std::unique_ptr<HandlerMetrics> handler_metrics_;
};

/// The engine for one definition.
template <typename Services, typename Resource>
class Machine : public MachineCore {
 public:
  Machine(Definition<Services, Resource>& definition, Services& services, kube::Env env, MachineOptions options = {})
      : MachineCore(definition, &services, std::move(env), std::move(options)) {}
};

}  // namespace hubferry::phase
