#pragma once

#include "hubferry/kube/api.hpp"

namespace hubferry::hubagent {

/// What an error says about an object of which much depends on whether it exists: a ManagedCluster, and the kinds that
/// every API server serves (Lease, namespace, certificate request, ClusterRoleBinding, Secret). A hub accepts a cluster
/// again, deletes a copy, or counts it as deleted if it is absent elsewhere. Only an API server that has looked for it
/// proves that, by a 404 that names it. One of a proxy, or of a server that does not serve the kind just now, becomes
/// bad_response; other errors stay as they are, and so do those of kinds that a hub may lack: whether it does is asked
/// by SettlingApi.
kube::Error checked_absence(const kube::Resource& resource, const std::string& name, kube::Error error);

/// True for the 404 of an API server that has looked for the object, as every one words it:
/// `managedclusters.cluster.open-cluster-management.io "c1" not found`.
bool names_object(const kube::Error& error, const std::string& name);

/// Whether the answer to "/apis" proves that the server does not serve "/apis/GROUP/VERSION". The 404 of that path is
/// the same as that of a proxy which has no server behind it; and machines whose kind counts as not served are not
/// paused before their namespace is deleted.
bool proves_absence(const kube::json::value& groups, std::string_view path);

}  // namespace hubferry::hubagent
