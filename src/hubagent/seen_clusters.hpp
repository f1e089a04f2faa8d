#pragma once

#include "hubagent/requests.hpp"

/// Writes to ManagedClusters that need not read them first: each is one patch, conditional on the version that the
/// hub's watch shows. If somebody has changed the cluster meanwhile, it is read.
namespace hubferry::hubagent {

/// Of the ManagedCluster as the watch shows it: the annotations that claims and detachments are about, whether it is
/// accepted, and its version. Absent: not seen, or being deleted.
std::optional<Object> seen_cluster(Hub& hub, const std::string& cluster);

/// `mutate` reads and writes only what seen_cluster() has. Absent: the cluster must be read, since it has changed,
/// `mutate` does not apply to what the watch shows, or we may not patch. An error: the hub did not take the request.
Awaitable<kube::Result<std::optional<Object>>> patch_as_seen(Hub& hub, std::string cluster, kube::Mutation mutate);

/// By patch_as_seen(), or else by a read and a write: after a while if the hub did not take the patch.
Awaitable<Result<Object>> edit_cluster(Hub& hub, std::string cluster, kube::Mutation mutate);

}  // namespace hubferry::hubagent
