#pragma once

#include "hubagent/annotations.hpp"

/// The objects that a migration needs on a hub for itself, and the namespaces they are in.
namespace hubferry::hubagent {

/// Creates or updates one of the migration's own objects. An object of that name that is not ours is left as it is, and
/// the error says whose it is.
Awaitable<Result<Object>> put_own_object(const Hub& hub, MigrationRef migration, Resource resource, Key key,
                                         json::object wanted);
/// Deletes it if it is ours; no error if it is gone or not ours.
Awaitable<Result<>> delete_own_object(const Hub& hub, MigrationRef migration, Resource resource, Key key);

/// Ensures that a namespace for own objects exists. One that we created is deleted when the last migration that uses it
/// releases it, unless somebody else has put anything into it; one that existed before is left alone. Acquiring one
/// that is being deleted waits for its end; after HubOptions::deletion_timeout an error says what holds it.
Awaitable<Result<>> acquire_namespace(Hub& hub, MigrationRef migration, std::string ns);
Awaitable<Result<>> release_namespace(Hub& hub, MigrationRef migration, std::string ns);

}  // namespace hubferry::hubagent
