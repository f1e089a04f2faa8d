#pragma once

#include <string>

#include "hubferry/hubagent/migration_ref.hpp"
#include "hubferry/kube/error.hpp"
#include "hubferry/kube/object.hpp"
#include "hubferry/kube/resource.hpp"

namespace hubferry::hubagent {

using kube::Error;
using kube::ErrorKind;

/// Words for ClusterFailure::reason.
namespace reasons {
inline constexpr const char* not_found = "ClusterNotFound";
inline constexpr const char* conflict = "ClusterConflict";
inline constexpr const char* not_available = "ClusterNotAvailable";
inline constexpr const char* local_cluster = "ClusterIsLocal";
inline constexpr const char* hosted = "ClusterIsHosted";
inline constexpr const char* is_hub = "ClusterIsHub";
inline constexpr const char* not_allowed = "ResourceNotAllowed";
inline constexpr const char* invalid = "ResourceInvalid";
inline constexpr const char* differs = "ResourceDiffers";
inline constexpr const char* other = "Error";
}  // namespace reasons

/// A verdict of ours on one cluster, in the shape of an error, so that it travels the same way.
Error failure(const char* reason, std::string message);

/// "cannot pause BareMetalHost c1/host: <what the server said>". Keeps the kind.
Error in_context(Error error, const std::string& what);

/// True for errors that concern the hub as a whole, not one object on it.
bool is_hub_error(const Error& error);

/// What is told of a cluster for which an order ended in `error`.
ClusterFailure failure_of(const std::string& cluster, const Error& error);

/// "BareMetalHost c1/host", for messages.
std::string described(const kube::Resource& resource, const kube::Key& key);

}  // namespace hubferry::hubagent
