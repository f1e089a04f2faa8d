#pragma once

#include <string>

#include "hubferry/hubagent/migration_ref.hpp"
#include "hubferry/kube/error.hpp"
#include "hubferry/kube/object.hpp"
#include "hubferry/kube/resource.hpp"

namespace hubferry::hubagent {

using kube::Error;
using kube::ErrorKind;

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
