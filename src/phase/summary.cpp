#include "phase/summary.hpp"

#include <cstdint>

namespace hubferry::phase {

std::string fingerprint(const HandlerNode& composite) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  const auto mix = [&](unsigned char byte) { hash = (hash ^ byte) * 1099511628211U; };
  for (const auto& component : composite.components) {
    for (const char letter : component.name()) mix(static_cast<unsigned char>(letter));
    mix(0);
  }
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[(hash >> shift) & 15U];
  return text;
}

bool describes(const State& state, const HandlerNode& composite) {
  return state.summary != nullptr && state.summary->total == composite.components.size() &&
         state.summary->names == fingerprint(composite);
}

void collapse(State& state, const HandlerNode& composite, std::size_t limit) {
  const auto total = composite.components.size();
  Summary summary;
  if (describes(state, composite)) {
    summary = *state.summary;
  } else {
    summary.total = total;
    summary.names = fingerprint(composite);
    summary.completed.assign(total, false);
    summary.failing.assign(total, false);
  }
  Components kept;
  std::size_t failures = 0;
  for (std::size_t index = 0; index < total; ++index) {
    const auto& component = composite.components[index];
    const auto* known = state.components.find(component.name());
    if (known == nullptr) continue;
    summary.completed[index] = known->completed();
    summary.failing[index] = known->failed;
    if (known->completed()) continue;
    const bool must_keep = component.is_composite() || !known->extra.empty();
    const bool keep_failure = known->failed && failures < limit;
    if (keep_failure) ++failures;
    if (must_keep || keep_failure || (!known->failed && kept.size() < limit)) kept.emplace(component.name(), *known);
  }
  summary.done = static_cast<std::size_t>(std::count(summary.completed.begin(), summary.completed.end(), true));
  summary.failed = static_cast<std::size_t>(std::count(summary.failing.begin(), summary.failing.end(), true));
  state.components = std::move(kept);
  state.summary = std::make_shared<const Summary>(std::move(summary));
}

}  // namespace hubferry::phase
