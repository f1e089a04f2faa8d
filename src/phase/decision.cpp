#include "hubferry/phase/decision.hpp"

#include <algorithm>

#include "phase/run_handler.hpp"

namespace hubferry::phase {

namespace {

/// The delay before a component that is not done is entered again.
async::Duration entered_again_after(const DefinitionBase& definition, const ReconcileState& result) {
  if (result.checkpoint) return async::Duration::zero();
  if (result.requeue_after) return std::max(*result.requeue_after, least_requeue_delay);
  if (result.error && result.error->retry_after) return std::max(*result.error->retry_after, least_requeue_delay);
  return definition.requeue_delay();
}

Decision stay(const DefinitionBase& definition, const ReconcileState& result, State state) {
  return {std::move(state), Phase{result.phase}, false, EdgeKind::normal, entered_again_after(definition, result)};
}

EdgeKind edge_of(const ReconcileState& result) {
  if (!result.next.empty()) return EdgeKind::forced;
  return result.failed ? EdgeKind::error : EdgeKind::normal;
}

std::string undeclared_jump(const Tables& tables, const ReconcileState& result, const Phase& to) {
  const auto text = "handler '" + std::string{result.handler} + "' goes from phase '" + std::string{result.phase} +
                    "' to phase '" + to + "', ";
  if (!tables.knows(to)) return text + "which does not exist";
  return text + "a transition that the definition does not declare: add it to `forced`";
}

}  // namespace

void judge(const DefinitionBase& definition, ReconcileState& result) {
  result.failed = result.error.has_value();
  result.fatal = result.failed && definition.is_fatal(*result.error);
  if (result.failed && !result.fatal) result.done = false;
}

void apply_retry(const RetryPolicy& policy, const State& last, double jitter, ReconcileState& result) {
  const auto* known = last.extra.if_contains(attempts_field);
  if (!result.failed || result.fatal) {
    if (known != nullptr && !result.failed) result.extra[attempts_field] = nullptr;
    return;
  }
  const std::int64_t failures =
      (known != nullptr && known->is_int64() ? std::max<std::int64_t>(known->get_int64(), 0) : 0) + 1;
  result.extra[attempts_field] = failures;
  if (policy.attempts > 0 && failures >= policy.attempts) {
    result.fatal = true;
    result.error->message += " (attempt " + std::to_string(failures) + " of " + std::to_string(policy.attempts) + ")";
    return;
  }
  if (policy.first <= async::Duration::zero() || result.requeue_after || result.error->retry_after) return;
  auto pause = policy.first;
  for (std::int64_t at = 1; at < failures && pause < policy.most; ++at) pause *= 2;
  const auto bounded = static_cast<double>(std::min(pause, policy.most).count());
  result.requeue_after = async::Duration{static_cast<async::Duration::rep>(bounded * jitter)};
}

void mark_unworkable(ReconcileState& result, std::string why) {
  result.error = Error{std::move(why)};
  result.done = result.failed = result.fatal = true;
}

void conclude(const DefinitionBase& definition, const HandlerNode& composite, const State& last,
              ReconcileState& result) {
  std::erase_if(result.components, [](const ReconcileState& component) { return !component.start_time; });
  std::vector<Error> errors;
  std::size_t ran_and_done = 0;
  std::optional<async::Duration> again;
  for (const auto& component : result.components) {
    if (component.done) ++ran_and_done;
    result.updated = result.updated || component.updated;
    result.fatal = result.fatal || component.fatal;
    result.checkpoint = result.checkpoint || component.checkpoint;
    if (component.error) errors.push_back(*component.error);
    if (result.next.empty()) result.next = component.next;
    if (component.done) continue;
    const auto delay = entered_again_after(definition, component);
    if (!again || delay < *again) again = delay;
  }
  const auto before = completed_components(composite, last);
  const auto done_before = static_cast<std::size_t>(std::count(before.begin(), before.end(), true));
  result.done = done_before + ran_and_done == composite.components.size();
  if (!result.requeue_after) result.requeue_after = again;
  result.failed = !errors.empty();
  if (result.failed) result.error = Error::all_of(std::move(errors));
  if (result.failed && !result.fatal) result.done = false;
}

Decision decide(const DefinitionBase& definition, const State& last, ReconcileState result) {
  const auto& tables = definition.tables();
  const Phase from{result.phase};
  const auto* handler = definition.handler_for(from);
  Phase to = definition.next_phase(result);
  if (!result.next.empty() && !tables.declares(from, to, EdgeKind::forced)) {
    mark_unworkable(result, undeclared_jump(tables, result, to));
    result.next.clear();
    to = definition.next_phase(result);
  }
  State state = merge(handler, last, result, definition.component_limit());
  const bool moved = to != from || !result.next.empty();
  if (!moved) return stay(definition, result, std::move(state));
  return {std::move(state), std::move(to), true, edge_of(result), {}};
}

Decision decide_again(const DefinitionBase& definition, const State& last, ReconcileState result,
                      const Phase& fresh_phase, const State& fresh_state) {
  const auto* handler = definition.handler_for(Phase{result.phase});
  Decision first = decide(definition, last, result);
  State merged = merge_concurrent(handler, last, first.state, fresh_state);
  if (fresh_phase != result.phase) return {std::move(merged), fresh_phase, true, EdgeKind::normal, {}};
  // A forced transition, and one into an error, stand whatever the others did, unless all is done now.
  result.done = merged.done;
  if (merged.completed()) {
    result.failed = result.fatal = false;
    result.error.reset();
  }
  Decision again = decide(definition, last, result);
  again.state = std::move(merged);
  return again;
}

}  // namespace hubferry::phase
