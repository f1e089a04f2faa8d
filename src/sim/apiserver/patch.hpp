#pragma once

#include "sim/apiserver/status_error.hpp"

namespace hubferry::sim {

/// RFC 7396.
void merge_patch(json::value& target, const json::value& patch);

/// RFC 6902: add, remove, replace, move, copy, test. Errors: invalid (422), with the operation's number.
Outcome<> json_patch(json::value& target, const json::array& patch);

/// The part of strategic merge patch that kubectl needs for the built-in kinds: lists of objects merge by `name`,
/// `type` or `uid`, finalizers are united, `$patch` and `$deleteFromPrimitiveList` work,
/// order directives are ignored.
void strategic_merge_patch(json::value& target, const json::value& patch);

}  // namespace hubferry::sim
