#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/object.hpp"
#include "hubferry/kube/resource.hpp"

namespace hubferry::hubagent {

/// manifests/hub-rbac, embedded in the binary: the documents of one YAML text.
std::string_view hub_rbac_manifests();

/// One permission on a hub, as an access review asks for it.
struct HubPermission {
  std::string verb;
  kube::Resource resource{};
  std::string subresource{};
  kube::Key key{};  // namespace: empty for all; name: empty for any

  /// "create secrets in namespace multicluster-engine".
  [[nodiscard]] std::string text() const;
};

/// Permissions that are granted together, and what they are for.
struct HubPermissions {
  std::string name;
  bool for_source = false;
  bool for_target = false;
  bool per_cluster = false;             // needed in the namespaces of the clusters that move, or in all
  bool optional = false;                // the manager can do without, under the conditions of `advice`
  std::string advice{};                 // if one is missing
  std::vector<std::string> roles{};     // in the manifests
  std::vector<HubPermission> needed{};  // in the manifests' order
};

/// What the manager's account needs on a hub, from the roles in manifests/hub-rbac: they are the only list.
const std::vector<HubPermissions>& hub_permissions();

/// "create secrets, get leases and 3 more".
std::string joined_permissions(const std::vector<std::string>& texts);

}  // namespace hubferry::hubagent
