#pragma once

#include <optional>
#include <string>

#include "hubagent/requests.hpp"
#include "hubferry/hubagent/bundle.hpp"

/// What an object looks like when it is sent, when it is created on the target, and when the two are compared.
namespace hubferry::hubagent {

/// The object without what belongs to its hub: identity, owners, finalizers, bookkeeping, our own annotations and
/// pauses, and its status unless that is copied. The result is the same at any stage of a migration, so that what was
/// sent can be compared later. A ManagedCluster is sent accepted, and without the taints that a hub sets itself.
CarriedObject clean_object(const Object& object, const Resource& resource, bool with_status);

/// The object as it is created on the target: labelled as ours, and paused until the cluster has arrived.
json::object prepare_copy(json::object object, const Resource& resource, const MigrationRef& migration);

/// The field in which the copy on the target differs from what was sent: "spec.size", "data.key", "spec.parts[2].name".
/// Fields that only the copy has do not count, nor do those that the target's controllers own. Never shows a value.
std::optional<std::string> find_difference(const Object& copy, json::object sent, const Resource& resource);

}  // namespace hubferry::hubagent
