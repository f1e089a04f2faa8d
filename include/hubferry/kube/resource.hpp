#pragma once

#include <string>
#include <string_view>

namespace hubferry::kube {

struct Key;

/// A kind of object and where an API server keeps it.
struct Resource {
  std::string group;  // empty: the core group
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;

  bool operator==(const Resource&) const = default;

  /// "v1" or "group/version", as in an object's apiVersion.
  [[nodiscard]] std::string api_version() const;
  /// "plural" or "plural.group": how people and RBAC name it.
  [[nodiscard]] std::string display_name() const;
  /// The URL path of the collection (name empty) or of one object, percent-encoded. An empty namespace means all.
  [[nodiscard]] std::string path(const Key& key, std::string_view subresource = {}) const;
};

/// Kubernetes' own kinds that controllers use. Others belong to the layers that know them.
namespace resources {

extern const Resource namespaces;
extern const Resource secrets;
extern const Resource config_maps;
extern const Resource service_accounts;
extern const Resource leases;
extern const Resource events;  // events.k8s.io/v1
extern const Resource cluster_roles;
extern const Resource cluster_role_bindings;
extern const Resource roles;
extern const Resource role_bindings;
extern const Resource custom_resource_definitions;
extern const Resource certificate_signing_requests;
extern const Resource self_subject_access_reviews;
extern const Resource self_subject_rules_reviews;
extern const Resource subject_access_reviews;
extern const Resource token_reviews;

}  // namespace resources

}  // namespace hubferry::kube
