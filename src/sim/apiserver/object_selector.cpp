#include "sim/apiserver/object_selector.hpp"

#include <algorithm>

#include "sim/apiserver/kinds.hpp"

namespace hubferry::sim {

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.emplace_back(trim(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

const json::value* follow(const json::object& object, const std::vector<std::string>& path) {
  const json::object* at = &object;
  const json::value* found = nullptr;
  for (const auto& step : path) {
    if (at == nullptr) return nullptr;
    found = at->if_contains(step);
    if (found == nullptr) return nullptr;
    at = found->if_object();
  }
  return found;
}

std::vector<std::string> stored_path(const Kind& kind, std::vector<std::string> path) {
  if (kind.view != nullptr)
    for (const auto& field : kind.view->fields)
      if (path.front() == field.served) {
        path.front() = field.stored;
        break;
      }
  return path;
}

}  // namespace

Outcome<ObjectSelector> ObjectSelector::parse(std::string_view labels, std::string_view fields, const Kind& kind) {
  ObjectSelector selector;
  auto parsed_labels = kube::LabelSelector::parse(labels);
  if (!parsed_labels) return errors::bad_request("unable to parse requirement: " + parsed_labels.error().message);
  selector.labels_ = std::move(*parsed_labels);
  for (const std::string_view term : split(fields, ',')) {
    if (term.empty()) continue;
    const auto equal = term.find('=');
    if (equal == std::string_view::npos)
      return errors::bad_request("invalid selector: '" + std::string{fields} + "'; can't understand '" +
                                 std::string{term} + "'");
    const bool unequal = equal > 0 && term[equal - 1] == '!';
    const auto skip = term.substr(equal).starts_with("==") ? 2U : 1U;
    std::string name{trim(term.substr(0, unequal ? equal - 1 : equal))};
    if (name != "metadata.name" && name != "metadata.namespace" &&
        std::ranges::find(kind.fields, name) == kind.fields.end())
      return errors::bad_request("field label not supported: " + name);
    FieldTerm parsed{stored_path(kind, split(name, '.')), !unequal, std::string{trim(term.substr(equal + skip))}};
    if (name == "metadata.name" && parsed.equal) selector.only_name_ = parsed.value;
    selector.fields_.push_back(std::move(parsed));
  }
  return selector;
}

bool ObjectSelector::matches(const json::object& object) const {
  for (const auto& term : fields_) {
    const auto* found = follow(object, term.path);
    const bool same = found != nullptr && found->is_string() ? found->get_string() == term.value : term.value.empty();
    if (same != term.equal) return false;
  }
  if (labels_.empty()) return true;
  const auto* found = kube::find(object, {"metadata", "labels"});
  const auto* labels = found != nullptr ? found->if_object() : nullptr;
  return labels_.matches([&](std::string_view name) -> std::optional<std::string_view> {
    const auto* value = labels != nullptr ? labels->if_contains(name) : nullptr;
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return std::string_view{value->get_string()};
  });
}

}  // namespace hubferry::sim
