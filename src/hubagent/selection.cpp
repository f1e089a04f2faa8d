#include "hubagent/selection.hpp"

#include <algorithm>

namespace hubferry::hubagent {

std::string with_cluster(std::string name, const std::string& cluster) {
  constexpr std::string_view place = "{cluster}";
  for (auto at = name.find(place); at != std::string::npos; at = name.find(place, at + cluster.size()))
    name.replace(at, place.size(), cluster);
  return name;
}

bool is_selected(const CarriedKind& kind, const std::string& cluster, const kube::Object& object) {
  const auto has = [&](const char* map) {
    return [&object, map](const std::string& key) { return object.find({"metadata", map, key}) != nullptr; };
  };
  const auto is_named = [&](const std::string& name) { return with_cluster(name, cluster) == object.name(); };
  return kind.all || std::ranges::any_of(kind.names, is_named) ||
         std::ranges::any_of(kind.with_labels, has("labels")) ||
         std::ranges::any_of(kind.with_annotations, has("annotations"));
}

bool selects_one_name(const CarriedKind& kind) {
  return !kind.all && kind.with_labels.empty() && kind.with_annotations.empty() && kind.names.size() == 1;
}

}  // namespace hubferry::hubagent
