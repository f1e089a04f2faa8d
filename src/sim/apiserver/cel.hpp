#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hubferry/kube/object.hpp"

namespace hubferry::sim {

namespace json = kube::json;

/// A validation rule of a CRD (x-kubernetes-validations), compiled.
///
/// The part of the Common Expression Language that schemas of this repository use: fields, has(), size(), literals,
/// lists, `in`, comparisons, !, && and ||. What is missing: macros over lists, arithmetic, methods, types.
class CelRule {
 public:
  /// Nullopt: it uses something that is not supported here.
  static std::optional<CelRule> compile(std::string_view text);

  /// True for a transition rule, which is evaluated for updates only.
  [[nodiscard]] bool needs_old() const { return needs_old_; }
  /// False also if it cannot be evaluated, as for a field that is absent. `old` may be null unless needs_old().
  [[nodiscard]] bool holds(const json::value& self, const json::value* old) const;

  struct Scope {
    const json::value& self;
    const json::value* old;
  };
  /// Throws CelError.
  using Expression = std::function<json::value(const Scope&)>;

 private:
  Expression expression_;
  bool needs_old_ = false;
};

}  // namespace hubferry::sim
