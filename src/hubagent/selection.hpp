#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hubagent/requests.hpp"

/// Which objects of a cluster are copied: the rules of the carried resources, on the side of the source and, since a
/// source is not trusted further than needed, on the side of the target.
namespace hubferry::hubagent {

/// "{cluster}-admin-password" for c1: "c1-admin-password".
std::string expand_cluster(std::string name, const std::string& cluster);

/// True if the rules of its kind select this object of the cluster's namespace.
bool is_selected(const CarriedKind& kind, const std::string& cluster, const Object& object);

/// True if the rules can only select one object, by its name.
bool selects_one_name(const CarriedKind& kind);

/// The strings at a path such as "spec.bmc.credentialsName" or "spec.extraManifestsRefs[].name"; empty ones left out.
std::vector<std::string> names_at(const json::object& object, std::string_view path);

/// The kind of an object that a source sent, if that kind is copied and the object is the cluster's own: by its name
/// for cluster-scoped kinds, by its namespace for others, by both where only one object of the cluster's name is
/// copied.
Result<Resource> allowed_kind(const CarriedResources& table, const std::string& cluster, const json::object& object);

/// Every kind that can be copied: those of the table and those they refer to, once each.
std::vector<Resource> allowed_kinds(const CarriedResources& table);

/// The carried kinds that the hub serves.
Awaitable<Result<CarriedResources>> served_carried_kinds(const Hub& hub);

}  // namespace hubferry::hubagent
