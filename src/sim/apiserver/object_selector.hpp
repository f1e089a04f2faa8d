#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/selector.hpp"
#include "sim/apiserver/status_error.hpp"

namespace hubferry::sim {

struct Kind;

/// The parsed label and field selector of a list or watch.
class ObjectSelector {
 public:
  /// Errors: bad_request, with the messages of the real server. Besides metadata.name and metadata.namespace, `fields`
  /// may contain those that the kind allows.
  static Outcome<ObjectSelector> parse(std::string_view labels, std::string_view fields, const Kind& kind);

  /// For a stored object.
  [[nodiscard]] bool matches(const json::object& object) const;
  [[nodiscard]] bool empty() const { return labels_.empty() && fields_.empty(); }
  /// The only name that can match; empty if there may be others.
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
