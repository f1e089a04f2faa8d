#include "hubferry/kube/resource.hpp"

#include "hubferry/kube/object.hpp"
#include "kube/http/wire_request.hpp"

namespace hubferry::kube {

std::string Resource::api_version() const {
  return group.empty() ? version : group + "/" + version;
}

std::string Resource::display_name() const {
  return group.empty() ? plural : plural + "." + group;
}

// Names of RBAC objects may hold colons and more.
std::string Resource::path(const Key& key, std::string_view subresource) const {
  std::string path = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
  if (namespaced && !key.ns.empty()) {
    path += "/namespaces/";
    http::append_percent_encoded(path, key.ns);
  }
  path += "/" + plural;
  if (!key.name.empty()) {
    path += '/';
    http::append_percent_encoded(path, key.name);
  }
  if (!subresource.empty()) {
    path += '/';
    path += subresource;
  }
  return path;
}

namespace resources {

const Resource namespaces{"", "v1", "namespaces", "Namespace", false};
const Resource secrets{"", "v1", "secrets", "Secret", true};
const Resource config_maps{"", "v1", "configmaps", "ConfigMap", true};
const Resource service_accounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
const Resource leases{"coordination.k8s.io", "v1", "leases", "Lease", true};
const Resource events{"events.k8s.io", "v1", "events", "Event", true};
const Resource cluster_roles{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false};
const Resource cluster_role_bindings{"rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding",
                                     false};
const Resource roles{"rbac.authorization.k8s.io", "v1", "roles", "Role", true};
const Resource role_bindings{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true};
const Resource custom_resource_definitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                           "CustomResourceDefinition", false};
const Resource certificate_signing_requests{"certificates.k8s.io", "v1", "certificatesigningrequests",
                                            "CertificateSigningRequest", false};
const Resource self_subject_access_reviews{"authorization.k8s.io", "v1", "selfsubjectaccessreviews",
                                           "SelfSubjectAccessReview", false};
const Resource self_subject_rules_reviews{"authorization.k8s.io", "v1", "selfsubjectrulesreviews",
                                          "SelfSubjectRulesReview", false};
const Resource subject_access_reviews{"authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview",
                                      false};
const Resource token_reviews{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false};

}  // namespace resources

}  // namespace hubferry::kube
