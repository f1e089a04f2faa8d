#pragma once

#include "hubferry/phase/definition.hpp"

/// The machine's decisions: pure functions, without I/O, clock or coroutine. The engine executes them.
namespace hubferry::phase {

/// What a reconcile does next.
struct Decision {
  State state;                       // the phase's new State
  Phase phase;                       // the phase to be in
  bool moved = false;                // it is another one, or the same from its beginning
  EdgeKind edge = EdgeKind::normal;  // when moved: by which transition
  async::Duration again{};           // when staying: how long until the handler is entered again
};

/// Which components are completed, so that they do not run again; in their order.
std::vector<bool> completed_components(const HandlerNode& composite, const State& last);

/// Sets failed and fatal by the error of a run. A non-fatal failure is not done either, whatever it claims.
void judge(const DefinitionBase& definition, ReconcileState& result);

/// Counts the failures in a row of a leaf with a retry policy: sets the pause before the next attempt (times `jitter`),
/// or turns the last failure that the policy allows into a fatal one.
void apply_retry(const RetryPolicy& policy, const State& last, double jitter, ReconcileState& result);

/// Computes the result of a composite from the results of the components that ran.
void conclude(const DefinitionBase& definition, const HandlerNode& composite, const State& last,
              ReconcileState& result);

/// Sets the result of a phase without a handler, and of a composite without components: done, failed and fatal.
void mark_unworkable(ReconcileState& result, std::string why);

/// The State after one more run. Equal to `last` if the run brought nothing new: the times of a result are those of the
/// first run that had it.
State merge(const HandlerNode* handler, const State& last, const ReconcileState& run, std::size_t component_limit);

/// The State while a run is under way, to be shown: with the times when components began, but without their results,
/// which count once the run is over.
State with_begun(const HandlerNode* handler, State state, const ReconcileState& run, std::size_t component_limit);

/// Three-way merge of our State and one written concurrently, both derived from `base`. A change of only one side is
/// taken; if both changed, a completed component wins, else ours.
State merge_concurrent(const HandlerNode* handler, const State& base, const State& mine, const State& fresh);

/// What to do after a run of the root handler of `result.phase`.
Decision decide(const DefinitionBase& definition, const State& last, ReconcileState result);

/// The same if the resource has changed since: `fresh_phase` and `fresh_state` are its current ones. If another writer
/// has moved it to another phase, that phase stands, and only our State is added.
Decision decide_again(const DefinitionBase& definition, const State& last, ReconcileState result,
                      const Phase& fresh_phase, const State& fresh_state);

}  // namespace hubferry::phase
