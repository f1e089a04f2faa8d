#pragma once

#include "hubferry/kube/api.hpp"

namespace hubferry::hubagent {

/// What an error says about an object of which much depends on whether it exists: a ManagedCluster, its Lease, its
/// namespace. A hub accepts a cluster again, deletes a copy, or counts it as deleted if it is absent elsewhere. Only an
/// API server that has looked for it proves that, by a 404 that names it. One of a proxy, or of a server that does not
/// serve the kind just now, becomes bad_response; other errors, and those of other kinds of objects, stay as they are.
kube::Error checked_absence(const kube::Resource& resource, const std::string& name, kube::Error error);

}  // namespace hubferry::hubagent
