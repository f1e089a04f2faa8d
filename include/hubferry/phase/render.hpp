#pragma once

#include "hubferry/phase/definition.hpp"

namespace hubferry::phase {

/// The progress of one machine, for rendering.
struct Progress {
  Phase phase;  // empty: not begun
  States states;
};

/// Reads it from a resource of the definition's type.
template <typename Services, typename Resource>
Progress progress_of(const Definition<Services, Resource>& definition, const Resource& resource) {
  Progress progress{definition.phase(resource), {}};
  for (const auto& phase : definition.tables().in_order())
    if (auto state = definition.state(resource, phase); !(state == State{})) progress.states[phase] = std::move(state);
  return progress;
}

/// One line per phase and handler, indented as the tree is:
///   [x] Initializing
///   [>] PreFlight: pre-flight checks
///     [x] account
///     [!] network: subnet is full (will be retried)
///   [ ] InFlight
/// x done, > started, ! failed, blank: not started. Composites beyond the limit show counts and their failures.
std::string render_checklist(const DefinitionBase& definition, const Progress& progress);

/// The same as JSON: {"phase": …, "ending": …, "phases": [{"name", "description", "view", "mark", "state",
/// "components": […]}]}. With a resource (of the definition's type), handlers with an object detail get "detail".
json::object render_json(const DefinitionBase& definition, const Progress& progress, const void* resource = nullptr);

/// The phases and every declared transition: normal ones as solid lines, error transitions dotted, forced ones bold,
/// resumptions dashed.
std::string render_mermaid(const DefinitionBase& definition);
std::string render_dot(const DefinitionBase& definition);

}  // namespace hubferry::phase
