#pragma once

#include "hubagent/failure.hpp"
#include "hubferry/hubagent/carried_resources.hpp"

namespace hubferry::hubagent {

/// The kind of an object that arrived, if that kind may travel and the object is the cluster's own: by its name for
/// cluster-scoped kinds, by its namespace for others, by both where only the one of the cluster's name travels.
/// What a source sends is not trusted further than that.
kube::Result<kube::Resource> admitted_kind(const CarriedResources& table, const std::string& cluster,
                                           const kube::json::object& object);

/// Every kind that can arrive: those of the table and what they refer to, once each.
std::vector<kube::Resource> admitted_kinds(const CarriedResources& table);

}  // namespace hubferry::hubagent
