#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/object.hpp"
#include "hubferry/kube/resource.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::sim {

/// Authorizes requests by the stored roles and bindings. Members of system:masters may do everything; every
/// authenticated user may create self subject reviews.
class RbacAuthorizer {
 public:
  struct Question {
    std::string_view verb;
    std::string_view group;
    std::string_view resource;
    std::string_view subresource;
    std::string_view ns;
    std::string_view name;
  };

  [[nodiscard]] bool allows(const User& user, const Question& question) const;
  [[nodiscard]] bool allows_path(const User& user, std::string_view verb, std::string_view path) const;

  /// The rules that a user has in a namespace, those for all namespaces included: SelfSubjectRulesReview.
  [[nodiscard]] kube::json::array rules_for(const User& user, std::string_view ns) const;

  /// A role or binding was written or removed.
  void put(const kube::Resource& resource, const kube::Object& object);
  void erase(const kube::Resource& resource, const kube::Object& object);

 private:
  /// Cluster-wide ones have an empty namespace.
  struct Binding {
    std::string ns;
    std::string name;
    auto operator<=>(const Binding&) const = default;
  };
  void index(const kube::Object& binding, bool add);
  /// The rules of the role that it refers to; null if there are none.
  [[nodiscard]] const kube::json::array* rules_of(const Binding& binding) const;
  /// Calls `visit` for each binding of the user until it returns true; whether it did.
  template <typename Visit>
  [[nodiscard]] bool any_binding(const User& user, Visit visit) const;
  [[nodiscard]] bool binding_allows(const Binding& binding, const Question& question) const;

  std::map<Binding, kube::Object> bindings_;
  std::map<Binding, kube::Object> roles_;
  std::map<std::string, std::set<Binding>, std::less<>> by_subject_;  // "User/a", "Group/b"
};

}  // namespace hubferry::sim
