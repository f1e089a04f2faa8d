#pragma once

#include "hubferry/phase/handler.hpp"

namespace hubferry::phase {

/// A fingerprint of the components' names and their order.
std::string fingerprint(const HandlerNode& composite);

/// True if the summary is about exactly these components.
bool describes(const State& state, const HandlerNode& composite);

/// Moves `state.components` into the summary, and keeps entries only for what cannot be summarized: failures (at most
/// `limit`), unfinished composites, unfinished leaves with fields of their own, and other unfinished leaves while there
/// is room.
void collapse(State& state, const HandlerNode& composite, std::size_t limit);

}  // namespace hubferry::phase
