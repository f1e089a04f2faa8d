#include "hubagent/difference.hpp"

namespace hubferry::hubagent {

namespace {

namespace json = kube::json;

std::string joined(std::string_view step, const std::string& rest) {
  std::string path{step};
  if (!rest.empty() && rest.front() != '[') path += '.';
  return path + rest;
}

}  // namespace

std::optional<std::string> first_difference(const json::value& actual, const json::value& wanted) {
  if (const auto* fields = wanted.if_object()) {
    const auto* present = actual.if_object();
    if (present == nullptr) return "";
    for (const auto& field : *fields) {
      const auto* value = present->if_contains(field.key());
      // Servers leave empty maps and lists out.
      const bool empty = (field.value().is_object() && field.value().get_object().empty()) ||
                         (field.value().is_array() && field.value().get_array().empty());
      if (value == nullptr && (empty || field.value().is_null())) continue;
      if (value == nullptr) return std::string{field.key()};
      if (const auto inner = first_difference(*value, field.value())) return joined(field.key(), *inner);
    }
    return std::nullopt;
  }
  if (const auto* elements = wanted.if_array()) {
    const auto* present = actual.if_array();
    if (present == nullptr || present->size() != elements->size()) return "";
    for (std::size_t i = 0; i < elements->size(); ++i)
      if (const auto inner = first_difference((*present)[i], (*elements)[i]))
        return joined("[" + std::to_string(i) + "]", *inner);
    return std::nullopt;
  }
  if (actual == wanted) return std::nullopt;
  return "";
}

}  // namespace hubferry::hubagent
