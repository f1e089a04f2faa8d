#include "hubagent/absence.hpp"

#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::hubagent {

namespace {

bool decides(const kube::Resource& resource) {
  return resource == ocm::managed_clusters || resource == kube::resources::leases ||
         resource == kube::resources::namespaces;
}

/// As every API server words it: `managedclusters.cluster.open-cluster-management.io "c1" not found`.
bool names_object(const kube::Error& error, const std::string& name) {
  return !name.empty() && error.reason == "NotFound" &&
         error.message.find('"' + name + "\" not found") != std::string::npos;
}

}  // namespace

kube::Error checked_absence(const kube::Resource& resource, const std::string& name, kube::Error error) {
  const bool is_absence = error.kind == kube::ErrorKind::not_found || error.kind == kube::ErrorKind::unsupported;
  if (!is_absence || !decides(resource) || names_object(error, name)) return error;
  error.kind = kube::ErrorKind::bad_response;
  error.message = "the answer does not say whether " + resource.kind +
                  (name.empty() ? "s exist" : " " + name + " exists") +
                  (error.message.empty() ? "" : ": " + error.message);
  return error;
}

}  // namespace hubferry::hubagent
