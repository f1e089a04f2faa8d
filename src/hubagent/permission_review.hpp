#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hubagent/requests.hpp"

namespace hubferry::hubagent {

enum class HubRole { source, target };

/// What our account may not do on a hub.
struct MissingPermissions {
  std::vector<Error> on_hub;
  std::map<std::string, Error> in_namespaces;  // by cluster
  bool may_read_clusters = true;               // false: nothing else can be found out
};

/// Which permissions of manifests/hub-rbac our account lacks; those for kinds that the hub does not serve are not
/// needed. The kinds that a user has added to the carried ones count too.
///
/// It is read from the account's rules: by two requests, and one more for each cluster if the account has no
/// permissions for all namespaces. Where an authorizer cannot list its rules, each permission is reviewed. Errors: the
/// hub does not answer. One that refuses to review anything counts as if nothing were missing.
Awaitable<Result<MissingPermissions>> review_permissions(Hub& hub, HubRole role, ClusterNames clusters);

using ValidateClusters = std::function<Awaitable<Result<Outcome>>(ClusterNames clusters)>;

/// Reviews our permissions, then runs `validate`: on a source for all clusters, on a target for those that we may read.
/// Returns the problems of both; what is wrong with one cluster is one failure.
Awaitable<Result<Outcome>> with_permissions(Hub& hub, HubRole role, ClusterNames clusters, ValidateClusters validate);

}  // namespace hubferry::hubagent
