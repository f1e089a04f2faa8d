#include "app/cli/json_text.hpp"

#include <boost/json/serialize.hpp>
#include <initializer_list>

namespace hubferry::app {

namespace json = kube::json;

namespace {

void write(const json::value& value, const std::string& margin, std::string& out) {
  const std::string deeper = margin + "  ";
  std::string separator = "\n";
  if (value.is_object() && !value.get_object().empty()) {
    out += "{";
    for (const auto& [key, field] : value.get_object()) {
      out += separator + deeper + json::serialize(json::value(key)) + ": ";
      write(field, deeper, out);
      separator = ",\n";
    }
    out += "\n" + margin + "}";
  } else if (value.is_array() && !value.get_array().empty()) {
    out += "[";
    for (const auto& item : value.get_array()) {
      out += separator + deeper;
      write(item, deeper, out);
      separator = ",\n";
    }
    out += "\n" + margin + "]";
  } else {
    out += json::serialize(value);
  }
}

/// The fields `first` in that order, then the others as they come, then `last`.
json::object reordered(const json::object& from, std::initializer_list<const char*> first, const char* last = "") {
  json::object result;
  for (const auto* name : first)
    if (const auto* field = from.if_contains(name)) result[name] = *field;
  for (const auto& [name, field] : from)
    if (!result.contains(name) && name != last) result[name] = field;
  if (const auto* field = from.if_contains(last)) result[last] = *field;
  return result;
}

}  // namespace

std::string to_indented_json(const json::value& value) {
  std::string out;
  write(value, "", out);
  return out + "\n";
}

json::object in_usual_order(const json::object& object) {
  auto result = reordered(object, {"apiVersion", "kind", "metadata", "spec"}, "status");
  if (auto* metadata = result.if_contains("metadata"); metadata != nullptr && metadata->is_object())
    *metadata = reordered(metadata->get_object(), {"name", "namespace", "labels", "annotations"});
  if (auto* items = result.if_contains("items"); items != nullptr && items->is_array())
    for (auto& item : items->get_array())
      if (item.is_object()) item = in_usual_order(item.get_object());
  return result;
}

}  // namespace hubferry::app
