#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hubferry/phase/boxed.hpp"
#include "hubferry/phase/error.hpp"
#include "hubferry/phase/optional_time.hpp"
#include "hubferry/phase/phase.hpp"

namespace hubferry::phase {

/// The minimum delay before a handler that is not done is entered again, whatever it or a server asks for: without one
/// it would occupy the loop, and a server.
inline constexpr async::Duration least_requeue_delay = std::chrono::milliseconds{100};

/// The result of one run of a handler.
struct ReconcileState {
  // Set by the handler.
  Boxed<Error> error;  // why it failed
  Phase next;          // go there: a transition that the definition declares as forced
  /// When to be entered again; absent: the definition's delay. Less than least_requeue_delay counts as that.
  std::optional<async::Duration> requeue_after;
  json::object extra;    // fields to put into the handler's State; a null removes one
  bool done = false;     // there is nothing left to do; otherwise the handler is entered again
  bool updated = false;  // the resource's status was changed and must be written

  // Set by the framework.
  bool failed = false;
  bool fatal = false;
  bool checkpoint = false;  // write what is done before the rest starts, which then continues at once
  bool cancelled = false;   // stopped because a sibling failed: neither done nor failed
  OptionalTime start_time;  // absent: it did not run
  OptionalTime end_time;
  std::string_view handler;  // both names are the definition's, or the machine's
  std::string_view phase;
  std::vector<ReconcileState> components;  // those that ran
};

/// The three usual results.
inline ReconcileState done() {
  ReconcileState result;
  result.done = true;
  return result;
}
inline ReconcileState not_done() {
  return {};
}
inline ReconcileState not_done(async::Duration again_after) {
  ReconcileState result;
  result.requeue_after = again_after;
  return result;
}
inline ReconcileState failed(Error error) {
  ReconcileState result;
  result.error = std::move(error);
  return result;
}
inline ReconcileState failed(std::string text) {
  return failed(Error{std::move(text)});
}
/// Leaves the phase for `next`, whatever the two tables say. The definition declares that transition in `forced`: any
/// other one is a fatal error of this phase.
inline ReconcileState go_to(Phase next) {
  ReconcileState result;
  result.done = true;
  result.next = std::move(next);
  return result;
}

}  // namespace hubferry::phase
