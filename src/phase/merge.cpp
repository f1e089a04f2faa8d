#include <algorithm>

#include "hubferry/phase/decision.hpp"
#include "phase/summary.hpp"

namespace hubferry::phase {

namespace {

OptionalTime whole_seconds(OptionalTime time) {
  if (!time) return time;
  return async::WallTime{std::chrono::floor<std::chrono::seconds>(*time)};
}

/// Finds components by name; fast if they are looked up in their order.
class ComponentFinder {
 public:
  explicit ComponentFinder(const HandlerNode* composite) : composite_(composite) {}

  const HandlerNode* find(std::string_view name) {
    if (composite_ == nullptr) return nullptr;
    const auto& components = composite_->components;
    for (std::size_t tried = 0; tried < components.size(); ++tried) {
      const auto& candidate = components[at_];
      at_ = (at_ + 1) % components.size();
      if (candidate.name() == name) return &candidate;
    }
    return nullptr;
  }

 private:
  const HandlerNode* composite_;
  std::size_t at_ = 0;
};

/// The fields of the handler itself, without its components.
bool same_own_fields(const State& one, const State& other) {
  return one.done == other.done && one.failed == other.failed && one.fatal == other.fatal &&
         one.start_time == other.start_time && one.end_time == other.end_time && one.error == other.error &&
         one.extra == other.extra;
}

void take_own_fields(State& to, const State& from) {
  to.done = from.done;
  to.failed = from.failed;
  to.fatal = from.fatal;
  to.start_time = from.start_time;
  to.end_time = from.end_time;
  to.error = from.error;
  to.extra = from.extra;
}

void merge_summaries(State& state, const State& mine, const State& fresh) {
  if (mine.summary == nullptr || fresh.summary == nullptr || mine.summary->names != fresh.summary->names ||
      mine.summary->total != fresh.summary->total) {
    state.summary = mine.summary != nullptr ? mine.summary : fresh.summary;
    return;
  }
  Summary both = *mine.summary;
  for (std::size_t index = 0; index < both.total; ++index) {
    if (fresh.summary->completed[index]) both.completed[index] = true;
    if (both.completed[index]) both.failing[index] = false;
  }
  both.done = static_cast<std::size_t>(std::count(both.completed.begin(), both.completed.end(), true));
  both.failed = static_cast<std::size_t>(std::count(both.failing.begin(), both.failing.end(), true));
  state.summary = std::make_shared<const Summary>(std::move(both));
}

/// After its components were merged, a composite may turn out to be done.
void settle_composite(const HandlerNode& composite, State& state, const State& mine, const State& fresh) {
  bool all_done = !composite.components.empty();
  bool all_completed = all_done;
  const auto completed = completed_components(composite, state);
  for (std::size_t index = 0; index < completed.size(); ++index) {
    all_completed = all_completed && completed[index];
    all_done = all_done && (completed[index] || state.component(composite.components[index].name()).done);
  }
  if (!all_done) {
    if (!composite.components.empty()) state.done = false;
    return;
  }
  state.done = true;
  if (!all_completed) return;
  state.failed = state.fatal = false;
  state.error.clear();
  if (!state.end_time) state.end_time = mine.end_time ? mine.end_time : fresh.end_time;
}

}  // namespace

std::vector<bool> completed_components(const HandlerNode& composite, const State& last) {
  std::vector<bool> completed(composite.components.size());
  if (last.summary != nullptr && describes(last, composite)) completed = last.summary->completed;
  for (std::size_t index = 0; index < completed.size(); ++index)
    if (const auto* known = last.components.find(composite.components[index].name()); known != nullptr)
      completed[index] = known->completed();
  return completed;
}

State merge(const HandlerNode* handler, const State& last, const ReconcileState& run, std::size_t component_limit) {
  if (!run.start_time) return last;
  State state = last;
  if (!state.start_time) state.start_time = whole_seconds(run.start_time);
  ComponentFinder finder{handler};
  for (const auto& component : run.components) {
    if (!component.start_time) continue;
    auto& entry = state.components[component.handler];
    entry = merge(finder.find(component.handler), entry, component, component_limit);
  }
  if (handler != nullptr && handler->components.size() > component_limit) collapse(state, *handler, component_limit);
  // A cancelled run has no result of its own.
  if (run.cancelled) return state;

  state.done = run.done;
  state.failed = run.failed;
  state.fatal = run.fatal;
  state.error = run.error ? shortened(run.error->message) : std::string{};
  for (const auto& [name, value] : run.extra) {
    if (value.is_null()) {
      state.extra.erase(name);
    } else {
      state.extra[name] = value;
    }
  }
  if (state == last) return state;
  if (state.done || state.failed) {
    state.end_time = whole_seconds(run.end_time);
  } else {
    state.end_time.reset();
  }
  return state;
}

State with_begun(const HandlerNode* handler, State state, const ReconcileState& run, std::size_t component_limit) {
  if (!run.start_time) return state;
  if (!state.start_time) state.start_time = whole_seconds(run.start_time);
  // A summary has no times.
  if (handler != nullptr && handler->components.size() > component_limit) return state;
  ComponentFinder finder{handler};
  for (const auto& component : run.components) {
    if (!component.start_time) continue;
    auto& entry = state.components[component.handler];
    entry = with_begun(finder.find(component.handler), std::move(entry), component, component_limit);
  }
  return state;
}

State merge_concurrent(const HandlerNode* handler, const State& base, const State& mine, const State& fresh) {
  if (fresh == base || fresh == mine) return mine;
  if (mine == base) return fresh;

  State state;
  const bool mine_changed = !same_own_fields(mine, base);
  const bool fresh_changed = !same_own_fields(fresh, base);
  const bool take_mine = mine_changed && (!fresh_changed || mine.completed() || !fresh.completed());
  take_own_fields(state, take_mine ? mine : fresh);
  for (const auto& [name, value] : fresh.extra)
    if (!state.extra.contains(name) && !base.extra.contains(name)) state.extra[name] = value;

  merge_summaries(state, mine, fresh);
  ComponentFinder finder{handler};
  const auto merge_component = [&](const std::string& name) {
    if (state.components.contains(name)) return;
    auto merged =
        merge_concurrent(finder.find(name), base.component(name), mine.component(name), fresh.component(name));
    if (!(merged == State{})) state.components.emplace(name, std::move(merged));
  };
  for (const auto& [name, component] : mine.components) merge_component(name);
  for (const auto& [name, component] : fresh.components) merge_component(name);

  if (handler != nullptr && handler->is_composite()) {
    if (state.summary != nullptr && describes(state, *handler)) {
      // Completed on one side means completed; the other side's entry would contradict it.
      for (std::size_t index = 0; index < handler->components.size(); ++index)
        if (state.summary->completed[index]) state.components.erase(handler->components[index].name());
    }
    settle_composite(*handler, state, mine, fresh);
  }
  return state;
}

}  // namespace hubferry::phase
