#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hubferry/phase/context.hpp"
#include "hubferry/phase/reconcile_state.hpp"
#include "hubferry/phase/state.hpp"

namespace hubferry::phase {

using async::Awaitable;

/// How a handler's progress is shown to people.
enum class View {
  none,           // not at all
  checklist,      // the components, with their status
  object_detail,  // the objects being processed, rendered by the handler's own function
};
std::string_view to_string(View view);

/// How a leaf's non-fatal failures are retried.
struct RetryPolicy {
  /// The pause after the first failure, twice as long after each further one, up to `most`, and up to a fifth longer by
  /// chance. Zero: the definition's delay, always. A server's Retry-After (Error::retry_after) comes first.
  async::Duration first{};
  async::Duration most = std::chrono::minutes{5};
  /// This many failures in a row make the last one fatal. Zero: no limit.
  unsigned attempts = 0;

  [[nodiscard]] bool is_set() const { return first > async::Duration::zero() || attempts > 0; }
};

struct Metadata {
  std::string name = {};         // empty: for a root handler its phase's name
  std::string description = {};  // one line for people
  View view = View::none;
  std::size_t at_most = 0;  // parallel: how many components run at once; 0: all
  /// Serial: write the status when this component is done, before the next one starts. For steps that must not be
  /// repeated lightly after a crash, and before long waits. A serial composite inside a parallel one is written when
  /// the components beside it have come to rest. A component of a parallel composite itself has no next one: refused.
  bool checkpoint = false;
  /// How long it may take, over all its runs, from the first one; for a root handler, from when its phase was entered,
  /// also if the process was restarted since. Then it is cancelled and has failed fatally. Zero: no limit.
  async::Duration timeout{};
  RetryPolicy retry = {};
};

enum class HandlerKind { leaf, serial, parallel };

namespace detail {
/// Services, then the run, storage for its Context, the resource, the last State.
using ErasedFunction =
    std::function<Awaitable<ReconcileState>(void*, const RunInfo&, ContextRoom&, void*, const State&)>;
using ErasedDetail = std::function<json::value(const void*, const State&)>;
}  // namespace detail

/// One node of a handler tree, without the types of services and resource: what the engine and the renderers see.
struct HandlerNode {
  HandlerKind kind = HandlerKind::leaf;
  Metadata metadata;
  std::vector<HandlerNode> components;
  detail::ErasedFunction function;  // of a leaf
  detail::ErasedDetail detail;      // for View::object_detail

  [[nodiscard]] const std::string& name() const { return metadata.name; }
  [[nodiscard]] bool is_composite() const { return kind != HandlerKind::leaf; }
};

/// A handler for one kind of resource: a leaf, or a composite of others.
///
/// A leaf is a coroutine function. It may run for as long as it likes, and simply co_await what it needs. It must be
/// idempotent: whatever was not yet written when a process dies runs again.
/// Cancellation: terminal, at its next co_await. Let it pass: a handler that swallows it delays the shutdown.
/// Errors: returned, or thrown (Error::from_exception).
template <typename Services, typename Resource>
class Handler {
 public:
  using Function = std::function<Awaitable<ReconcileState>(Context<Services>&, Resource&, const State&)>;
  using Detail = std::function<json::value(const Resource&, const State&)>;

  static Handler leaf(Metadata metadata, Function function) {
    Handler handler{HandlerKind::leaf, std::move(metadata), {}};
    if (!function) return handler;  // for normalize() to complain of
    // The closure lives in the node, which outlives every run.
    handler.node_.function = [function = std::move(function)](void* services, const RunInfo& info, ContextRoom& room,
                                                              void* resource, const State& last) {
      auto& context = room.emplace(info, *static_cast<Services*>(services));
      return function(context, *static_cast<Resource*>(resource), last);
    };
    return handler;
  }
  /// The components in order; the first one that is not done, or fails, ends the run.
  static Handler serial(Metadata metadata, std::vector<Handler> components) {
    return {HandlerKind::serial, std::move(metadata), std::move(components)};
  }
  /// All components at once; a fatal failure stops the others.
  static Handler parallel(Metadata metadata, std::vector<Handler> components) {
    return {HandlerKind::parallel, std::move(metadata), std::move(components)};
  }

  /// The same handler, rendered by `detail`.
  Handler with_detail(Detail detail) && {
    node_.metadata.view = View::object_detail;
    node_.detail = [detail = std::move(detail)](const void* resource, const State& state) {
      return detail(*static_cast<const Resource*>(resource), state);
    };
    return std::move(*this);
  }

  [[nodiscard]] const HandlerNode& node() const { return node_; }

 private:
  Handler(HandlerKind kind, Metadata metadata, std::vector<Handler> components) {
    node_.kind = kind;
    node_.metadata = std::move(metadata);
    for (auto& component : components) node_.components.push_back(std::move(component.node_));
  }

  HandlerNode node_;
};

}  // namespace hubferry::phase
