#include <algorithm>

#include "hubferry/phase/render.hpp"

namespace hubferry::phase {

namespace {

enum class Mark { blank, begun, done, failed };

Mark mark_of(const State& state) {
  if (state.failed) return Mark::failed;
  if (state.done) return Mark::done;
  return state.never_ran() ? Mark::blank : Mark::begun;
}

std::string_view symbol(Mark mark) {
  switch (mark) {
    case Mark::blank:
      return "[ ]";
    case Mark::begun:
      return "[>]";
    case Mark::done:
      return "[x]";
    case Mark::failed:
      return "[!]";
  }
  return "[ ]";
}

std::string_view word(Mark mark) {
  switch (mark) {
    case Mark::blank:
      return "pending";
    case Mark::begun:
      return "running";
    case Mark::done:
      return "done";
    case Mark::failed:
      return "failed";
  }
  return "pending";
}

/// The State of a component, also when only a bit of it is left in the summary.
State component_state(const State& parent, const HandlerNode& component, std::size_t index) {
  State state = parent.component(component.name());
  if (state.never_ran() && parent.summary != nullptr && index < parent.summary->total) {
    state.done = parent.summary->completed[index];
    state.failed = parent.summary->failing[index];
  }
  return state;
}

std::string took(const State& state) {
  if (!state.start_time || !state.end_time) return {};
  return " (" + async::format_duration(*state.end_time - *state.start_time) + ")";
}

/// True if a component has failed for the same reason: it says it there, and once is enough.
bool is_said_below(const HandlerNode& handler, const State& state) {
  return std::ranges::any_of(handler.components, [&](const HandlerNode& component) {
    const State& known = state.component(component.name());
    return known.failed && known.error == state.error;
  });
}

class Checklist {
 public:
  std::string text;

  void line(std::size_t depth, Mark mark, std::string_view name, std::string_view description,
            std::string_view remark) {
    text.append(depth * 2, ' ');
    text += symbol(mark);
    text += ' ';
    text += name;
    if (!description.empty()) {
      text += ": ";
      text += description;
    }
    text += remark;
    text += '\n';
  }

  void components(std::size_t depth, const HandlerNode& composite, const State& state) {
    for (std::size_t index = 0; index < composite.components.size(); ++index) {
      const auto& component = composite.components[index];
      const State known = component_state(state, component, index);
      // Of thousands of components only failures get a line.
      if (state.summary != nullptr && !known.failed) continue;
      node(depth, component, known, component.name());
    }
  }

  void node(std::size_t depth, const HandlerNode& handler, const State& state, std::string_view name) {
    std::string remark = took(state);
    if (state.failed && !state.error.empty() && !is_said_below(handler, state)) {
      remark += " -- " + state.error;
      if (!state.fatal) remark += " (will be retried)";
    }
    if (state.summary != nullptr) {
      remark += " -- " + std::to_string(state.summary->done) + " of " + std::to_string(state.summary->total) +
                " done, " + std::to_string(state.summary->failed) + " failed";
    }
    line(depth, mark_of(state), name, handler.metadata.description, remark);
    components(depth + 1, handler, state);
  }
};

Mark phase_mark(const DefinitionBase& definition, const Progress& progress, const Phase& phase, const State& state) {
  const auto terminal = definition.tables().terminals.find(phase);
  if (terminal != definition.tables().terminals.end()) {
    if (progress.phase != phase) return Mark::blank;
    return terminal->second == Ending::success ? Mark::done : Mark::failed;
  }
  const Mark mark = mark_of(state);
  return mark == Mark::blank && progress.phase == phase ? Mark::begun : mark;
}

const State& state_of(const Progress& progress, const Phase& phase) {
  static const State never_ran;
  const auto found = progress.states.find(phase);
  return found == progress.states.end() ? never_ran : found->second;
}

json::object node_json(const HandlerNode& handler, const State& state, std::string_view name, const void* resource) {
  json::object out;
  out["name"] = name;
  if (!handler.metadata.description.empty()) out["description"] = handler.metadata.description;
  out["view"] = to_string(handler.metadata.view);
  out["mark"] = word(mark_of(state));
  State own = state;
  own.components.clear();
  if (!(own == State{})) out["state"] = to_json(own);
  if (resource != nullptr && handler.detail) out["detail"] = handler.detail(resource, state);
  if (!handler.is_composite()) return out;
  json::array components;
  for (std::size_t index = 0; index < handler.components.size(); ++index) {
    const auto& component = handler.components[index];
    const State known = component_state(state, component, index);
    if (state.summary != nullptr && !known.failed) continue;
    components.push_back(node_json(component, known, component.name(), resource));
  }
  out["components"] = std::move(components);
  return out;
}

}  // namespace

std::string render_checklist(const DefinitionBase& definition, const Progress& progress) {
  Checklist list;
  for (const auto& phase : definition.tables().in_order()) {
    const State& state = state_of(progress, phase);
    if (definition.tables().is_terminal(phase)) {
      // Only the terminal phase that was reached.
      if (progress.phase == phase) list.line(0, phase_mark(definition, progress, phase, state), phase, {}, {});
      continue;
    }
    static const HandlerNode no_handler;
    const auto* handler = definition.handler_for(phase);
    const auto before = list.text.size();
    list.node(0, handler != nullptr ? *handler : no_handler, state, phase);
    // A phase that was entered has started, even if nothing was written yet.
    list.text.replace(before, 3, symbol(phase_mark(definition, progress, phase, state)));
  }
  return std::move(list.text);
}

json::object render_json(const DefinitionBase& definition, const Progress& progress, const void* resource) {
  json::object out;
  out["phase"] = progress.phase;
  const auto ending = definition.tables().terminals.find(progress.phase);
  if (ending != definition.tables().terminals.end())
    out["ending"] = ending->second == Ending::success ? "success" : "failure";
  json::array phases;
  for (const auto& phase : definition.tables().in_order()) {
    const State& state = state_of(progress, phase);
    static const HandlerNode no_handler;
    const auto* handler = definition.handler_for(phase);
    auto rendered = node_json(handler != nullptr ? *handler : no_handler, state, phase, resource);
    rendered["mark"] = word(phase_mark(definition, progress, phase, state));
    rendered["terminal"] = definition.tables().is_terminal(phase);
    phases.push_back(std::move(rendered));
  }
  out["phases"] = std::move(phases);
  return out;
}

}  // namespace hubferry::phase
