#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/selector.hpp"
#include "sim/failure.hpp"

namespace hubferry::sim {

/// A parsed label selector and field selector, as a list or watch names them.
class Selector {
 public:
  /// Errors: bad_request, in the words of the real server. `fields_allowed` are the field names that the kind
  /// supports besides metadata.name and metadata.namespace.
  static Outcome<Selector> parse(std::string_view labels, std::string_view fields,
                                 const std::vector<std::string>& fields_allowed);

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
