#pragma once

#include "hubagent/calls.hpp"
#include "hubagent/marks.hpp"

namespace hubferry::hubagent {

/// Brings one of the migration's own objects into its state. One of that name that is not ours is an error that says
/// whose it is, and stays as it is.
Awaitable<Result<Object>> put_helper(const Hub& hub, MigrationRef migration, Resource resource, Key key,
                                     json::object wanted);
/// Deletes it if it is ours. Gone, or not ours: nothing to do.
Awaitable<Result<>> remove_helper(const Hub& hub, MigrationRef migration, Resource resource, Key key);

/// Sees to it that a namespace for helper objects is there. One that had to be created goes again when the last
/// migration that uses it says so; one that was there before is left alone.
Awaitable<Result<>> use_namespace(Hub& hub, MigrationRef migration, std::string ns);
Awaitable<Result<>> leave_namespace(Hub& hub, MigrationRef migration, std::string ns);

/// Waits until there is no object of that name, woken by a watch on that one object.
Awaitable<Result<>> await_gone(Hub& hub, Resource resource, Key key);

}  // namespace hubferry::hubagent
