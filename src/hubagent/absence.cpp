#include "hubagent/absence.hpp"

#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::hubagent {

namespace {

/// Every API server serves these; the kinds of custom resources may be missing.
bool is_built_in(const std::string& group) {
  return group.empty() || group == "rbac.authorization.k8s.io" || group == "certificates.k8s.io" ||
         group == "coordination.k8s.io" || group == "authorization.k8s.io";
}

bool decides(const kube::Resource& resource) {
  return resource == ocm::managed_clusters || is_built_in(resource.group);
}

}  // namespace

bool names_object(const kube::Error& error, const std::string& name) {
  return !name.empty() && error.reason == "NotFound" &&
         error.message.find('"' + name + "\" not found") != std::string::npos;
}

kube::Error checked_absence(const kube::Resource& resource, const std::string& name, kube::Error error) {
  const bool is_absence = error.kind == kube::ErrorKind::not_found || error.kind == kube::ErrorKind::unsupported;
  if (!is_absence || !decides(resource) || names_object(error, name)) return error;
  error.kind = kube::ErrorKind::bad_response;
  error.message = "the answer does not say whether " + resource.kind +
                  (name.empty() ? "s exist" : " " + name + " exists") +
                  (error.message.empty() ? "" : ": " + error.message);
  return error;
}

bool proves_absence(const kube::json::value& groups, std::string_view path) {
  constexpr std::string_view prefix = "/apis/";
  const auto* answer = groups.if_object();
  if (!path.starts_with(prefix) || answer == nullptr || kube::string_at(*answer, {"kind"}) != "APIGroupList")
    return false;
  const auto* listed = answer->if_contains("groups");
  if (listed == nullptr || !listed->is_array()) return false;
  const auto wanted = path.substr(prefix.size());
  for (const auto& group : listed->get_array()) {
    const auto* versions = group.is_object() ? group.get_object().if_contains("versions") : nullptr;
    if (versions == nullptr || !versions->is_array()) return false;
    for (const auto& version : versions->get_array())
      if (!version.is_object() || kube::string_at(version.get_object(), {"groupVersion"}) == wanted) return false;
  }
  return true;
}

}  // namespace hubferry::hubagent
