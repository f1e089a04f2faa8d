#pragma once

#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "sim/apiserver/cel.hpp"
#include "sim/apiserver/status_error.hpp"

namespace hubferry::sim {

/// A structural schema (a CRD's openAPIV3Schema), compiled once.
class Schema {
 public:
  enum class Type { any, object, array, string, integer, number, boolean };
  enum class ListType { atomic, set, map };

  /// Never fails: unsupported constraints are not checked.
  static std::shared_ptr<const Schema> compile(const json::object& source);

  /// Drops fields that are not in the schema. The top level keeps apiVersion, kind and metadata.
  void prune(json::object& object) const;
  void apply_defaults(json::object& object) const;
  void validate(const json::object& object, std::vector<FieldError>& field_errors) const;
  /// oneOf, anyOf, and the CEL rules (x-kubernetes-validations). `old` is null for a create.
  void validate_rules(const json::object& object, const json::object* old, std::vector<FieldError>& field_errors) const;

  // For server-side apply.
  [[nodiscard]] ListType list_type() const { return list_type_; }
  [[nodiscard]] const std::vector<std::string>& list_keys() const { return list_keys_; }
  [[nodiscard]] bool atomic_map() const { return atomic_map_; }
  /// The schema of a field or of the items; null if there is none.
  [[nodiscard]] const Schema* field(std::string_view name) const;
  [[nodiscard]] const Schema* items() const { return items_.get(); }

 private:
  void prune_value(json::value& value) const;
  void prune_fields(json::object& object, bool top) const;
  void default_value(json::value& value) const;
  void default_fields(json::object& object) const;
  void check(const json::value& value, const std::string& path, std::vector<FieldError>& field_errors) const;
  void check_fields(const json::object& object, const std::string& path, std::vector<FieldError>& field_errors) const;
  void check_string(const json::string& text, const std::string& path, std::vector<FieldError>& field_errors) const;
  void check_alternatives(const json::value& value, const std::string& path,
                          std::vector<FieldError>& field_errors) const;
  void check_rules(const json::value& value, const json::value* old, const std::string& path,
                   std::vector<FieldError>& field_errors) const;
  void check_number(const json::value& value, const std::string& path, std::vector<FieldError>& field_errors) const;
  [[nodiscard]] bool type_matches(const json::value& value) const;

  struct Rule {
    CelRule rule;
    std::string message;
  };

  Type type_ = Type::any;
  bool nullable_ = false;
  bool preserve_ = false;
  bool int_or_string_ = false;
  bool embedded_ = false;  // x-kubernetes-embedded-resource
  std::map<std::string, std::shared_ptr<const Schema>, std::less<>> properties_;
  std::shared_ptr<const Schema> items_;
  std::shared_ptr<const Schema> additional_;
  std::vector<std::shared_ptr<const Schema>> one_of_, any_of_;
  std::vector<Rule> rules_;
  bool has_rules_ = false;  // here or below
  std::vector<std::string> required_;
  std::vector<json::value> allowed_;
  std::optional<std::regex> pattern_;
  std::string pattern_text_;
  std::optional<double> minimum_, maximum_;
  bool exclusive_minimum_ = false, exclusive_maximum_ = false;
  std::optional<std::int64_t> min_length_, max_length_, min_items_, max_items_, min_properties_, max_properties_;
  std::optional<json::value> default_;
  ListType list_type_ = ListType::atomic;
  std::vector<std::string> list_keys_;
  bool atomic_map_ = false;
};

}  // namespace hubferry::sim
