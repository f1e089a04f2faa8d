#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/selector.hpp"
#include "sim/apiserver/status_error.hpp"

namespace hubferry::sim {

struct Kind;

/// A parsed label selector and field selector, as a list or watch names them.
class ObjectSelector {
 public:
  /// Errors: bad_request, in the words of the real server. Besides metadata.name and metadata.namespace, `fields` may
  /// name what the kind allows.
  static Outcome<ObjectSelector> parse(std::string_view labels, std::string_view fields, const Kind& kind);

  /// Of an object as it is stored.
  [[nodiscard]] bool matches(const json::object& object) const;
  [[nodiscard]] bool empty() const { return labels_.empty() && fields_.empty(); }
  /// The one name that can match, or empty when there may be others.
  [[nodiscard]] std::string_view only_name() const { return only_name_; }

 private:
  struct FieldTerm {
    std::vector<std::string> path;
    bool equal;
    std::string value;
  };

  kube::LabelSelector labels_;
  std::vector<FieldTerm> fields_;
  std::string only_name_;
};

}  // namespace hubferry::sim
