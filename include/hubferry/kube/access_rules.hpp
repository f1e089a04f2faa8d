#pragma once

#include <string_view>

#include "hubferry/kube/object.hpp"
#include "hubferry/kube/resource.hpp"

namespace hubferry::kube {

/// What an account may do in a namespace, by the rules that hold there: the answer to a SelfSubjectRulesReview.
class AccessRules {
 public:
  /// No rule, and not complete.
  AccessRules() = default;
  explicit AccessRules(const Object& review);

  /// False: an authorizer of the server cannot list its rules. What no rule allows may be allowed nevertheless; a
  /// SelfSubjectAccessReview knows.
  [[nodiscard]] bool complete() const { return complete_; }
  /// True if a rule allows it. `name`: empty for any object of the kind.
  [[nodiscard]] bool allow(std::string_view verb, const Resource& resource, std::string_view subresource = {},
                           std::string_view name = {}) const;

 private:
  json::array rules_;
  bool complete_ = false;
};

}  // namespace hubferry::kube
