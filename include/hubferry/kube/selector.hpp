#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/error.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::kube {

/// A label selector, as people and APIs write it: "a=b,c!=d,e in (f,g),h notin (i),j,!k". All must hold; the empty
/// one selects everything. As in Kubernetes, "!=" and "notin" hold for objects that lack the label.
class LabelSelector {
 public:
  /// The value of a label, or nothing when the object lacks it.
  using Lookup = std::function<std::optional<std::string_view>(std::string_view label)>;

  LabelSelector() = default;
  /// Errors: invalid, quoting what is wrong.
  static Result<LabelSelector> parse(std::string_view text);
  /// From a metav1.LabelSelector: matchLabels and matchExpressions.
  static Result<LabelSelector> from_json(const json::object& selector);

  [[nodiscard]] bool matches(const Lookup& lookup) const;
  [[nodiscard]] bool matches(const Object& object) const;
  [[nodiscard]] bool empty() const { return terms_.empty(); }
  /// In the form that parse() reads.
  [[nodiscard]] std::string to_string() const;

 private:
  enum class Operator { in, not_in, exists, absent };
  struct Term {
    std::string label;
    Operator op = Operator::exists;
    std::vector<std::string> values;  // of in and not_in; sorted
  };
  class Parser;

  std::vector<Term> terms_;
};

/// A field selector: "metadata.name=a,status.phase!=Running". All must hold; an absent field counts as empty.
class FieldSelector {
 public:
  FieldSelector() = default;
  static Result<FieldSelector> parse(std::string_view text);

  [[nodiscard]] bool matches(const Object& object) const;
  [[nodiscard]] bool empty() const { return terms_.empty(); }

 private:
  struct Term {
    std::vector<std::string> path;
    std::string value;
    bool equal = true;
  };
  std::vector<Term> terms_;
};

}  // namespace hubferry::kube
