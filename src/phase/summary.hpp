#pragma once

#include "hubferry/phase/handler.hpp"

namespace hubferry::phase {

/// A fingerprint of the components' names and their order.
std::string fingerprint(const HandlerNode& composite);

/// Does this summary speak of these very components?
bool speaks_of(const State& state, const HandlerNode& composite);

/// Moves what `state.components` says into a summary, on top of the one that is there, and keeps entries only for
/// what cannot be summed up: failures (at most `limit`), unfinished composites, unfinished leaves with fields of their
/// own, and other unfinished leaves while there is room.
void collapse(State& state, const HandlerNode& composite, std::size_t limit);

}  // namespace hubferry::phase
