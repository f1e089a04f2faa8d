#pragma once

#include "hubagent/calls.hpp"

namespace hubferry::hubagent {

/// Operators that install machines take an object for a restored one, and let the machine be, when it looks as a backup
/// would have left it. So do those that arrive with a cluster.
void mark_as_restored(json::object& object, const Resource& resource);

/// Takes off what has done its work once the cluster is here; a user's own value stays.
Awaitable<Result<>> end_restore_marks(const Hub& hub, std::string ns);

}  // namespace hubferry::hubagent
