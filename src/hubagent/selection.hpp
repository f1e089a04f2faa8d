#pragma once

#include <string>

#include "hubferry/hubagent/carried_resources.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::hubagent {

/// "{cluster}-admin-password" for c1: "c1-admin-password".
std::string with_cluster(std::string name, const std::string& cluster);

/// Do the rules of its kind take this object of the cluster's namespace along?
bool is_selected(const CarriedKind& kind, const std::string& cluster, const kube::Object& object);

/// True when the rules can only take one object, by its name.
bool selects_one_name(const CarriedKind& kind);

}  // namespace hubferry::hubagent
