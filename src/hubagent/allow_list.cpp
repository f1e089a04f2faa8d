#include "hubagent/allow_list.hpp"

#include <algorithm>

namespace hubferry::hubagent {

namespace {

bool is_kind_of(const kube::Resource& resource, const kube::json::object& object) {
  return resource.kind == kube::string_at(object, {"kind"}) &&
         resource.api_version() == kube::string_at(object, {"apiVersion"});
}

const CarriedKind* table_entry(const CarriedResources& table, const kube::Resource& resource) {
  const auto found = std::ranges::find(table, resource, &CarriedKind::resource);
  return found == table.end() ? nullptr : &*found;
}

bool is_referred_to(const CarriedResources& table, const kube::Resource& resource) {
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

std::vector<kube::Resource> admitted_kinds(const CarriedResources& table) {
  std::vector<kube::Resource> kinds;
  const auto add = [&](const kube::Resource& resource) {
    if (may_be_copied(resource) && std::ranges::find(kinds, resource) == kinds.end()) kinds.push_back(resource);
  };
  for (const auto& kind : table) {
    add(kind.resource);
    for (const auto& reference : kind.references) add(reference.resource);
  }
  return kinds;
}

kube::Result<kube::Resource> admitted_kind(const CarriedResources& table, const std::string& cluster,
                                           const kube::json::object& object) {
  const kube::Key key = kube::Object{object}.key();
  const auto refused = [&](const std::string& why) {
    return failure(reasons::not_allowed, std::string{kube::string_at(object, {"kind"})} + " " + kube::to_string(key) +
                                             " may not arrive with cluster " + cluster + ": " + why);
  };
  const auto kinds = admitted_kinds(table);
  const auto found = std::ranges::find_if(kinds, [&](const auto& kind) { return is_kind_of(kind, object); });
  if (found == kinds.end()) return refused("this kind does not travel");
  if (key.name.empty()) return refused("it has no name");
  if (!found->namespaced && (key.name != cluster || !key.ns.empty())) return refused("it is not that cluster's");
  if (found->namespaced && key.ns != cluster) return refused("it is not in that cluster's namespace");
  const auto* entry = table_entry(table, *found);
  if (entry != nullptr && is_only_by_name(*entry) && !is_referred_to(table, *found) && key.name != cluster)
    return refused("only the one of the cluster's name travels");
  return *found;
}

}  // namespace hubferry::hubagent
