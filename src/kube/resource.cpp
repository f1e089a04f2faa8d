#include "hubferry/kube/resource.hpp"

#include "hubferry/kube/object.hpp"

namespace hubferry::kube {

namespace {

/// RFC 3986 unreserved characters stay; names of RBAC objects may hold colons and more.
void append_encoded(std::string& path, std::string_view segment) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  for (const char c : segment) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      path += c;
    } else {
      path += '%';
      path += digits[byte >> 4];
      path += digits[byte & 15];
    }
  }
}

}  // namespace

std::string Resource::api_version() const {
  return group.empty() ? version : group + "/" + version;
}

std::string Resource::display_name() const {
  return group.empty() ? plural : plural + "." + group;
}

std::string Resource::path(const Key& key, std::string_view subresource) const {
  std::string path = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
  if (namespaced && !key.ns.empty()) {
    path += "/namespaces/";
    append_encoded(path, key.ns);
  }
  path += "/" + plural;
  if (!key.name.empty()) {
    path += '/';
    append_encoded(path, key.name);
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
const Resource subject_access_reviews{"authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview",
                                      false};
const Resource token_reviews{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false};

}  // namespace resources

}  // namespace hubferry::kube
