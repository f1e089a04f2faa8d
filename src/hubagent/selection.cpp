#include "hubagent/selection.hpp"

#include <algorithm>

#include "hubagent/works.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

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

bool is_kind_of(const Resource& resource, const json::object& object) {
  return resource.kind == kube::string_at(object, {"kind"}) &&
         resource.api_version() == kube::string_at(object, {"apiVersion"});
}

const CarriedKind* table_entry(const CarriedResources& table, const Resource& resource) {
  const auto found = std::ranges::find(table, resource, &CarriedKind::resource);
  return found == table.end() ? nullptr : &*found;
}

bool is_referred_to(const CarriedResources& table, const Resource& resource) {
  return std::ranges::any_of(table, [&](const CarriedKind& kind) {
    return std::ranges::any_of(kind.references,
                               [&](const CarriedReference& reference) { return reference.resource == resource; });
  });
}

bool is_only_by_name(const CarriedKind& kind) {
  return !kind.all && kind.with_labels.empty() && kind.with_annotations.empty() &&
         kind.names == std::vector<std::string>{"{cluster}"};
}

}  // namespace

std::string expand_cluster(std::string name, const std::string& cluster) {
  constexpr std::string_view placeholder = "{cluster}";
  for (auto at = name.find(placeholder); at != std::string::npos; at = name.find(placeholder, at + cluster.size()))
    name.replace(at, placeholder.size(), cluster);
  return name;
}

bool is_selected(const CarriedKind& kind, const std::string& cluster, const Object& object) {
  if (kind.resource == ocm::manifest_works && why_work_stays(cluster, object)) return false;
  const auto has = [&](const char* map) {
    return [&object, map](const std::string& key) { return object.find({"metadata", map, key}) != nullptr; };
  };
  const auto is_named = [&](const std::string& name) { return expand_cluster(name, cluster) == object.name(); };
  return kind.all || std::ranges::any_of(kind.names, is_named) ||
         std::ranges::any_of(kind.with_labels, has("labels")) ||
         std::ranges::any_of(kind.with_annotations, has("annotations"));
}

bool selects_one_name(const CarriedKind& kind) {
  return !kind.all && kind.with_labels.empty() && kind.with_annotations.empty() && kind.names.size() == 1;
}

std::vector<std::string> names_at(const json::object& object, std::string_view path) {
  std::vector<std::string> names;
  gather(object, path, names);
  return names;
}

std::vector<Resource> allowed_kinds(const CarriedResources& table) {
  std::vector<Resource> kinds;
  const auto add = [&](const Resource& resource) {
    if (may_be_copied(resource) && std::ranges::find(kinds, resource) == kinds.end()) kinds.push_back(resource);
  };
  for (const auto& kind : table) {
    add(kind.resource);
    for (const auto& reference : kind.references) add(reference.resource);
  }
  return kinds;
}

Result<Resource> allowed_kind(const CarriedResources& table, const std::string& cluster, const json::object& object) {
  const Key key = Object{object}.key();
  const auto refused = [&](const std::string& why) {
    return Error{FailureReason::resource_not_allowed, std::string{kube::string_at(object, {"kind"})} + " " +
                                                          kube::to_string(key) + " may not be copied with cluster " +
                                                          cluster + ": " + why};
  };
  const auto kinds = allowed_kinds(table);
  const auto found = std::ranges::find_if(kinds, [&](const auto& kind) { return is_kind_of(kind, object); });
  if (found == kinds.end()) return refused("this kind is not copied");
  if (key.name.empty()) return refused("it has no name");
  if (!found->namespaced && (key.name != cluster || !key.ns.empty())) return refused("it is not the cluster's own");
  if (found->namespaced && key.ns != cluster) return refused("it is not in the cluster's namespace");
  if (*found == ocm::manifest_works)
    if (const auto why = why_work_stays(cluster, Object{object})) return refused(*why);
  const auto* entry = table_entry(table, *found);
  if (entry != nullptr && is_only_by_name(*entry) && !is_referred_to(table, *found) && key.name != cluster)
    return refused("only the object of the cluster's name is copied");
  return *found;
}

Awaitable<Result<CarriedResources>> served_carried_kinds(const Hub& hub) {
  CarriedResources served;
  for (const auto& kind : hub.carried()) {
    auto is_served = co_await serves(hub, kind.resource);
    if (!is_served) co_return is_served.error();
    if (*is_served) served.push_back(kind);
  }
  co_return served;
}

}  // namespace hubferry::hubagent
