#include "hubagent/references.hpp"

namespace hubferry::hubagent {

namespace {

namespace json = kube::json;

void gather(const json::value& at, std::string_view path, std::vector<std::string>& names) {
  if (path.empty()) {
    if (at.is_string() && !at.get_string().empty()) names.emplace_back(at.get_string());
    return;
  }
  if (!at.is_object()) return;
  const auto dot = path.find('.');
  auto step = path.substr(0, dot);
  const auto rest = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  const bool each = step.ends_with("[]");
  if (each) step.remove_suffix(2);
  const auto* next = at.get_object().if_contains(step);
  if (next == nullptr) return;
  if (!each) return gather(*next, rest, names);
  if (!next->is_array()) return;
  for (const auto& element : next->get_array()) gather(element, rest, names);
}

}  // namespace

std::vector<std::string> names_at(const json::object& object, std::string_view path) {
  std::vector<std::string> names;
  gather(object, path, names);
  return names;
}

}  // namespace hubferry::hubagent
